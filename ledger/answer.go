package ledger

import (
	"context"
	"fmt"
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
	provider   string       // fills in a provider that is not on file
	from       []Submission // what the attempt's submission must be
	source     Source       // of the report that a rejection makes
	// replaces tells of attempts that may be answered all the same; nil: none.
	replaces func(*Job, *Attempt) bool
	// outcome and reported are the report that this rejection made when it was first recorded, and what
	// became of it.
	outcome  Outcome
	reported Verdict
}

// Accepted records that the provider took an attempt, under its own id for it. If a report settled
// the job before this answer was recorded, the result says how.
//
// Errors: INVALID; NOT_FOUND; IDEMPOTENCY_MISMATCH if the attempt has another upstream id, or another
// attempt has this one; STALE_ATTEMPT if it is not the current attempt and the answer is new;
// NOT_ALLOWED if it was rejected.
func (l *Ledger) Accepted(
	ctx context.Context, job string, attempt int64, upstreamID string,
) (AnswerResult, error) {
	if err := CheckID("upstream_id", upstreamID); err != nil {
		return AnswerResult{}, err
	}
	return l.answer(ctx, answer{
		job: job, attempt: attempt, submission: SubmissionAccepted, upstreamID: upstreamID,
		from: []Submission{SubmissionSubmitting, SubmissionUncertain},
		replaces: func(_ *Job, on *Attempt) bool {
			return on.Submission == SubmissionAccepted && on.UpstreamID == nil
		},
	})
}

// Rejected records that the provider refused an attempt, with the evidence for it, and settles the
// job as failed; or, to retry, leaves it open for another attempt under the same hold.
//
// Errors: as of [Ledger.Accepted]; NOT_ALLOWED also for a retry of a job that has ended.
func (l *Ledger) Rejected(
	ctx context.Context, job string, attempt int64, evidence string, retry bool,
) (AnswerResult, error) {
	if err := CheckEvidence("evidence", evidence); err != nil {
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
	if err := CheckEvidence("reason", reason); err != nil {
		return AnswerResult{}, err
	}
	return l.answer(ctx, answer{
		job: job, attempt: attempt, submission: SubmissionUncertain, evidence: reason,
		from: []Submission{SubmissionSubmitting},
	})
}

// CheckEvidence refuses a text that is empty, longer than 1024 bytes, or not UTF-8 without NUL.
func CheckEvidence(field, text string) error {
	if text == "" {
		return InvalidField(field, "is empty; without it nobody can check this later")
	}
	return checkText(field, text)
}

func (l *Ledger) answer(ctx context.Context, a answer) (AnswerResult, error) {
	if err := CheckID("job", a.job); err != nil {
		return AnswerResult{}, err
	}
	if a.operator == "" && a.attempt < 1 {
		return AnswerResult{}, InvalidField("attempt", "%d is out of range; it takes 1 or more", a.attempt)
	}
	return write(ctx, l, func(tx *db.Tx) (AnswerResult, error) {
		run := a // which notes what it finds; the operation may run again
		return recordAnswer(tx, &run)
	})
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
	// From here on it must succeed.
	if !replayed {
		if err := a.write(tx, job, on); err != nil {
			return AnswerResult{}, err
		}
	}
	r := AnswerResult{Job: *job, Replayed: replayed}
	switch {
	case a.settles() && a.reported == "":
		r.Settlement, err = a.settle(tx, job, on)
		r.Replayed = false
	case !job.Status.Open():
		r.Settlement, err = a.settled(tx, job)
	}
	if err == nil && r.Settlement != nil {
		r.Job = r.Settlement.Job
	}
	return r, err
}

// settles tells whether the answer ends the job.
func (a *answer) settles() bool { return a.submission == SubmissionRejected && !a.retry }

// target gives the attempt that the answer is about.
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
	}
	return on, nil
}

// check compares the answer with what is on file. The same answer again is a replay.
func (a *answer) check(tx *db.Tx, job *Job, on *Attempt) (replayed bool, err error) {
	replaces := a.replaces != nil && a.replaces(job, on)
	same := on.Submission == a.submission && !replaces
	if err := firstError(a.checkContent(on, same), a.checkUpstream(tx, on)); err != nil {
		return false, err
	}
	switch {
	case a.submission == SubmissionAccepted && !same && job.legacy():
		return false, fail(NotAllowed, "job %q ended as %s in other books: only a rejection settles it",
			job.ID, job.Status)
	case !same && on.Attempt != job.Attempt:
		return false, fail(StaleAttempt, "job %q is at attempt %d and the answer is about %d",
			job.ID, job.Attempt, on.Attempt)
	case same && a.operator != "" && on.Operator == "":
		return false, a.tooLate(on)
	case same:
		return true, a.checkReplay(tx, job, on)
	case !replaces && !slices.Contains(a.from, on.Submission):
		return false, a.tooLate(on)
	case a.retry && !job.Status.Open():
		return false, ended(job)
	}
	return false, nil
}

func (a *answer) tooLate(on *Attempt) error {
	return fail(NotAllowed, "job %q: attempt %d is %s already", on.Job, on.Attempt, on.Submission)
}

func ended(job *Job) error {
	return fail(NotAllowed, "job %q has ended (%s): create a new one", job.ID, job.Status)
}

