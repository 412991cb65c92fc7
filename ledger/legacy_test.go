package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
)

// settleLegacy settles a legacy job and checks what is told: "verdict status returned consumed".
func (b *workbench) settleLegacy(want, job string) {
	b.Helper()
	s, err := b.SettleLegacy(b.Context(), job)
	b.ok(err)
	b.told(want, s)
}

// TestCaseELegacyRefunds: matching legacy refunds count, so that only the outstanding difference is
// paid; those of another job or owner never do.
func TestCaseELegacyRefunds(t *testing.T) {
	other := `"type":"balance","owner":"other","available":9`
	for name, c := range map[string]struct {
		available int
		refunds   []string
		unmatched int
		pays      string
	}{
		"none":        {0, nil, 0, "won failed 7 0"},
		"one partial": {3, []string{refundRow("a", "j", 3)}, 0, "won failed 4 0"},
		"several partial": {6, []string{refundRow("a", "j", 1), refundRow("b", "j", 2), refundRow("c", "j", 3)}, 0,
			"won failed 1 0"},
		"of another job":  {7, []string{refundRow("a", "k", 7)}, 0, "won failed 7 0"},
		"of no known job": {7, []string{refundRow("a", "nowhere", 7)}, 1, "won failed 7 0"},
		"of another owner": {0, []string{`"type":"refund","ref":"a","job":"j","owner":"other","amount":7`}, 1,
			"won failed 7 0"},
		"a job with a like": {7, []string{refundRow("x", "j:a", 7)}, 0, "won failed 7 0"},
		"all kinds": {12, []string{refundRow("a", "j", 2), refundRow("b", "k", 7), refundRow("c", "j", 3),
			`"type":"refund","ref":"d","job":"j","owner":"other","amount":2`}, 1, "won failed 2 0"},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorkbench(t, func(b *workbench) {
				r := b.imports(append([]string{balanceRow(c.available), other, jobRow("j", 7, "failed", rejected),
					jobRow("k", 7, "failed"), jobRow("j:a", 7, "failed")}, c.refunds...)...)
				if len(r.Unmatched) != c.unmatched {
					b.Fatalf("unmatched %v, want %d", r.Unmatched, c.unmatched)
				}
				before := b.available()
				b.settleLegacy(c.pays, "j")
				duplicate := "duplicate" + c.pays[len("won"):]
				b.settleLegacy(duplicate, "j")
				b.settle(duplicate, "j", ledger.Failed)
				var due int64
				fmt.Sscanf(c.pays, "won failed %d", &due)
				if got := b.available(); got != before+due {
					b.Fatalf("%d credits after %s of %d", got, c.pays, before)
				}
			})
		})
	}
	t.Run("in full", func(t *testing.T) {
		eachWorkbench(t, func(b *workbench) {
			b.imports(balanceRow(7), jobRow("j", 7, "failed"), refundRow("a", "j", 3), refundRow("b", "j", 4))
			b.settleLegacy("duplicate failed 0 0", "j")
			b.evidence("j", "operator failed duplicate 1", "operator failed won 1", "job.failed")
			b.balance("7 0 0 0")
		})
	})
}

func (b *workbench) available() int64 {
	b.Helper()
	a, err := b.Balance(b.Context(), ledger.BalanceParams{Owner: "demo"})
	b.ok(err)
	return a.Available
}

// TestLegacyNeedsEvidence: a legacy failure is no evidence of a rejection. It is not recovered by a
// settlement, a cancellation, a sweep or a report of the failure; a reconciliation with evidence settles
// it, once.
func TestLegacyNeedsEvidence(t *testing.T) {
	for _, status := range []ledger.Status{"failed", "canceled", "timed_out"} {
		for _, mode := range []string{"charge", "hold"} {
			eachWorkbench(t, func(b *workbench) {
				b.imports(balanceRow(0), jobRow("j", 7, string(status), `"mode":"`+mode+`","reason":"E42"`))
				before := map[string]string{"charge": "0 0 7 0", "hold": "0 7 0 0"}[mode]
				_, err := b.SettleLegacy(b.Context(), "j")
				b.fails(err, ledger.ReconciliationRequired)
				b.settle("duplicate "+string(status)+" 0 0", "j", ledger.Outcome(status))
				_, err = b.Cancel(b.Context(), "j", "")
				b.ok(err)
				_, err = b.Sweep(b.Context(), 10)
				b.ok(err)
				b.balance(before)
				found := ledger.Reconciliation{Job: "j", Evidence: "their dashboard has no such job", Operator: "ann"}
				for i, verdict := range []ledger.Verdict{ledger.Won, ledger.Won} { // the second is a replay
					r, err := b.ReconcileReject(b.Context(), found)
					b.ok(err)
					b.told(fmt.Sprint(verdict, " ", status, " 7 0"), *r.Settlement)
					if r.Replayed != (i == 1) || r.Job.Reason != "E42" || r.Job.Submission != ledger.SubmissionRejected {
						b.Fatalf("reconciled %+v", r)
					}
				}
				b.settleLegacy("duplicate "+string(status)+" 7 0", "j")
				b.balance("7 0 0 0")
			})
		}
	}
}

