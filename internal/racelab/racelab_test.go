package racelab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// TestMain lets this binary be the child processes of a race, also such as fail.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "race-") {
		os.Exit(m.Run())
	}
	var out io.Writer = os.Stdout
	switch os.Args[1] {
	case "race-die":
		out = &failing{after: 10, fail: func() {
			self, err := os.FindProcess(os.Getpid())
			fmt.Fprintln(os.Stderr, "goodbye", err, self.Kill())
			hang()
		}}
	case "race-hang":
		out = &failing{after: 10, fail: hang}
	case "race-hang-unready":
		out = &failing{fail: hang}
	case "race-leave":
		out = &failing{after: 10, fail: func() { os.Exit(0) }}
	case "race-refuse":
		fmt.Fprintln(os.Stderr, "first line\nno race today")
		os.Exit(3)
	}
	if pids := os.Getenv("RACE_PIDS"); pids != "" {
		if err := os.WriteFile(filepath.Join(pids, fmt.Sprint(os.Getpid())), nil, 0o600); err != nil {
			os.Exit(4)
		}
	}
	if err := Child(context.Background(), os.Stdin, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(ledger.CodeOf(err).Info().Exit)
	}
	os.Exit(0)
}

// hang is silence that outlasts every test, but does not stay if nobody ends it.
func hang() {
	time.Sleep(2 * time.Minute)
	os.Exit(5)
}

// failing is the stdout of a child that fails at a certain message.
type failing struct {
	after int
	fail  func()
}

func (f *failing) Write(b []byte) (int, error) {
	if f.after--; f.after < 0 {
		f.fail()
	}
	return os.Stdout.Write(b)
}

func shape(workers, notifications, processes, jobs int, cost int64, mode ledger.Mode, mix bool) Options {
	return Options{
		Workers: workers, Notifications: notifications, Processes: processes, Jobs: jobs,
		Cost: cost, Mode: mode, Mix: mix,
	}
}

// options is a race of the usual shape, but for a change.
func options(change func(*Options)) Options {
	o := shape(8, 16, 1, 1, 7, ledger.ModeCharge, false)
	change(&o)
	return o
}

func TestRace(t *testing.T) {
	const charge, hold = ledger.ModeCharge, ledger.ModeHold
	for _, c := range []struct {
		name            string
		options         Options
		available, used int64 // -1: it depends on who wins
		refunds         int
	}{
		{"one job", shape(8, 16, 1, 1, 7, charge, false), 7, 0, 1},
		{"one worker", shape(1, 3, 1, 4, 5, charge, false), 20, 0, 4},
		{"held", shape(6, 9, 1, 5, 11, hold, false), 55, 0, 0},
		{"one notification each, mixed", shape(3, 1, 1, 5, 2, charge, true), 4, 6, 2},
		{"held, one each, mixed", shape(3, 1, 1, 5, 2, hold, true), 4, 6, 0},
		{"mixed", shape(8, 16, 1, 10, 7, charge, true), -1, -1, -1},
		{"more workers than notifications", shape(16, 1, 2, 3, 1, charge, false), 3, 0, 3},
		{"processes", shape(4, 24, 3, 4, 9, charge, false), 36, 0, 4},
		{"processes, held, mixed", shape(3, 25, 2, 6, 9, hold, true), -1, -1, 0},
		{"the largest cost", shape(2, 2, 1, 1, ledger.AmountMax, charge, false), ledger.AmountMax, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, dsn string) {
				c := c // who wins depends on the engine, too
				o := c.options
				o.DSN = dsn
				steps := 0
				o.Progress = func(done, total int) {
					if steps++; done != steps || total != o.Jobs*(1+o.Notifications) {
						t.Errorf("progress is %d of %d at step %d", done, total, steps)
					}
				}
				r, err := Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				failed := checkObservers(t, o, r)
				if c.available < 0 {
					c.available, c.used = failed*o.Cost, (int64(o.Jobs)-failed)*o.Cost
				}
				if c.refunds < 0 {
					c.refunds = int(failed)
				}
				checkLedger(t, dsn, r, c.available, c.used)
				if r.RefundEntries != c.refunds || r.Returned != c.available || r.Consumed != c.used {
					t.Errorf("%d refunds, %d returned, %d consumed; want %d, %d, %d",
						r.RefundEntries, r.Returned, r.Consumed, c.refunds, c.available, c.used)
				}
				if !r.Audit.OK || r.Checks == 0 || steps != o.Jobs*(1+o.Notifications) {
					t.Errorf("audit %v with %d checks, %d steps", r.Audit, r.Checks, steps)
				}
			})
		})
	}
}

