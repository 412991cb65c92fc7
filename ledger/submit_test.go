package ledger_test

import (
	"fmt"
	"testing"

	"jobledger/ledger"
)

// pending gives demo 7 credits more and a job that holds them.
func (b *workbench) pending(job string) {
	b.Helper()
	b.give("for "+job, 7)
	b.ok(b.create(job, 7, ledger.ModeHold))
}

// mark submits a job to a provider and checks the number of the attempt.
func (b *workbench) mark(job, provider string, attempt int64) {
	b.Helper()
	r, err := b.Submit(b.Context(), job, provider)
	b.ok(err)
	if r.Attempt != attempt || r.Job.Attempt != attempt || r.Job.Status != ledger.Processing ||
		r.Job.Submission != ledger.SubmissionSubmitting {
		b.Fatalf("marked %+v, want attempt %d", r, attempt)
	}
}

// replied gives, as text, what an answer to a submission said: "submission replayed", and how the
// job has ended, if it has.
func replied(r ledger.AnswerResult, err error) string {
	if err != nil {
		return string(ledger.CodeOf(err))
	}
	text := string(r.Job.Submission)
	if r.Replayed {
		text += " replayed"
	}
	if s := r.Settlement; s != nil {
		text += fmt.Sprint(": ", s.Verdict, " ", s.Reported, ", ", s.Job.Status, " ", s.Returned, " ", s.Consumed)
	}
	return text
}

// answered checks what an answer to a submission said.
func (b *workbench) answered(want string, r ledger.AnswerResult, err error) {
	b.Helper()
	if got := replied(r, err); got != want {
		b.Fatalf("said %q (%v), want %q", got, err, want)
	}
}

func (b *workbench) accepted(want, job string, attempt int64, upstream string) {
	b.Helper()
	r, err := b.Accepted(b.Context(), job, attempt, upstream)
	b.answered(want, r, err)
}

func (b *workbench) rejected(want, job string, attempt int64, evidence string, retry bool) {
	b.Helper()
	r, err := b.Rejected(b.Context(), job, attempt, evidence, retry)
	b.answered(want, r, err)
}

func (b *workbench) uncertain(want, job string, attempt int64, reason string) {
	b.Helper()
	r, err := b.Uncertain(b.Context(), job, attempt, reason)
	b.answered(want, r, err)
}

func (b *workbench) reconciled(want string, reject bool, r ledger.Reconciliation) {
	b.Helper()
	do := b.ReconcileAccept
	if reject {
		do = b.ReconcileReject
	}
	result, err := do(b.Context(), r)
	b.answered(want, result, err)
}

// The same answer again is a replay that writes nothing, other content is a mismatch that names what
// differs, and an answer that comes after another kind of answer is refused.
func TestAnswersReplay(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		b.uncertain("uncertain", "j", 1, "timeout")
		b.unchanged(func() {
			b.uncertain("uncertain replayed", "j", 1, "timeout")
			_, err := b.Uncertain(b.Context(), "j", 1, "reset")
			b.fails(err, ledger.IdempotencyMismatch, "reason")
			_, err = b.Submit(b.Context(), "j", "acme")
			b.fails(err, ledger.NotAllowed)
		})
		b.accepted("accepted", "j", 1, "u1")
		b.unchanged(func() {
			b.accepted("accepted replayed", "j", 1, "u1")
			_, err := b.Accepted(b.Context(), "j", 1, "u2")
			b.fails(err, ledger.IdempotencyMismatch, "upstream_id")
			b.uncertain("NOT_ALLOWED", "j", 1, "timeout")
			b.rejected("NOT_ALLOWED", "j", 1, "no", false)
			b.accepted("NOT_FOUND", "j", 2, "u1")
			b.accepted("INVALID", "j", 0, "u1")
			b.accepted("NOT_FOUND", "k", 1, "u1")
		})
		b.settle("won completed 0 7", "j", ledger.Completed)
		b.unchanged(func() { b.accepted("accepted replayed: duplicate completed, completed 0 7", "j", 1, "u1") })
	})
}

