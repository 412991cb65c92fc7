package ledger_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// BenchmarkSettle reports settlements per second: of held jobs that complete and of charged jobs that
// fail, by 64 callers and by one, in batches of up to 64 and of one. Every job is of the same owner.
func BenchmarkSettle(b *testing.B) {
	for _, kind := range []struct {
		name    string
		mode    ledger.Mode
		outcome ledger.Outcome
	}{
		{"hold-completed", ledger.ModeHold, ledger.Completed},
		{"charge-failed", ledger.ModeCharge, ledger.Failed},
	} {
		for _, callers := range []int{64, 1} {
			for _, batch := range []int{64, 1} {
				b.Run(fmt.Sprintf("%s/callers=%d/batch=%d", kind.name, callers, batch), func(b *testing.B) {
					benchmarkSettle(b, kind.mode, kind.outcome, callers, batch)
				})
			}
		}
	}
}

func benchmarkSettle(b *testing.B, mode ledger.Mode, outcome ledger.Outcome, callers, batch int) {
	path := dbtest.SQLite(b)
	prepareBench(b, path, mode, 1)
	benchmarkOpen(b, path, ledger.Options{BatchMax: batch}, callers, outcome)
}

func benchmarkOpen(b *testing.B, dsn string, o ledger.Options, callers int, outcome ledger.Outcome) {
	ctx := b.Context()
	l, err := ledger.Open(ctx, dsn, o)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ResetTimer()
	inParallel(callers, b.N, func(i int) {
		r := ledger.Report{Job: fmt.Sprint("job-", i), Outcome: outcome, Source: ledger.Callback}
		if s, err := l.Settle(ctx, r); err != nil || !s.Won {
			b.Error(s.Verdict, err)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "settles/s")
}

// BenchmarkEngines reports settlements per second of both engines, by 1, 16 and 64 callers, of jobs of one
// owner and of a thousand.
func BenchmarkEngines(b *testing.B) {
	for _, engine := range []struct {
		name string
		dsn  func(testing.TB) string
	}{{"sqlite", dbtest.SQLite}, {"postgres", dbtest.Postgres}} {
		for _, owners := range []int{1, 1000} {
			for _, callers := range []int{1, 16, 64} {
				name := fmt.Sprintf("%s/owners=%d/callers=%d", engine.name, owners, callers)
				b.Run(name, func(b *testing.B) {
					dsn := engine.dsn(b)
					prepareBench(b, dsn, ledger.ModeHold, owners)
					benchmarkOpen(b, dsn, ledger.Options{}, callers, ledger.Completed)
				})
			}
		}
	}
}

// A settlement that moves the credits of one lot by one entry has as many round trips to a server as the
// README says.
func TestRoundTripsOfASettlement(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		trips := 0
		b := &workbench{T: t, dsn: dsn}
		b.Ledger = b.open(ledger.Options{Intercept: func(when db.When, _ string) error {
			if when == db.Before {
				trips++
			}
			return nil
		}})
		b.give("g", 7)
		b.ok(b.create("j", 7, ledger.ModeHold))
		trips = 0
		b.settle("won completed 0 7", "j", ledger.Completed)
		if want := fmt.Sprintf("at least %d round trips", trips); !strings.Contains(string(readme), want) {
			t.Errorf("the README does not say: %s", want)
		}
	})
}

// prepareBench makes the jobs to settle, spread over owners.
func prepareBench(b *testing.B, dsn string, mode ledger.Mode, owners int) {
	l, err := ledger.Open(b.Context(), dsn, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	inParallel(16, owners, func(i int) {
		owner := fmt.Sprint("demo-", i)
		g := ledger.GrantParams{Owner: owner, Amount: int64(b.N) * 7, Key: owner}
		if _, err := l.Grant(b.Context(), g); err != nil {
			b.Error(err)
		}
	})
	inParallel(64, b.N, func(i int) {
		p := ledger.JobParams{
			ID: fmt.Sprint("job-", i), Owner: fmt.Sprint("demo-", i%owners), Cost: 7, Mode: mode,
		}
		if _, err := l.CreateJob(b.Context(), p); err != nil {
			b.Error(err)
		}
	})
}

// inParallel calls do with 0 to n-1 from a number of goroutines.
func inParallel(callers, n int, do func(int)) {
	var wait sync.WaitGroup
	for c := range callers {
		wait.Go(func() {
			for i := c; i < n; i += callers {
				do(i)
			}
		})
	}
	wait.Wait()
}