// TestExplainLegacy: the story of a legacy job has its legacy refunds, and says what is still open.
func TestExplainLegacy(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.imports(balanceRow(3), jobRow("j", 7, "failed"), refundRow("r", "j", 3), jobRow("j:r", 1, "failed"),
			refundRow("s", "j:r", 1))
		story, err := b.Explain(b.Context(), "j")
		b.ok(err)
		var steps []string
		for _, s := range story.Timeline {
			steps = append(steps, s.What)
		}
		b.same(steps, []string{"created", "charge", "refund", "attempt"})
		if len(story.Entries) != 2 || len(story.Lots) != 2 || len(story.Open) != 1 ||
			!strings.Contains(story.Open[0], "4 credits are still used") {
			b.Errorf("story %+v", story)
		}
	})
}

// TestSettleLegacyRefuses what is no legacy job.
func TestSettleLegacyRefuses(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.imports(balanceRow(0), jobRow("open", 7, "pending", rejected), jobRow("done", 7, "completed"))
		for job, code := range map[string]ledger.Code{
			"open": ledger.NotAllowed, "nowhere": ledger.NotFound, "": ledger.Invalid,
		} {
			b.unchanged(func() {
				_, err := b.SettleLegacy(b.Context(), job)
				b.fails(err, code)
			})
		}
		b.settleLegacy("duplicate completed 0 7", "done")
		_, err := b.ReconcileAccept(b.Context(), ledger.Reconciliation{
			Job: "done", Provider: "p", UpstreamID: "u", Evidence: "invoice", Operator: "ann",
		})
		b.ok(err)
		b.balance("0 0 14 0")
	})
}

// TestAuditOfLegacyRefunds: the audit finds a legacy refund that is above what was due, of a hold, or
// not of the job that its key names.
func TestAuditOfLegacyRefunds(t *testing.T) {
	for name, c := range map[string]struct{ check, problem, change string }{
		"more than the cost": {"returns-within-cost", "returned is 13",
			`UPDATE entries SET amount = 8 WHERE event_key LIKE 'legacy%'`},
		"more than was due": {"job-settlements", "refund in the journal is 5, expected 4",
			`UPDATE entries SET amount = 3 WHERE event_key LIKE 'legacy%'`},
		"gone": {"job-settlements", "expected 7",
			`DELETE FROM entries WHERE event_key LIKE 'legacy%'`},
		"of a hold": {"job-settlements", "legacy refunds are 2", `UPDATE jobs SET mode = 'hold'`},
		"another key": {"event-keys", "legacy-refund:k:r",
			`UPDATE entries SET event_key = 'legacy-refund:k:r' WHERE event_key LIKE 'legacy%'`},
		"not told": {"settlement-events", "returned is 7, expected 5",
			`UPDATE events SET payload = replace(payload, '"returned":5', '"returned":7')`},
	} {
		t.Run(name, func(t *testing.T) {
			eachBrokenWorkbench(t, func(b *workbench) {
				b.imports(balanceRow(2), jobRow("j", 7, "failed", rejected), refundRow("r", "j", 2))
				b.settleLegacy("won failed 5 0", "j")
				b.audit()
				b.exec(`DROP TRIGGER entries_no_update`, `DROP TRIGGER entries_no_delete`, `DROP TRIGGER jobs_same_terms`,
					`DROP TRIGGER events_no_update`, c.change)
				r, err := b.Audit(b.Context(), ledger.AuditParams{})
				b.ok(err)
				if !slices.ContainsFunc(r.Checks, func(k ledger.AuditCheck) bool {
					return k.Name == c.check && strings.Contains(fmt.Sprint(k.Violations), c.problem)
				}) {
					b.Errorf("%s does not find it", c.check)
				}
			})
		})
	}
}