// A rejection settles the job once; its replay says how, and a retry of it is refused.
func TestRejectionReplays(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		b.rejected("rejected: won failed, failed 7 0", "j", 1, "no", false)
		b.unchanged(func() {
			b.rejected("rejected replayed: won failed, failed 7 0", "j", 1, "no", false)
			_, err := b.Rejected(b.Context(), "j", 1, "never", false)
			b.fails(err, ledger.IdempotencyMismatch, "evidence")
			b.rejected("NOT_ALLOWED", "j", 1, "no", true)
			b.accepted("NOT_ALLOWED", "j", 1, "u1")
			_, err = b.Submit(b.Context(), "j", "acme")
			b.fails(err, ledger.NotAllowed)
		})
		b.evidence("j", "poll failed won 1", "job.failed")
		b.journal("grant 7: 7 0 0 0", "hold 7: 0 7 0 0", "release 7: 7 0 0 0")
	})
}

// A rejection that came after the job's end is evidence against it, or for it.
func TestRejectionOfAnEndedJob(t *testing.T) {
	for outcome, want := range map[ledger.Outcome]string{
		ledger.Completed: "conflict failed, completed 0 7",
		ledger.Failed:    "duplicate failed, failed 7 0",
	} {
		eachWorkbench(t, func(b *workbench) {
			b.pending("j")
			b.mark("j", "acme", 1)
			_, err := b.report("j", outcome)
			b.ok(err)
			b.rejected("NOT_ALLOWED", "j", 1, "no", true)
			b.rejected("rejected: "+want, "j", 1, "no", false)
			b.unchanged(func() { b.rejected("rejected replayed: "+want, "j", 1, "no", false) })
		})
	}
}

// A retry after a rejection is attempt 2 under the same hold. Reports for attempt 1 are kept, and
// move nothing; the answer to attempt 1 can still be repeated, but not changed.
func TestRetryIsAnotherAttempt(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		b.rejected("rejected", "j", 1, "no capacity", true)
		b.rejected("rejected replayed", "j", 1, "no capacity", true)
		b.mark("j", "other", 2)
		b.balance("0 7 0 0")
		b.unchanged(func() {
			b.rejected("submitting replayed", "j", 1, "no capacity", true)
			b.rejected("STALE_ATTEMPT", "j", 1, "no capacity", false)
			b.rejected("IDEMPOTENCY_MISMATCH", "j", 1, "no", true)
			b.accepted("STALE_ATTEMPT", "j", 1, "u1")
			b.uncertain("STALE_ATTEMPT", "j", 1, "timeout")
		})
		for _, outcome := range ledger.Outcomes {
			r := ledger.Report{Job: "j", Outcome: outcome, Source: ledger.Callback, Attempt: 1}
			_, err := b.Settle(b.Context(), r)
			b.fails(err, ledger.StaleAttempt)
		}
		b.balance("0 7 0 0")
		b.accepted("accepted", "j", 2, "u2")
		s, err := b.Settle(b.Context(), ledger.Report{Job: "j", Outcome: ledger.Completed, Source: ledger.Callback,
			Attempt: 2, UpstreamID: "u2"})
		b.ok(err)
		b.told("won completed 0 7", s)
		b.rejected("accepted replayed: duplicate completed, completed 0 7", "j", 1, "no capacity", true)
		b.evidence("j", "callback canceled stale 1", "callback completed stale 1", "callback completed won 1",
			"callback failed stale 1", "callback timed_out stale 1", "job.completed")
		b.journal("grant 7: 7 0 0 0", "hold 7: 0 7 0 0", "consume 7: 0 0 7 0")
	})
}

// A rejection that was to be retried can be settled after all, with the same evidence; and when the
// job has ended otherwise, it is told so.
func TestRetryGivenUp(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		b.rejected("rejected", "j", 1, "no", true)
		b.rejected("rejected: won failed, failed 7 0", "j", 1, "no", false)
		b.rejected("rejected replayed: won failed, failed 7 0", "j", 1, "no", false)
		b.pending("k")
		b.mark("k", "acme", 1)
		b.rejected("rejected", "k", 1, "no", true)
		_, err := b.Cancel(b.Context(), "k", "")
		b.ok(err)
		b.rejected("rejected replayed: duplicate canceled, canceled 7 0", "k", 1, "no", true)
		b.rejected("rejected: conflict failed, canceled 7 0", "k", 1, "no", false)
		b.balance("14 0 0 0")
	})
}