// checkObservers counts the jobs that failed, and proves by itself that each was won once and that
// all of its observers were told the same.
func checkObservers(t *testing.T, o Options, r Result) (failed int64) {
	t.Helper()
	winner, seen := map[string]Observer{}, map[[2]int]bool{}
	for _, b := range r.Observers {
		seen[[2]int{b.Process, b.Worker}] = true
		if _, twice := winner[b.Job]; twice && b.Won {
			t.Errorf("job %s was won twice", b.Job)
		}
		if b.Won {
			winner[b.Job] = b
			if b.Outcome == ledger.Failed {
				failed++
			}
		}
		if b.Outcome != winner[b.Job].Reported || b.Micros <= 0 {
			t.Errorf("%+v was told otherwise than the winner: %+v", b, winner[b.Job])
		}
	}
	total := o.Jobs * o.Notifications
	if r.Jobs != o.Jobs || len(winner) != o.Jobs || r.Wins != o.Jobs || r.Notifications != total ||
		len(r.Observers) != total || len(seen) != min(total, o.Workers*o.Processes) {
		t.Errorf("%d jobs, %d winners, %d wins, %d notifications, %d observers by %d workers",
			r.Jobs, len(winner), r.Wins, r.Notifications, len(r.Observers), len(seen))
	}
	return failed
}

// checkLedger compares what the ledger holds after the race, read anew, with exact amounts.
func checkLedger(t *testing.T, dsn string, r Result, available, used int64) {
	t.Helper()
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := l.Balance(t.Context(), ledger.BalanceParams{Owner: r.Owner})
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Balance{Owner: r.Owner, Available: available, Used: used}
	for _, got := range []ledger.Balance{b, r.Balance} {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("balance %+v, want %+v", got, want)
		}
	}
	if before := r.Before; before.Available != 0 || before.Held+before.Used != available+used {
		t.Errorf("balance before the race %+v, want all of %d held or used", before, available+used)
	}
}

func TestRaceRefusesOptions(t *testing.T) {
	for field, change := range map[string]func(*Options){
		"workers":       func(o *Options) { o.Workers = 0 },
		"workers ":      func(o *Options) { o.Workers = WorkersMax + 1 },
		"workers  ":     func(o *Options) { o.Workers, o.Processes = 17, 64 },
		"processes":     func(o *Options) { o.Processes = ProcessesMax + 1 },
		"jobs":          func(o *Options) { o.Jobs = JobsMax + 1 },
		"notifications": func(o *Options) { o.Notifications = NotificationsMax + 1 },
		// The limit of both together.
		"notifications ": func(o *Options) { o.Notifications, o.Jobs = 1000, 1001 },
		"cost":           func(o *Options) { o.Cost = 0 },
		"cost ":          func(o *Options) { o.Cost, o.Jobs = ledger.AmountMax/2, 3 },
		"mode":           func(o *Options) { o.Mode = "" },
		"db":             func(o *Options) { o.DSN = filepath.Join(t.TempDir(), "none.db") },
	} {
		_, err := Run(t.Context(), options(change))
		e, ok := errors.AsType[*ledger.Error](err)
		if field = strings.TrimSpace(field); !ok || e.Code != ledger.Invalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestScratchIsDeleted(t *testing.T) {
	for _, c := range []struct {
		name      string
		processes int
		cancelAt  int // the step at which the caller gives up; 0: never
	}{
		{"done", 1, 0}, {"creating jobs", 1, 3}, {"firing", 1, 60}, {"processes firing", 3, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			met := false
			_, err := Run(ctx, options(func(o *Options) {
				o.Processes, o.Jobs = c.processes, 20
				o.Progress = func(done, _ int) {
					inside, err := os.ReadDir(dir)
					met = met || err == nil && len(inside) == 1
					if done == c.cancelAt {
						cancel(errors.New("a signal"))
					}
				}
			}))
			if canceled := errors.Is(err, context.Canceled); canceled != (c.cancelAt > 0) || err != nil && !canceled {
				t.Errorf("the race ended with %v", err)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != 0 || !met {
				t.Errorf("left behind: %v, %v; was there: %v", left, err, met)
			}
		})
	}
}

func TestRetryIsBounded(t *testing.T) {
	busy := &ledger.Error{Code: ledger.Busy}
	for _, c := range []struct{ answers, calls, busy int }{{0, 1, 0}, {4, 5, 4}, {5, 5, 5}, {9, 5, 5}} {
		calls := 0
		n, err := retry(t.Context(), func() error {
			if calls++; calls <= c.answers {
				return busy
			}
			return nil
		})
		if calls != c.calls || len(n) != c.busy || !slices.IsSorted(n) || (err != nil) != (c.answers >= triesMax) {
			t.Errorf("%d busy answers: %d calls, counted at %d, %v", c.answers, calls, n, err)
		}
	}
	other, calls := errors.New("not busy"), 0
	n, err := retry(t.Context(), func() error { calls++; return other })
	if calls != 1 || n != nil || err != other {
		t.Errorf("an error other than BUSY: %d calls, counted at %d, %v", calls, n, err)
	}
}
