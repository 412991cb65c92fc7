package ledger

import "jobledger/db"

// claim is a way to take a job's terminal transition. They differ in what the job's submission must
// be; all of them decide inside the one UPDATE.
type claim struct {
	query string
	args  func(tx *db.Tx, r *Report) []any
	// anyAttempt: the claim is about the job, whichever attempt it is at.
	anyAttempt bool
	// importing: what a return puts into a lapsed lot stays there, for the import to expire in the end.
	importing bool
	// refusal says why an open job of the right attempt was not claimed.
	refusal func(job *Job) error
}

// byReport is the claim of an observer: its word is evidence, whatever the submission. It must not
// contradict the upstream id on file, nor name one that is another attempt's at the same provider.
var byReport = &claim{
	query: claimQuery + `
		AND (? = '' OR NOT EXISTS (
		      SELECT 1 FROM attempts a
		      WHERE a.job_id = jobs.id AND a.attempt = jobs.attempt
		        AND (a.upstream_id <> ? OR EXISTS (
		              SELECT 1 FROM attempts o
		              WHERE o.provider = a.provider AND o.upstream_id = ?
		                AND (o.job_id <> a.job_id OR o.attempt <> a.attempt)))))
		RETURNING ` + claimedColumns,
	args: func(_ *db.Tx, r *Report) []any { return []any{r.UpstreamID, r.UpstreamID, r.UpstreamID} },
	refusal: func(job *Job) error {
		return fail(Inconsistent, "job %q is open and cannot be settled", job.ID)
	},
}

// byCancel is the claim of a cancellation: only where it is known that no provider is at work on the
// job, or which one, by both handles.
var byCancel = &claim{
	query: claimQuery + `
		AND (submission IN ('none', 'rejected')
		     OR submission = 'accepted' AND EXISTS (
		          SELECT 1 FROM attempts a
		          WHERE a.job_id = jobs.id AND a.attempt = jobs.attempt
		            AND a.provider <> '' AND a.upstream_id IS NOT NULL))
		RETURNING ` + claimedColumns,
	args:       func(*db.Tx, *Report) []any { return nil },
	anyAttempt: true,
	refusal: func(job *Job) error {
		why := "nobody knows whether the provider took it"
		if job.Submission == SubmissionAccepted {
			why = "its provider or upstream id is missing"
		}
		return fail(ReconciliationRequired, "job %q: %s (attempt %d, submission %s): reconcile it first",
			job.ID, why, job.Attempt, job.Submission)
	},
}

// bySweep is the claim of the sweep: only jobs that were never submitted and are past their deadline.
var bySweep = &claim{
	query: claimQuery + `
		AND submission = 'none' AND deadline <= ?
		RETURNING ` + claimedColumns,
	args:       func(tx *db.Tx, _ *Report) []any { return []any{now(tx)} },
	anyAttempt: true,
	refusal: func(job *Job) error {
		return fail(NotAllowed, "job %q is not past its deadline, or was submitted", job.ID)
	},
}

// claimQuery is the gate: it changes an open job whose attempt is the report's, whose cost covers the
// report's, and that has no refund yet. Whoever changes the row has won. (A consume or release that
// should not be there cannot be written a second time: their keys are unique.)
const claimQuery = claimUpdate + `status IN ('pending', 'processing')` + claimGuards

const (
	claimUpdate = `
UPDATE jobs
SET status = ?, settled_cost = CASE WHEN ? = 'completed' THEN COALESCE(?, cost) ELSE 0 END,
    settled_source = ?, settled_attempt = attempt, settled_at = ?, reason = ?, updated_at = ?
WHERE id = ? AND `

	claimGuards = `
  AND attempt BETWEEN ? AND ? AND cost >= ?
  AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.event_key = ?)`
)

// claimedColumns are those that the claim did not write itself.
const claimedColumns = `owner, cost, mode, attempt, submission, settled_cost, deadline, metadata, created_at`

// take tries to claim the job and, if it won, fills in job. The gate is claimQuery: only a job that is still
// open passes, and only at the report's attempt.
func (c *claim) take(tx *db.Tx, job *Job, r *Report) (won bool, err error) {
	lowest, highest := c.attempts(r)
	args := []any{
		r.Outcome, r.Outcome, r.Cost, r.Source, now(tx), r.Reason, now(tx),
		r.Job, lowest, highest, r.cost(), jobKey(KindRefund, r.Job),
	}
	at, settledCost, settledAttempt := now(tx), int64(0), int64(0)
	*job = Job{
		ID: r.Job, Status: Status(r.Outcome), SettledCost: &settledCost, SettledSource: &r.Source,
		SettledAttempt: &settledAttempt, SettledAt: &at, Reason: r.Reason, UpdatedAt: at,
	}
	won, err = tx.Row(c.query, append(args, c.args(tx, r)...), &job.Owner, &job.Cost, &job.Mode, &job.Attempt,
		&job.Submission, &settledCost, &job.Deadline, &job.Metadata, &job.CreatedAt)
	settledAttempt = job.Attempt
	return won, err
}

