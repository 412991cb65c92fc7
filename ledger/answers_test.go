package ledger_test

import (
	"fmt"
	"testing"

	"jobledger/ledger"
)

// Every answer to an attempt stays, with who gave it and why, in the order in which they came; the
// same answer again adds none.
func TestAnswersAreKept(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		b.ok(b.create("j", 7, ledger.ModeHold))
		_, err := b.Submit(b.Context(), "j", "acme")
		b.ok(err)
		ann := ledger.Reconciliation{Job: "j", UpstreamID: "u1", Evidence: "seen in the console", Operator: "ann"}
		bob := ledger.Reconciliation{Job: "j", Evidence: "ticket 4711", Operator: "bob"}
		for range 2 {
			_, err = b.Uncertain(b.Context(), "j", 1, "timeout")
			b.ok(err)
		}
		for range 2 {
			_, err = b.ReconcileAccept(b.Context(), ann)
			b.ok(err)
		}
		for range 2 {
			_, err = b.ReconcileReject(b.Context(), bob)
			b.ok(err)
		}
		story, err := b.Explain(b.Context(), "j")
		b.ok(err)
		var got []string
		for _, a := range story.Answers {
			got = append(got, fmt.Sprintf("%d %d %s %s: %s", a.Attempt, a.N, a.Submission, a.Operator, a.Evidence))
		}
		b.same(got, []string{
			"1 1 uncertain : timeout", "1 2 accepted ann: seen in the console", "1 3 rejected bob: ticket 4711",
		})
		b.balance("10 0 0 0")
	})
}

// A report that names the upstream id of another job's attempt at the same provider settles nothing:
// a provider whose numbers begin again must not end the wrong job.
func TestReportWithAnothersUpstreamID(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 20)
		for _, id := range []string{"j1", "j2"} {
			b.ok(b.create(id, 7, ledger.ModeHold))
			_, err := b.Submit(b.Context(), id, "acme")
			b.ok(err)
		}
		_, err := b.Accepted(b.Context(), "j1", 1, "13")
		b.ok(err)
		r := ledger.Report{Job: "j2", Outcome: ledger.Failed, Source: ledger.Callback, Attempt: 1, UpstreamID: "13"}
		_, err = b.Settle(b.Context(), r)
		b.fails(err, ledger.StaleAttempt)
		b.balance("6 14 0 0")
		r.UpstreamID = "14"
		s, err := b.Settle(b.Context(), r)
		b.ok(err)
		b.told("won failed 7 0", s)
	})
}

// The upstream id that the winning report named is on file from then on: the same report again is a
// duplicate, and a late answer with another id is refused.
func TestWinningReportLeavesItsUpstreamID(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		b.ok(b.create("j", 7, ledger.ModeHold))
		_, err := b.Submit(b.Context(), "j", "acme")
		b.ok(err)
		r := ledger.Report{Job: "j", Outcome: ledger.Failed, Source: ledger.Callback, UpstreamID: "X1"}
		s, err := b.Settle(b.Context(), r)
		b.ok(err)
		b.told("won failed 7 0", s)
		_, err = b.Accepted(b.Context(), "j", 1, "Y1")
		b.fails(err, ledger.IdempotencyMismatch, "upstream_id")
		_, err = b.Accepted(b.Context(), "j", 1, "X1")
		b.ok(err)
		s, err = b.Settle(b.Context(), r)
		b.ok(err)
		b.told("duplicate failed 7 0", s)
	})
}

// A job that ended in other books while its provider had it waits for a person, who can only reject it.
func TestLegacyJobWithBothHandles(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		b.ok(b.create("j", 7, ledger.ModeCharge))
		b.submit("j", ledger.SubmissionAccepted)
		b.exec(`DROP TRIGGER jobs_same_terms`, `UPDATE jobs SET imported = 1, status = 'failed'`)
		list, err := b.UnresolvedJobs(b.Context(), "", 10)
		b.ok(err)
		if len(list) != 1 || list[0].Job != "j" {
			b.Fatalf("unresolved: %+v", list)
		}
		found := ledger.Reconciliation{Job: "j", UpstreamID: "u", Evidence: "seen", Operator: "ann"}
		_, err = b.ReconcileReject(b.Context(), found)
		b.ok(err)
		b.balance("10 0 0 0")
		list, err = b.UnresolvedJobs(b.Context(), "", 10)
		b.ok(err)
		if len(list) != 0 {
			b.Fatalf("unresolved: %+v", list)
		}
	})
}
