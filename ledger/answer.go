package ledger

import (
	"context"
	"slices"

	"jobledger/db"
)

// AnswerResult is a job after the answer to one of its submissions was recorded.
type AnswerResult struct {
	Job        Job         `json:"job"`
	Settlement *Settlement `json:"settlement,omitempty"` // how the job ended, if it has
	Replayed   bool        `json:"replayed"`
}

// answer says how a submission went: by the provider's own answer or, with an operator, by
// reconciliation.
type answer struct {
	job        string
	attempt    int64 // 0: the current one
	submission Submission
	upstreamID string
	evidence   string
	retry      bool // a rejected job stays open for another attempt
	operator   string
	provider   string              // fills in a provider that is not on file
	from       []Submission        // what the attempt's submission must be
	source     Source              // of the report that a rejection makes
	replaces   func(*Attempt) bool // an attempt with this very submission that may be answered again
}

// Accepted records that the provider took an attempt, under its own id for it. If a report settled
// the job before this answer was recorded, the result says how.
//
// Errors: INVALID; NOT_FOUND; IDEMPOTENCY_MISMATCH if the attempt, or another one, has other handles;
// STALE_ATTEMPT for an attempt that is not the current one; NOT_ALLOWED if it was rejected.
func (l *Ledger) Accepted(
	ctx context.Context, job string, attempt int64, upstreamID string,
) (AnswerResult, error) {
	if err := CheckID("upstream_id", upstreamID); err != nil {
		return AnswerResult{}, err
	}
	return l.answer(ctx, answer{
		job: job, attempt: attempt, submission: SubmissionAccepted, upstreamID: upstreamID,
		from: []Submission{SubmissionSubmitting, SubmissionUncertain},
	})
}

// Rejected records that the provider refused an attempt, with the evidence for it, and settles the
// job as failed; or, to retry, leaves it open for another attempt under the same hold.
//
// Errors: as of [Ledger.Accepted]; NOT_ALLOWED also for a retry of a job that has ended.
func (l *Ledger) Rejected(
	ctx context.Context, job string, attempt int64, evidence string, retry bool,
) (AnswerResult, error) {
	if err := checkEvidence("evidence", evidence); err != nil {
		return AnswerResult{}, err
	}
	return l.answer(ctx, answer{
		job: job, attempt: attempt, submission: SubmissionRejected, evidence: evidence, retry: retry,
		from: []Submission{SubmissionSubmitting, SubmissionUncertain}, source: Poll,
	})
}

// Uncertain records that nobody knows whether the provider took an attempt: the connection broke, or
// its answer made no sense. Nothing is returned and nothing is submitted again until a report or a
// reconciliation tells.
//
// Errors: as of [Ledger.Accepted].
func (l *Ledger) Uncertain(
	ctx context.Context, job string, attempt int64, reason string,
) (AnswerResult, error) {
	if err := checkEvidence("reason", reason); err != nil {
		return AnswerResult{}, err
	}
	return l.answer(ctx, answer{
		job: job, attempt: attempt, submission: SubmissionUncertain, evidence: reason,
		from: []Submission{SubmissionSubmitting},
	})
}

func checkEvidence(field, text string) error {
	if text == "" {
		return invalid(field, "is empty; without it nobody can check this later")
	}
	return checkText(field, text)
}

func (l *Ledger) answer(ctx context.Context, a answer) (AnswerResult, error) {
	if err := CheckID("job", a.job); err != nil {
		return AnswerResult{}, err
	}
	if a.operator == "" && a.attempt < 1 {
		return AnswerResult{}, invalid("attempt", "%d is out of range; it takes 1 or more", a.attempt)
	}
	return write(ctx, l, func(tx *db.Tx) (AnswerResult, error) { return recordAnswer(tx, &a) })
}

// recordAnswer writes the answer to the attempt and, if it is a rejection, settles the job by the
// same claim as any other report.
func recordAnswer(tx *db.Tx, a *answer) (AnswerResult, error) {
	job, err := lockJob(tx, a.job)
	if err != nil {
		return AnswerResult{}, err
	}
	on, err := a.target(tx, job)
	if err != nil {
		return AnswerResult{}, err
	}
	replayed, err := a.check(tx, job, on)
	if err != nil {
		return AnswerResult{}, err
	}
	if !replayed {
		if err := a.write(tx, job, on); err != nil {
			return AnswerResult{}, err
		}
	}
	r := AnswerResult{Job: *job, Replayed: replayed}
	if a.submission == SubmissionRejected && !a.retry && (job.Status.Open() || !replayed) {
		r.Settlement, err = a.settle(tx, on)
	} else if !job.Status.Open() {
		r.Settlement, err = a.settled(tx, job, on)
	}
	if r.Settlement != nil {
		r.Job = r.Settlement.Job
	}
	return r, err
}

