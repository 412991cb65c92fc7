package ledger_test

import (
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// Every statement that a job's life sends while it writes finds its rows through an index, and sorts
// nothing: what it takes does not grow with the ledger. The statements are those that were really sent.
func TestPlansOfEveryWrite(t *testing.T) {
	sent := map[string]bool{}
	b, statements := countingBench(t)
	for _, mode := range []ledger.Mode{ledger.ModeHold, ledger.ModeCharge} {
		live(b, string(mode), mode)
	}
	for _, q := range statements.take() {
		sent[q] = true
	}
	pool := dbtest.Raw(t, b.dsn)
	looked := 0
	for q := range sent {
		verb, _, _ := strings.Cut(q, " ")
		if !strings.Contains("SELECT UPDATE INSERT DELETE WITH", verb) {
			continue
		}
		looked++
		var plan []struct {
			ID, Parent, Notused int
			Detail              string
		}
		if err := pool.Select(&plan, "EXPLAIN QUERY PLAN "+q, make([]any, strings.Count(q, "?"))...); err != nil {
			t.Errorf("%s: %v", q, err)
		}
		for _, step := range plan {
			for _, bad := range []string{"SCAN", "TEMP B-TREE", "AUTOMATIC"} {
				bounded := strings.Contains(q, "LIMIT ?) d") // a sweep's share of the lots, found by an index
				if strings.Contains(step.Detail, bad) && !bounded {
					t.Errorf("%s\n\tin %s", step.Detail, q)
				}
			}
		}
	}
	if looked < 25 {
		t.Errorf("%d statements were looked at", looked)
	}
}

// live does with jobs of a mode all that a provider and its observers do.
func live(b *workbench, name string, mode ledger.Mode) {
	b.Helper()
	ctx := b.Context()
	for _, end := range []string{"completed", "less", "failed", "conflict", "canceled", "timed out"} {
		job := name + " " + end
		p := ledger.JobParams{ID: job, Owner: "demo", Cost: 7, Mode: mode}
		if end == "timed out" {
			p.Deadline = on(1)
		}
		_, err := b.CreateJob(ctx, p)
		b.ok(err)
		report := ledger.Report{Job: job, Outcome: ledger.Completed, Source: ledger.Callback}
		switch end {
		case "less":
			report.Cost = new(int64)
		case "failed":
			report.Outcome = ledger.Failed
		case "conflict":
			_, err = b.Submit(ctx, job, "acme")
			b.ok(err)
			_, err = b.Accepted(ctx, job, 1, "up "+job)
			b.ok(err)
			report.UpstreamID = "up " + job
		case "canceled":
			_, err = b.Cancel(ctx, job, "unwanted")
			b.ok(err)
			continue
		case "timed out":
			b.at(2000)
			_, err = b.Sweep(ctx, 10)
			b.ok(err)
			continue
		}
		_, err = b.Settle(ctx, report)
		b.ok(err)
		report.Source = ledger.Poll
		if end == "conflict" {
			report.Outcome = ledger.Failed
		}
		_, err = b.Settle(ctx, report)
		b.ok(err)
	}
}
