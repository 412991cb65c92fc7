package timeline

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// lostUpdate is a short timeline, as a lesson makes it.
func lostUpdate() *Timeline {
	const reads = "SELECT held FROM balances WHERE owner = 'alice'\n-> 0"
	const writes = "UPDATE balances SET held = 205 WHERE owner = 'alice'\n-> 1 row"
	return &Timeline{
		Title: "Lost update: two holds, one of them gone",
		Description: "Both transactions read what is held before either writes it, and each writes what it " +
			"read plus its own 205. The second write wipes out the first, and nobody is told.",
		Caption: "jobledger lab run lost-update",
		Lanes:   []string{"T1", "T2"},
		Unit:    Steps,
		Events: []Event{
			{0, 1, 1, Begin, "BEGIN", ""},
			{1, 2, 2, Begin, "BEGIN", ""},
			{0, 3, 4, Read, "reads 0", reads},
			{1, 4, 5, Read, "reads 0", reads},
			{0, 5, 6, Write, "writes 205", writes},
			{1, 6, 8, Wait, "waits for T1", "waits for the row that T1 has locked"},
			{0, 7, 7, Commit, "COMMIT", "COMMIT\n-> ok"},
			{1, 8, 9, Write, "writes 205", writes},
			{1, 9, 9, Commit, "COMMIT", "COMMIT\n-> ok"},
		},
		Number: Series{Name: "held", Points: []Point{{0, 0}, {7, 205}}, Want: new(int64(410))},
	}
}

// crowd is a timeline of steps in which n actors do all that there is to do, some of it in one step,
// while the number changes at every step.
func crowd(n int) *Timeline {
	t := &Timeline{
		Title: "A crowd", Description: "Everybody does everything.", Caption: "jobledger lab run crowd",
		Unit: Steps, Number: Series{Name: "available", Want: new(int64(50))},
	}
	for lane := range n {
		t.Lanes = append(t.Lanes, fmt.Sprintf("worker %d", lane+1))
	}
	step := int64(1)
	for i, kind := range []Kind{Begin, Read, Retry, Write, Wait, Refused, Rollback, Call, Begin, Commit, Crash} {
		for lane := range n {
			e := Event{lane, step, step, kind, string(kind) + strings.Repeat(" x", (i*lane)%9), ""}
			if bar, _ := kind.isBar(); bar {
				e.End++
			}
			t.Events = append(t.Events, e)
			if (i+lane)%3 > 0 {
				step++
			}
			t.Number.Points = append(t.Number.Points, Point{step, int64(i * lane % 60)})
		}
	}
	return t
}

// racing is a race by the clock: each of n workers makes some calls, one after the other, in so many
// microseconds.
func racing(n, calls int, micros int64) *Timeline {
	t := &Timeline{
		Title:       fmt.Sprintf("%d notifications race for one job", n*calls),
		Description: "One report wins; all others learn how the job ended.",
		Caption:     "jobledger race", Unit: Micros, Number: Series{Name: "available", Want: new(int64(7))},
	}
	r := rand.New(rand.NewPCG(uint64(n), uint64(calls)))
	share := micros / int64(calls)
	for lane := range n {
		t.Lanes = append(t.Lanes, fmt.Sprintf("process 2, worker %d", lane+1))
		for i := range calls {
			start := int64(i)*share + r.Int64N(share/4)
			end := start + 1 + r.Int64N(share/2)
			kind := []Kind{Commit, Refused, Retry}[r.IntN(3)]
			t.Events = append(t.Events, Event{lane, start, end, Call, "lost the race", "failed: lost"},
				Event{lane, end, end, kind, string(kind), ""})
		}
	}
	for i := range calls {
		t.Number.Points = append(t.Number.Points, Point{int64(i) * share, int64(i)})
	}
	return t
}

// samples are timelines of every size that pictures are made of.
func samples() map[string]*Timeline {
	all := map[string]*Timeline{
		"a lesson": lostUpdate(),
		"nothing":  {Unit: Steps},
		"a number": {Unit: Micros, Number: Series{Name: "n", Points: []Point{{0, 1 << 53}}, Want: new(int64(-1))}},
		"a little too few": {
			Unit: Steps, Lanes: []string{"one"}, Events: []Event{{0, 1, 1, Crash, "CRASH", ""}},
			Number: Series{Name: "n", Points: []Point{{0, 0}, {1, 999}, {1, 998}}, Want: new(int64(1001))},
		},
		"a little too many": {
			Unit: Micros, Number: Series{Name: "n", Points: []Point{{0, 0}, {9, 1001}}, Want: new(int64(998))},
		},
	}
	for _, n := range []int{1, 2, 8, 16} {
		all[fmt.Sprintf("a crowd of %d", n)] = crowd(n)
		for _, calls := range []int{1, 6, 40, 120} {
			all[fmt.Sprintf("a race of %d with %d calls", n, calls)] = racing(n, calls, 90_000)
		}
	}
	return all
}