// B48: an upstream id belongs to one attempt of its provider, for ever.
func TestB48UpstreamIDsAreUnique(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for _, job := range []string{"a", "b", "c"} {
			b.pending(job)
		}
		b.mark("a", "acme", 1)
		b.accepted("accepted", "a", 1, "13")
		b.settle("won completed 0 7", "a", ledger.Completed)
		b.mark("b", "acme", 1)
		b.unchanged(func() { // the provider has begun to count anew
			_, err := b.Accepted(b.Context(), "b", 1, "13")
			b.fails(err, ledger.IdempotencyMismatch, "upstream_id")
			_, err = b.ReconcileAccept(b.Context(), ledger.Reconciliation{Job: "b", UpstreamID: "13", Evidence: "e",
				Operator: "sue"})
			b.fails(err, ledger.IdempotencyMismatch, "upstream_id")
		})
		_, err := b.Cancel(b.Context(), "b", "")
		b.fails(err, ledger.ReconciliationRequired)
		b.mark("c", "other", 1)
		b.accepted("accepted", "c", 1, "13")
		b.balance("0 14 7 0")
	})
}

// B42: a cancellation goes by the current attempt. The handles of the one before do not help it, and
// what the one before reports afterwards changes nothing.
func TestB42CancelAfterRetry(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		b.rejected("rejected", "j", 1, "later", true)
		b.imported(`UPDATE attempts SET upstream_id = 'R1'`)
		b.mark("j", "acme", 2)
		_, err := b.Cancel(b.Context(), "j", "")
		b.fails(err, ledger.ReconciliationRequired)
		b.accepted("accepted", "j", 2, "R2")
		b.imported(`UPDATE attempts SET upstream_id = NULL WHERE attempt = 2`)
		_, err = b.Cancel(b.Context(), "j", "")
		b.fails(err, ledger.ReconciliationRequired)
		b.accepted("accepted", "j", 2, "R2")
		s, err := b.Cancel(b.Context(), "j", "")
		b.ok(err)
		b.told("won canceled 7 0", s)
		for _, source := range []ledger.Source{ledger.Callback, ledger.Poll} {
			_, err = b.Settle(b.Context(), ledger.Report{Job: "j", Outcome: ledger.Completed, Source: source,
				Attempt: 1, UpstreamID: "R1"})
			b.fails(err, ledger.StaleAttempt)
		}
		b.balance("7 0 0 0")
	})
}

// A report that names another upstream id than the one on file is stale; before there is one on
// file, it is evidence.
func TestReportNamesAnotherUpstreamID(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for _, job := range []string{"j", "k"} {
			b.pending(job)
			b.mark(job, "acme", 1)
		}
		b.accepted("accepted", "j", 1, "u1")
		report := func(job string) (ledger.Settlement, error) {
			return b.Settle(b.Context(), ledger.Report{Job: job, Outcome: ledger.Completed, Source: ledger.Callback,
				Attempt: 1, UpstreamID: "u9"})
		}
		_, err := report("j")
		b.fails(err, ledger.StaleAttempt)
		b.evidence("j", "callback completed stale 1")
		b.balance("0 14 0 0")
		_, err = report("k")
		b.ok(err)
		b.balance("0 7 7 0")
	})
}

// B30: a job that has ended is not submitted again, whatever ended it. B45: and what comes late does
// not bring it back.
func TestB45EndedJobStaysEnded(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		b.settle("won failed 7 0", "j", ledger.Failed)
		_, err := b.Submit(b.Context(), "j", "acme")
		b.fails(err, ledger.NotAllowed)
		b.uncertain("uncertain: duplicate failed, failed 7 0", "j", 1, "reset")
		b.accepted("accepted: duplicate failed, failed 7 0", "j", 1, "u1")
		for _, progress := range []ledger.Outcome{"processing", "progress", "pending", ""} {
			b.fails(b.outcome("j", progress), ledger.Invalid, "outcome")
		}
		b.balance("7 0 0 0")
		b.evidence("j", "callback failed won 1", "job.failed")
	})
}