// target gives the attempt that the answer is about, which must be the current one.
func (a *answer) target(tx *db.Tx, job *Job) (*Attempt, error) {
	if a.attempt == 0 {
		a.attempt = job.Attempt
	}
	on, err := findAttempt(tx, job.ID, a.attempt)
	switch {
	case err != nil:
		return nil, err
	case on == nil && a.operator != "":
		return nil, fail(NotAllowed, "job %q was never submitted: there is nothing to reconcile", job.ID)
	case on == nil:
		return nil, fail(NotFound, "job %q has no attempt %d", job.ID, a.attempt)
	case a.attempt != job.Attempt:
		return nil, fail(StaleAttempt, "job %q is at attempt %d and the answer is about %d",
			job.ID, job.Attempt, a.attempt)
	}
	return on, nil
}

// check compares the answer with what is on file. The same answer again is a replay.
func (a *answer) check(tx *db.Tx, job *Job, on *Attempt) (replayed bool, err error) {
	if a.retry && !job.Status.Open() {
		return false, fail(NotAllowed, "job %q has ended (%s): it cannot be retried", job.ID, job.Status)
	}
	if on.Submission == a.submission && !(a.replaces != nil && a.replaces(on)) {
		if fields := a.differences(on); fields != nil {
			return false, mismatch("the answer to attempt", fields)
		}
		return true, nil
	}
	if !slices.Contains(a.from, on.Submission) && !(a.replaces != nil && a.replaces(on)) {
		return false, fail(NotAllowed, "job %q: attempt %d is %s already", job.ID, on.Attempt, on.Submission)
	}
	return false, a.checkHandles(tx, on)
}

func (a *answer) differences(on *Attempt) []string {
	upstream := ""
	if on.UpstreamID != nil {
		upstream = *on.UpstreamID
	}
	return differing(
		field{"upstream_id", a.submission != SubmissionAccepted || a.upstreamID == upstream},
		field{"evidence", a.evidence == on.Evidence},
		field{"operator", a.operator == on.Operator},
	)
}

// checkHandles refuses an upstream id that another attempt has: whichever job the next callback
// means, it would be a guess.
func (a *answer) checkHandles(tx *db.Tx, on *Attempt) error {
	if a.provider == "" || on.Provider != "" {
		a.provider = on.Provider
	}
	if a.upstreamID == "" {
		return nil
	}
	var other string
	found, err := tx.Get(&other, `SELECT job_id FROM attempts WHERE provider = ? AND upstream_id = ?`,
		a.provider, a.upstreamID)
	if err != nil || !found {
		return err
	}
	e := mismatch("the answer to attempt", []string{"upstream_id"})
	e.Message = "upstream id " + shorten(a.upstreamID) + " of " + a.provider + " belongs to job " + other
	return e
}

func (a *answer) write(tx *db.Tx, job *Job, on *Attempt) error {
	on.Submission, on.Evidence, on.Operator = a.submission, a.evidence, a.operator
	if a.upstreamID != "" {
		on.UpstreamID = &a.upstreamID
	}
	_, err := tx.Exec(`
		UPDATE attempts
		SET provider = ?, upstream_id = ?, submission = ?, evidence = ?, operator = ?, resolved_at = ?
		WHERE job_id = ? AND attempt = ?`,
		a.provider, on.UpstreamID, on.Submission, on.Evidence, on.Operator, now(tx), on.Job, on.Attempt)
	if err != nil {
		return err
	}
	job.Submission, job.UpdatedAt = a.submission, now(tx)
	_, err = tx.Exec(`UPDATE jobs SET submission = ?, updated_at = ? WHERE id = ? AND attempt = ?`,
		job.Submission, job.UpdatedAt, job.ID, job.Attempt)
	return err
}

// settle reports a rejected job as failed.
func (a *answer) settle(tx *db.Tx, on *Attempt) (*Settlement, error) {
	r := a.report(on)
	s, refusal, err := settle(tx, byReport, r)
	return &s, firstError(err, refusal)
}

func (a *answer) report(on *Attempt) Report {
	return Report{Job: a.job, Outcome: Failed, Source: a.source, Attempt: on.Attempt, Reason: a.evidence}
}

// settled tells how a job ended that had ended before this answer, or by this very answer when it
// was given for the first time.
func (a *answer) settled(tx *db.Tx, job *Job, on *Attempt) (*Settlement, error) {
	s := Settlement{Job: *job, Reported: Outcome(job.Status), Verdict: Duplicate}
	if job.SettledCost != nil {
		s.Returned, s.Consumed = job.Cost-*job.SettledCost, *job.SettledCost
	}
	if a.submission == SubmissionRejected {
		r := a.report(on)
		s.Reported = r.Outcome
		found, err := tx.Get(&s.Verdict, `
			SELECT verdict FROM reports
			WHERE job_id = ? AND source = ? AND outcome = ? AND attempt = ? AND upstream_id = ''
			ORDER BY CASE verdict WHEN 'won' THEN 0 ELSE 1 END
			LIMIT 1`, r.Job, r.Source, r.Outcome, r.Attempt)
		if err != nil || !found {
			return nil, firstError(err, fail(Inconsistent, "job %q: the report of its rejection is gone", job.ID))
		}
		s.Won = s.Verdict == Won
	}
	b, err := balance(tx, job.Owner)
	s.Balance = b
	return &s, err
}
