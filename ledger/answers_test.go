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
