package ledger

import (
	"context"

	"jobledger/db"
)

// Books that were kept elsewhere may have returned credits for a job before the ledger knew it. Such a
// legacy refund is a refund entry with a key of its own; the settlement pays only what is left.

const legacyPrefix = "legacy-refund:"

// legacyKey is the event key of what imported books returned for a job under a reference of theirs.
func legacyKey(job, ref string) string { return legacyPrefix + job + ":" + ref }

// legacyRange is the keys between which a job's legacy refunds are: ';' is the character after ':'.
// Another job, whose id goes on where this one ends, may have keys there too: compare job_id.
func legacyRange(job string) (after, before string) {
	return legacyPrefix + job + ":", legacyPrefix + job + ";"
}

// refundLegacy books what imported books had returned for a job: the last of its credits, in spending
// order, as the settlement would.
func refundLegacy(tx *db.Tx, a *account, job *Job, ref string, amount int64) error {
	paid, err := paidBy(tx, job)
	if err == nil {
		paid, err = stillPaid(tx, job, paid)
	}
	if err != nil {
		return err
	}
	_, rest := split(paid, sumOf(paid)-amount)
	m := movement{
		kind: KindRefund, key: legacyKey(job.ID, ref), job: job, into: refundLots(rest),
		reason: "returned by the imported books",
	}
	for i := range rest {
		m.from = append(m.from, Posting{rest[i].ID, rest[i].Amount})
	}
	_, err = move(tx, a, m)
	return err
}

// stillPaid takes from what the lots paid for a charged job what its legacy refunds took back.
func stillPaid(tx *db.Tx, job *Job, paid []payment) ([]payment, error) {
	taken, total, err := takenEarlier(tx, job)
	if err != nil || total == 0 {
		return paid, err
	}
	left := paid[:0]
	for _, p := range paid {
		if p.Amount -= taken[p.ID]; p.Amount > 0 {
			left = append(left, p)
		}
	}
	if total > job.Cost || sumOf(left) != job.Cost-total {
		return nil, fail(Inconsistent, "job %q costs %d and its legacy refunds took back %d that it did not pay",
			job.ID, job.Cost, total)
	}
	return left, nil
}

// takenEarlier sums, by lot, what the legacy refunds of a job took back. Only those of the same owner
// count.
func takenEarlier(tx *db.Tx, job *Job) (byLot map[string]int64, total int64, err error) {
	after, before := legacyRange(job.ID)
	var p Posting
	var owner, owned string
	err = tx.Rows(func() {
		if owner != job.Owner || owned != job.ID {
			return
		}
		if byLot == nil {
			byLot = make(map[string]int64)
		}
		byLot[p.Lot] += p.Amount
		total += p.Amount
	}, takenQuery, []any{after, before}, &p.Lot, &p.Amount, &owner, &owned)
	return byLot, total, err
}

// takenQuery finds legacy refunds by their keys. Whose they are is compared outside: a condition on the
// owner would let SQLite read the owner's whole journal instead.
const takenQuery = `
SELECT p.lot_id, p.amount, e.owner, e.job_id
FROM entries e
JOIN postings p ON p.entry_id = e.id
JOIN lots l ON l.id = p.lot_id AND l.entry_id <> e.id
WHERE e.event_key > ? AND e.event_key < ?`

func sumOf(list []payment) (sum int64) {
	for i := range list {
		sum += list[i].Amount
	}
	return sum
}

// returnedBy is what a job's settlement gave back to its owner; 0 if it has none.
func returnedBy(tx *db.Tx, job *Job) (int64, error) {
	if job.SettledCost == nil {
		return 0, nil
	}
	rest := job.Cost - *job.SettledCost
	if rest == 0 || job.Mode == ModeHold {
		return rest, nil
	}
	_, earlier, err := takenEarlier(tx, job)
	return rest - earlier, err
}

// byEvidence is the claim of the settlement of a legacy job: one that ended in other books, was never
// settled, and of whose current attempt there is evidence that the provider rejected it.
var byEvidence = &claim{
	query: claimUpdate + `settled_cost IS NULL AND status IN ('failed', 'canceled', 'timed_out')` +
		claimGuards + `
		AND status = ? AND submission = 'rejected' AND EXISTS (
		      SELECT 1 FROM attempts a
		      WHERE a.job_id = jobs.id AND a.attempt = jobs.attempt
		        AND a.submission = 'rejected' AND a.evidence <> '')
		RETURNING ` + claimedColumns,
	args: func(_ *db.Tx, r *Report) []any { return []any{r.Outcome} },
	refusal: func(job *Job) error {
		return fail(NotAllowed, "job %q is %s: report its outcome, or reconcile it", job.ID, job.Status)
	},
}

// SettleLegacy settles a job that was imported as failed, canceled or timed out and never settled, if
// there is evidence that the provider rejected it. It pays what its legacy refunds left of the cost,
// which may be nothing. A job that is settled already is told how, and nothing moves.
//
// Errors: INVALID; NOT_FOUND; SUBMISSION_RECONCILIATION_REQUIRED without evidence; NOT_ALLOWED for a
// job that is open.
func (l *Ledger) SettleLegacy(ctx context.Context, job string) (Settlement, error) {
	if err := CheckID("job", job); err != nil {
		return Settlement{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (Settlement, error) { return settleLegacy(tx, job) })
}

func settleLegacy(tx *db.Tx, id string) (Settlement, error) {
	job, err := lockJob(tx, id)
	if err != nil {
		return Settlement{}, err
	}
	r := Report{
		Job: id, Outcome: Outcome(job.Status), Source: Operator, Attempt: job.Attempt, Reason: job.Reason,
	}
	if job.Status.Open() {
		return Settlement{}, byEvidence.refusal(job)
	}
	if job.legacy() {
		evidence, err := rejection(tx, job)
		if err != nil {
			return Settlement{}, err
		}
		if r.Reason == "" {
			r.Reason = evidence
		}
	}
	s, refusal, err := settle(tx, byEvidence, r)
	if err == nil && !s.Won && s.Job.legacy() {
		// Nothing but a settlement that is in the journal already can have kept the claim from it.
		refusal = firstError(unpaid(tx, job), fail(Inconsistent, "job %q cannot be settled", id))
	}
	return s, firstError(err, refusal)
}

// legacy reports whether the job ended in other books and was never settled.
func (j *Job) legacy() bool { return !j.Status.Open() && j.SettledCost == nil }

// rejection gives the evidence that the provider rejected a job's current attempt.
func rejection(tx *db.Tx, job *Job) (evidence string, err error) {
	on, err := findAttempt(tx, job.ID, job.Attempt)
	if err != nil {
		return "", err
	}
	if on == nil || on.Submission != SubmissionRejected || on.Evidence == "" {
		return "", fail(ReconciliationRequired,
			"job %q ended as %s in other books and nothing shows that the provider rejected it (submission %s): "+
				"reconcile it first", job.ID, job.Status, job.Submission)
	}
	return on.Evidence, nil
}
