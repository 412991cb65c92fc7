package racelab

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/internal/racelab/timeline"
	"jobledger/ledger"
)

// A picture of a race shows what was measured: every notification at its time, each win with its
// commit, and the owner's credits as the journal has them.
func TestTimelineOfARace(t *testing.T) {
	for _, o := range []Options{
		shape(4, 6, 1, 5, 7, ledger.ModeCharge, false), shape(2, 6, 3, 5, 7, ledger.ModeHold, true),
	} {
		dbtest.Each(t, func(t *testing.T, dsn string) {
			o.DSN = dsn
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			line := r.Timeline("a race", "jobledger race")
			if err := line.WriteSVG(io.Discard); err != nil {
				t.Fatal(err)
			}
			first, _ := r.span()
			won := make(map[int64]bool) // when winners had their answers
			for _, s := range r.shots {
				if s.Won {
					won[s.end()-first] = true
				}
			}
			told, last := 0, int64(0)
			for _, e := range line.Events {
				last = max(last, e.End)
				if e.Kind == timeline.Call {
					told += fired(t, e.Detail)
				} else if !won[e.Start] || e.Kind != timeline.Commit {
					t.Errorf("%+v is at no time at which a winner had its answer: %v", e, won)
				}
			}
			if told != r.Notifications || len(line.Lanes) != o.Workers*o.Processes || last > r.Elapsed.Microseconds() {
				t.Errorf("%d of %d notifications in %d lanes, up to %d of %s",
					told, r.Notifications, len(line.Lanes), last, r.Elapsed)
			}
			points := line.Number.Points
			for _, p := range points[1:] {
				if !won[p.At] {
					t.Errorf("the number becomes %d at %d, when nobody won: %v", p.Value, p.At, won)
				}
			}
			final := points[len(points)-1].Value
			if points[0] != (timeline.Point{}) || final != r.Balance.Available || *line.Number.Want != final {
				t.Errorf("the number goes from %v to %d, right is %d; the balance is %+v",
					points[0], final, *line.Number.Want, r.Balance)
			}
		})
	}
}

// fired is how many notifications a bar stands for.
func fired(t *testing.T, detail string) (n int) {
	t.Helper()
	if strings.HasPrefix(detail, "job ") {
		return 1
	}
	if _, err := fmt.Sscanf(detail, "%d notifications", &n); err != nil || n < 2 {
		t.Errorf("a bar says %q", detail)
	}
	return n
}

// fire makes a notification of a worker of process 1 in the given time.
func fire(number int, began, micros int64, won bool) shot {
	return shot{Began: began, Observer: Observer{
		Process: 1, Worker: number, Job: "j", Won: won, Micros: micros,
		Reported: ledger.Failed, Outcome: ledger.Failed,
	}}
}

// The lanes are for those who won first, and the caption counts the others.
func TestLanesAreForWinners(t *testing.T) {
	var r Result
	for number := range 40 {
		r.shots = append(r.shots, fire(number+1, 1000, int64(100-number), number > 20))
	}
	line := r.Timeline("many", "jobledger race")
	if len(line.Lanes) != lanesMax || line.Lanes[0] != "worker 25" || line.Lanes[15] != "worker 40" {
		t.Errorf("lanes %q", line.Lanes)
	}
	const want = "jobledger race (16 of 40 workers, the first winners among them; 24 are not shown)"
	if line.Caption != want {
		t.Errorf("caption %q, want %q", line.Caption, want)
	}
	r.shots = r.shots[:16]
	r.shots[3].Process = 2
	line = r.Timeline("few", "jobledger race")
	if line.Caption != "jobledger race" || line.Lanes[0] != "process 1, worker 1" ||
		line.Lanes[15] != "process 2, worker 4" {
		t.Errorf("caption %q, lanes %q", line.Caption, line.Lanes)
	}
}

// Notifications that are too short to be seen share a bar; the marks of winners and retries stay where
// they were.
func TestShortNotificationsShareABar(t *testing.T) {
	r := Result{shots: []shot{
		fire(1, 5000, 5, true), fire(1, 5010, 10, true), fire(1, 5020, 10, false), fire(1, 5040, 900, false),
		fire(1, 5940, 100, true), fire(1, 6040, 3760, false),
	}}
	r.shots[3].Busy = []int64{200, 700}
	var got []string
	for _, e := range r.Timeline("", "").Events {
		got = append(got, fmt.Sprintf("%d-%d %s %s", e.Start, e.End, e.Kind, e.Label))
	}
	want := []string{
		"0-30 call lost", "20-20 commit 2 won", "40-940 call lost", "240-240 retry BUSY", "740-740 retry BUSY",
		"940-1040 call ", "1040-1040 commit won", "1040-4800 call lost",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i, want := range []string{
		0: "3 notifications, one after the other: 2 won, 1 lost, until 0.030 ms",
		1: "job j, its answer: won, returned 0, consumed 0",
		5: "job j, said failed: won, returned 0, consumed 0, until 1.040 ms",
		6: "job j, its answer: won, returned 0, consumed 0",
		7: "job j, said failed: lost, the job had ended failed, until 4.800 ms",
	} {
		if detail := r.Timeline("", "").Events[i].Detail; want != "" && detail != want {
			t.Errorf("event %d says %q, want %q", i, detail, want)
		}
	}
}

// A clock that is set while the race runs makes a picture that is wrong in its times, but makes one.
func TestTimelineSurvivesAClockThatIsSet(t *testing.T) {
	r := Result{shots: []shot{
		fire(1, 5000, 100, true), fire(1, 5050, 100, false), fire(1, 5051, 0, false), fire(2, 1000, 5, false),
	}}
	if err := r.Timeline("", "").WriteSVG(io.Discard); err != nil {
		t.Error(err)
	}
}

// Commits are shown in the order of the journal, also where the answers came in another, and as one
// where they cannot be seen apart.
func TestNumberFollowsTheJournal(t *testing.T) {
	r := Result{Before: ledger.Balance{Available: 3}}
	for i, micros := range []int64{50, 40, 60, 65, 72} {
		s := fire(i+1, 100, micros, true)
		s.Job = fmt.Sprint("job ", i)
		r.shots = append(r.shots, s)
		r.moves = append(r.moves, move{s.Job, int64(10 + i)})
	}
	want := []timeline.Point{{At: 0, Value: 3}, {At: 50, Value: 11}, {At: 60, Value: 13}, {At: 72, Value: 14}}
	if got := r.points(100, 5); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