// checkReplay finds what became of the report that the same rejection made before. One that was
// meant to be retried made none.
func (a *answer) checkReplay(tx *db.Tx, job *Job, on *Attempt) error {
	if a.submission != SubmissionRejected {
		return nil
	}
	r := a.report(on)
	legacy := r.Outcome // what a reconciliation reports of a legacy job is how it had ended
	if a.operator != "" {
		legacy = Outcome(job.Status)
	}
	found, err := tx.Row(`
		SELECT outcome, verdict FROM reports
		WHERE job_id = ? AND source = ? AND outcome IN (?, ?) AND attempt = ? AND upstream_id = ''
		  AND verdict IN ('won', 'duplicate', 'conflict')
		ORDER BY CASE outcome WHEN 'failed' THEN 0 ELSE 1 END, CASE verdict WHEN 'won' THEN 0 ELSE 1 END
		LIMIT 1`, []any{r.Job, r.Source, r.Outcome, legacy, r.Attempt}, &a.outcome, &a.reported)
	if err == nil && a.retry && !job.Status.Open() && (found || a.operator != on.Operator) {
		err = ended(job)
	}
	return err
}

// checkContent refuses an answer that contradicts the attempt. Evidence is content of the same answer
// by the same side only: a provider and an operator may know the same thing from different sources.
func (a *answer) checkContent(on *Attempt, same bool) error {
	upstream := a.upstreamID
	if on.UpstreamID != nil {
		upstream = *on.UpstreamID
	}
	if !same && on.Provider == "" && a.provider == "" && a.submission == SubmissionAccepted {
		return InvalidField("provider", "is not on file for attempt %d of job %q: name it", on.Attempt, on.Job)
	}
	text := "evidence"
	if a.submission == SubmissionUncertain {
		text = "reason"
	}
	other := !same || (a.operator == "") != (on.Operator == "")
	fields := differing(
		field{"provider", a.provider == "" || on.Provider == "" || a.provider == on.Provider},
		field{"upstream_id", a.upstreamID == "" || a.upstreamID == upstream},
		field{text, other || a.evidence == on.Evidence},
		field{"operator", other || a.operator == on.Operator},
	)
	if fields != nil {
		return mismatch(fmt.Sprintf("the answer to attempt %d", on.Attempt), fields)
	}
	return nil
}

// checkUpstream refuses an upstream id that another attempt has: whichever job the next callback
// means, it would be a guess.
func (a *answer) checkUpstream(tx *db.Tx, on *Attempt) error {
	if on.Provider != "" {
		a.provider = on.Provider
	}
	if a.upstreamID == "" {
		return nil
	}
	other, err := upstreamOwner(tx, on, a.provider, a.upstreamID)
	if err != nil || other == "" {
		return err
	}
	e := mismatch("the upstream id", []string{"upstream_id"})
	e.Message = fmt.Sprintf("upstream id %q of %s belongs to job %q", shorten(a.upstreamID), a.provider, other)
	return e
}

func (a *answer) write(tx *db.Tx, job *Job, on *Attempt) error {
	polled := on.Submission == SubmissionAccepted
	on.Submission, on.Evidence, on.Operator = a.submission, a.evidence, a.operator
	if a.upstreamID != "" {
		on.UpstreamID = &a.upstreamID
	}
	_, err := tx.Exec(`
		INSERT INTO answers (`+answerColumns+`)
		SELECT ?, ?, COUNT(*) + 1, ?, ?, ?, ?, ?, ? FROM answers WHERE job_id = ? AND attempt = ?`,
		on.Job, on.Attempt, on.Submission, a.provider, on.UpstreamID, on.Evidence, on.Operator, now(tx),
		on.Job, on.Attempt)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`
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
	switch {
	case err != nil:
		return err
	case a.submission == SubmissionAccepted && job.Status.Open():
		on.Provider = a.provider
		return startPoll(tx, on, now(tx)+Time(firstPoll.Microseconds()))
	case polled:
		return stopPoll(tx, job.ID)
	}
	return nil
}

// settle reports a rejected job as failed. One that ended in other books and was never settled is
// settled as it ended there: the answer is the evidence that it lacked.
func (a *answer) settle(tx *db.Tx, job *Job, on *Attempt) (*Settlement, error) {
	if job.legacy() {
		s, err := settleLegacy(tx, job.ID)
		return &s, err
	}
	s, refusal, err := settle(tx, byReport, a.report(on))
	return &s, firstError(err, refusal)
}

func (a *answer) report(on *Attempt) Report {
	return Report{Job: a.job, Outcome: Failed, Source: a.source, Attempt: on.Attempt, Reason: a.evidence}
}

// settled tells how a job ended that had ended before this answer, or by this very answer when it
// was given for the first time.
func (a *answer) settled(tx *db.Tx, job *Job) (*Settlement, error) {
	s := Settlement{Job: *job, Reported: Outcome(job.Status), Verdict: Duplicate}
	if a.settles() {
		s.Reported, s.Verdict, s.Won = a.outcome, a.reported, a.reported == Won
	}
	if job.SettledCost != nil {
		s.Consumed = *job.SettledCost
	}
	var errs [2]error
	s.Returned, errs[0] = returnedBy(tx, job)
	s.Balance, errs[1] = balance(tx, job.Owner)
	return &s, firstError(errs[:]...)
}
