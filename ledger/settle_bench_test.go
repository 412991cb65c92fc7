package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"jobledger/ledger"
)

// BenchmarkSettle settles charged jobs as failed, so that each settlement writes a refund.
func BenchmarkSettle(b *testing.B) {
	for _, c := range []struct {
		name           string
		callers, batch int
	}{
		{"callers=64/batch=64", 64, 64},
		{"callers=64/batch=1", 64, 1},
		{"callers=1/batch=64", 1, 64},
		{"callers=1/batch=1", 1, 1},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkSettle(b, c.callers, c.batch) })
	}
}

func benchmarkSettle(b *testing.B, callers, batch int) {
	ctx := context.Background()
	path := filepath.Join(b.TempDir(), "bench.db")
	if _, err := ledger.Create(ctx, path, ledger.Options{}); err != nil {
		b.Fatal(err)
	}
	prepareBench(b, path, b.N)
	l, err := ledger.Open(ctx, path, ledger.Options{BatchMax: batch})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ResetTimer()
	inParallel(callers, b.N, func(i int) {
		r := ledger.Report{Job: fmt.Sprint("job-", i), Outcome: ledger.Failed, Source: ledger.Callback}
		if s, err := l.Settle(ctx, r); err != nil || !s.Won {
			b.Error(s.Verdict, err)
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "settles/s")
}

func prepareBench(b *testing.B, path string, jobs int) {
	ctx := context.Background()
	l, err := ledger.Open(ctx, path, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	g := ledger.GrantParams{Owner: "demo", Amount: int64(jobs) * 7, Key: "bench"}
	if _, err := l.Grant(ctx, g); err != nil {
		b.Fatal(err)
	}
	inParallel(64, jobs, func(i int) {
		p := ledger.JobParams{ID: fmt.Sprint("job-", i), Owner: "demo", Cost: 7, Mode: ledger.ModeCharge}
		if _, err := l.CreateJob(ctx, p); err != nil {
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