// attempts is the range in which the job's current attempt must be. A report that names none is
// taken only while the job has had at most one.
func (c *claim) attempts(r *Report) (lowest, highest int64) {
	switch {
	case c.anyAttempt:
		return 0, AmountMax
	case r.Attempt == 0:
		return 0, 1
	}
	return r.Attempt, r.Attempt
}

func (r *Report) cost() int64 {
	if r.Cost == nil {
		return 0
	}
	return *r.Cost
}

// judge finds out why a report did not claim its job. err refuses the report without a trace;
// refusal refuses it, but the report is kept.
func (c *claim) judge(tx *db.Tx, job *Job, r *Report) (verdict Verdict, refusal, err error) {
	if r.cost() > job.Cost {
		return "", nil, InvalidField("cost", "%d is more than the job's cost, %d", r.cost(), job.Cost)
	}
	if lowest, highest := c.attempts(r); job.Attempt < lowest || job.Attempt > highest {
		return Stale, staleAttempt(job, r), nil
	}
	foreign, err := foreignUpstream(tx, job, r)
	if err != nil {
		return "", nil, err
	}
	switch {
	case foreign != nil:
		return Stale, foreign, nil
	case !job.Status.Open() && job.Status == Status(r.Outcome):
		return Duplicate, nil, nil
	case !job.Status.Open():
		return Conflict, nil, nil
	}
	if err := unpaid(tx, job); err != nil {
		return "", nil, err
	}
	refusal = c.refusal(job)
	if CodeOf(refusal) == Inconsistent {
		return "", nil, refusal
	}
	return Refused, refusal, nil
}

func staleAttempt(job *Job, r *Report) error {
	if r.Attempt == 0 {
		return fail(StaleAttempt, "job %q has had %d attempts and the report names none", job.ID, job.Attempt)
	}
	return fail(StaleAttempt, "job %q is at attempt %d and the report is about %d",
		job.ID, job.Attempt, r.Attempt)
}

// foreignUpstream says why an upstream id that a report names is not that of the job's current attempt;
// nil if it may be.
func foreignUpstream(tx *db.Tx, job *Job, r *Report) (refusal, err error) {
	if r.UpstreamID == "" {
		return nil, nil
	}
	on, err := findAttempt(tx, job.ID, job.Attempt)
	if err != nil || on == nil {
		return nil, err
	}
	if on.UpstreamID != nil && *on.UpstreamID != r.UpstreamID {
		return fail(StaleAttempt, "job %q: the report names upstream id %q, on file is %q",
			job.ID, r.UpstreamID, *on.UpstreamID), nil
	}
	other, err := upstreamOwner(tx, on, on.Provider, r.UpstreamID)
	if err == nil && other != "" {
		refusal = fail(StaleAttempt, "job %q: the report names upstream id %q, which belongs to job %q",
			job.ID, r.UpstreamID, other)
	}
	return refusal, err
}

// upstreamOwner gives the job whose attempt, other than on, has an upstream id at a provider.
func upstreamOwner(tx *db.Tx, on *Attempt, provider, upstreamID string) (job string, err error) {
	_, err = tx.Get(&job, `
		SELECT job_id FROM attempts
		WHERE provider = ? AND upstream_id = ? AND (job_id <> ? OR attempt <> ?)`,
		provider, upstreamID, on.Job, on.Attempt)
	return job, err
}

// keepUpstream notes the upstream id that a winning report named, if none is on file: what names
// another one later is not about the same attempt.
func keepUpstream(tx *db.Tx, job *Job, r *Report) error {
	if r.UpstreamID == "" {
		return nil
	}
	_, err := tx.Exec(`
		UPDATE attempts SET upstream_id = ? WHERE job_id = ? AND attempt = ? AND upstream_id IS NULL`,
		r.UpstreamID, job.ID, job.Attempt)
	return err
}

// unpaid refuses an open job for which the journal has a settlement already.
func unpaid(tx *db.Tx, job *Job) error {
	for _, kind := range []Kind{KindConsume, KindRelease, KindRefund} {
		e, err := findEntry(tx, jobKey(kind, job.ID))
		if err != nil {
			return err
		}
		if e != nil {
			return fail(Inconsistent, "job %q is open and the journal has its %s already (entry %s)",
				job.ID, e.EventKey, e.ID)
		}
	}
	return nil
}
