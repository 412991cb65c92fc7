package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// What the hot paths cost, counted and not timed: a change that makes them dearer has to say so here. Each
// is at most what is written, for a call that has its transaction to itself: with its BEGIN and COMMIT, the
// look at the schema's version, and its savepoint. Allocations are of the whole process, driver included, and
// a twentieth more than were seen. Who makes something cheaper lowers the figure.
var costs = []struct {
	name        string
	mode        ledger.Mode
	outcome     ledger.Outcome
	cost        int64 // of a completed job; 0: the job's
	statements  int
	allocations float64
}{
	{"hold completed", ledger.ModeHold, ledger.Completed, 0, 14, 325},
	{"hold completed for less", ledger.ModeHold, ledger.Completed, 3, 18, 392},
	{"hold failed", ledger.ModeHold, ledger.Failed, 0, 14, 325},
	{"charge completed", ledger.ModeCharge, ledger.Completed, 0, 10, 260},
	{"charge failed", ledger.ModeCharge, ledger.Failed, 0, 17, 385},
}

// The other calls that a job's life consists of.
const (
	createStatements  = 13
	againStatements   = 9 // a second report
	balanceStatements = 0 // a read: it writes nothing
)

// log notes the statements of writes.
type log struct {
	mutex sync.Mutex
	list  []string
}

func (l *log) intercept(when db.When, query string) error {
	if when == db.Before {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.list = append(l.list, strings.Join(strings.Fields(query), " "))
	}
	return nil
}

// take gives what was noted since it was called last.
func (l *log) take() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	list := l.list
	l.list = nil
	return list
}

// countingBench is a workbench with an owner, whose statements are noted.
func countingBench(t *testing.T) (*workbench, *log) {
	t.Helper()
	statements := new(log)
	b := &workbench{T: t, dsn: dbtest.SQLite(t)}
	b.Ledger = b.open(ledger.Options{Intercept: statements.intercept})
	b.give("g", 1_000_000)
	return b, statements
}

// settleNext gives a function that settles one after the other of jobs that are there.
func settleNext(
	b *workbench, prefix string, jobs int, r ledger.Report, mode ledger.Mode,
) func() ledger.Settlement {
	b.Helper()
	for n := range jobs {
		b.ok(b.create(fmt.Sprint(prefix, n), 7, mode))
	}
	n := 0
	return func() ledger.Settlement {
		b.Helper()
		own := r
		own.Job = fmt.Sprint(prefix, n)
		n++
		s, err := b.Settle(b.Context(), own)
		b.ok(err)
		return s
	}
}

func reportOf(outcome ledger.Outcome, cost int64) ledger.Report {
	r := ledger.Report{Outcome: outcome, Source: ledger.Callback}
	if cost > 0 {
		r.Cost = &cost
	}
	return r
}

func TestStatementsOfASettlement(t *testing.T) {
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			b, statements := countingBench(t)
			next := settleNext(b, "j", 2, reportOf(c.outcome, c.cost), c.mode)
			next()
			statements.take()
			if s := next(); !s.Won {
				t.Fatalf("%+v", s)
			}
			list := statements.take()
			if len(list) > c.statements {
				t.Errorf("%d statements, at most %d:\n%s", len(list), c.statements, strings.Join(list, "\n"))
			}
			// One alone pays for all of its transaction, once.
			for _, one := range []string{"BEGIN IMMEDIATE", "COMMIT"} {
				if n := len(slices.DeleteFunc(slices.Clone(list), func(q string) bool { return q != one })); n != 1 {
					t.Errorf("%d times %s in\n%s", n, one, strings.Join(list, "\n"))
				}
			}
			// And no table's row is written a second time.
			seen := map[string]bool{}
			for _, q := range list {
				if words := strings.Fields(q); words[0] == "UPDATE" && c.cost == 0 {
					if seen[words[1]] {
						t.Errorf("%s is updated twice:\n%s", words[1], strings.Join(list, "\n"))
					}
					seen[words[1]] = true
				}
			}
		})
	}
}

func TestStatementsOfTheOtherCalls(t *testing.T) {
	b, statements := countingBench(t)
	b.ok(b.create("first", 7, ledger.ModeHold))
	for _, c := range []struct {
		name string
		most int
		call func() error
	}{
		{"create", createStatements, func() error { return b.create("second", 7, ledger.ModeHold) }},
		{"settle", costs[0].statements, func() error {
			_, err := b.Settle(b.Context(), ledger.Report{Job: "first", Outcome: ledger.Failed, Source: ledger.Poll})
			return err
		}},
		{"again", againStatements, func() error {
			_, err := b.Settle(b.Context(), ledger.Report{Job: "first", Outcome: ledger.Failed, Source: ledger.Poll})
			return err
		}},
		{"balance", balanceStatements, func() error {
			_, err := b.Balance(b.Context(), ledger.BalanceParams{Owner: "demo"})
			return err
		}},
	} {
		statements.take()
		b.ok(c.call())
		if list := statements.take(); len(list) > c.most {
			t.Errorf("%s: %d statements, at most %d:\n%s", c.name, len(list), c.most, strings.Join(list, "\n"))
		}
	}
}

// The race detector allocates for itself, so that it counts otherwise; CI runs this test without it.
func TestAllocationsOfASettlement(t *testing.T) {
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			const runs = 50
			b := &workbench{T: t, dsn: dbtest.SQLite(t)}
			b.Ledger = b.open(ledger.Options{})
			b.give("g", 1_000_000)
			next := settleNext(b, "j", runs+1, reportOf(c.outcome, c.cost), c.mode)
			n := testing.AllocsPerRun(runs, func() { next() })
			if n > c.allocations && !raceDetector {
				t.Errorf("%.0f allocations, at most %.0f", n, c.allocations)
			}
			t.Logf("%.0f allocations", n)
		})
	}
}
