package ledger

import (
	"context"

	"jobledger/db"
)

// Attempt is one submission of a job to a provider.
type Attempt struct {
	Job        string     `db:"job_id" json:"job"`
	Attempt    int64      `db:"attempt" json:"attempt"`
	Provider   string     `db:"provider" json:"provider"`
	UpstreamID *string    `db:"upstream_id" json:"upstream_id"` // the provider's id for it; nil until known
	Submission Submission `db:"submission" json:"submission"`
	Evidence   string     `db:"evidence" json:"evidence"`
	Operator   string     `db:"operator" json:"operator"`       // who reconciled it; empty if nobody had to
	MarkedAt   Time       `db:"marked_at" json:"marked_at"`     // before the provider was called
	ResolvedAt *Time      `db:"resolved_at" json:"resolved_at"` // when its answer was recorded
}

const attemptColumns = `job_id, attempt, provider, upstream_id, submission, evidence, operator, marked_at,
	resolved_at`

// Answer is one answer to an attempt, as it was recorded. An attempt can have several: first nobody
// knows, and later somebody does.
type Answer struct {
	Job        string     `db:"job_id" json:"job"`
	Attempt    int64      `db:"attempt" json:"attempt"`
	N          int64      `db:"n" json:"n"` // from 1 per attempt
	Submission Submission `db:"submission" json:"submission"`
	Provider   string     `db:"provider" json:"provider"`
	UpstreamID *string    `db:"upstream_id" json:"upstream_id"`
	Evidence   string     `db:"evidence" json:"evidence"`
	Operator   string     `db:"operator" json:"operator"` // who reconciled it; empty if the provider said it
	RecordedAt Time       `db:"recorded_at" json:"recorded_at"`
}

const answerColumns = `job_id, attempt, n, submission, provider, upstream_id, evidence, operator, recorded_at`

// SubmitResult is a job whose next attempt is marked.
type SubmitResult struct {
	Job     Job   `json:"job"`
	Attempt int64 `json:"attempt"`
}

// Submit marks the next attempt of a job, before its provider is called: what is marked and has no
// answer yet may be at the provider, and is never paid back on a guess. If Submit does not return
// without an error, the provider must not be called.
//
// Errors: INVALID; NOT_FOUND; NOT_ALLOWED if the job has ended, or an attempt is open.
func (l *Ledger) Submit(ctx context.Context, job, provider string) (SubmitResult, error) {
	if err := firstError(CheckID("job", job), CheckID("provider", provider)); err != nil {
		return SubmitResult{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (SubmitResult, error) { return submit(tx, job, provider) })
}

func submit(tx *db.Tx, id, provider string) (SubmitResult, error) {
	job, err := lockJob(tx, id)
	if err != nil {
		return SubmitResult{}, err
	}
	switch {
	case !job.Status.Open():
		return SubmitResult{}, ended(job)
	case job.Submission != SubmissionNone && job.Submission != SubmissionRejected:
		return SubmitResult{}, fail(NotAllowed, "job %q: attempt %d is open (submission %s)",
			job.ID, job.Attempt, job.Submission)
	}
	job.Attempt++
	job.Status, job.Submission, job.UpdatedAt = Processing, SubmissionSubmitting, now(tx)
	// From here on it must succeed.
	a := Attempt{
		Job: id, Attempt: job.Attempt, Provider: provider, Submission: job.Submission, MarkedAt: now(tx),
	}
	if err := insertAttempt(tx, &a); err != nil {
		return SubmitResult{}, err
	}
	rows, err := tx.Exec(`
		UPDATE jobs SET status = 'processing', attempt = ?, submission = ?, updated_at = ?
		WHERE id = ? AND status IN ('pending', 'processing') AND attempt = ?`,
		job.Attempt, job.Submission, job.UpdatedAt, job.ID, job.Attempt-1)
	if err == nil && rows != 1 {
		err = fail(Inconsistent, "job %q changed while it was submitted", job.ID)
	}
	return SubmitResult{Job: *job, Attempt: job.Attempt}, err
}

func insertAttempt(tx *db.Tx, a *Attempt) error {
	_, err := tx.Exec(`
		INSERT INTO attempts (`+attemptColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.Job, a.Attempt, a.Provider, a.UpstreamID, a.Submission, a.Evidence, a.Operator, a.MarkedAt, a.ResolvedAt)
	return err
}

// lockJob gives a job, or NOT_FOUND, and keeps it from changing under this transaction.
func lockJob(tx *db.Tx, id string) (*Job, error) {
	found, err := tx.Lock(`SELECT 1 FROM jobs WHERE id = ?`, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noJob(id)
	}
	return mustFindJob(tx, id)
}

// findAttempt gives an attempt of a job, or nil.
func findAttempt(tx *db.Tx, job string, attempt int64) (*Attempt, error) {
	a := new(Attempt)
	found, err := tx.Get(a, `
		SELECT `+attemptColumns+` FROM attempts WHERE job_id = ? AND attempt = ?`, job, attempt)
	if err != nil || !found {
		return nil, err
	}
	return a, nil
}
