package ledger

import (
	"context"
	"slices"
	"time"

	"jobledger/db"
)

// firstPoll is how long a provider that took a job has for its callback before it is asked.
const firstPoll = 5 * time.Second

// PollTask is a job whose provider is to be asked for its status, with all that is needed to ask.
type PollTask struct {
	Job        string `db:"job_id"`
	Attempt    int64  `db:"attempt"`
	Provider   string `db:"provider"`
	UpstreamID string `db:"upstream_id"`
	Tries      int64  `db:"tries"` // this one included
	Lease      string `db:"lease"` // names the claim
}

// ClaimPolls gives a poller jobs whose time has come: at most limit, 1 to PageMax, each provider's share
// of it the same. A task that is not finished within lease, a second to an hour, is given again. An open
// job is polled from 5 seconds after its provider took it until it ends.
//
// Errors: INVALID.
func (l *Ledger) ClaimPolls(
	ctx context.Context, providers []string, limit int, lease time.Duration,
) ([]PollTask, error) {
	if err := firstError(checkPage(limit), checkLease(lease)); err != nil {
		return nil, err
	}
	for _, p := range providers {
		if err := CheckID("provider", p); err != nil {
			return nil, err
		}
	}
	return write(ctx, l, func(tx *db.Tx) ([]PollTask, error) { return claimPolls(tx, providers, limit, lease) })
}

const (
	duePollsQuery = `
SELECT job_id FROM polls WHERE provider = ? AND next_at <= ? AND (lease IS NULL OR lease_until <= ?)
ORDER BY next_at, job_id LIMIT ?`

	claimPollQuery = `
UPDATE polls SET lease = ?, lease_until = ?, next_at = ?, tries = tries + 1
WHERE job_id = ? AND next_at <= ? AND (lease IS NULL OR lease_until <= ?)
RETURNING job_id, attempt, provider, tries, lease,
          (SELECT COALESCE(a.upstream_id, '') FROM attempts a
           WHERE a.job_id = polls.job_id AND a.attempt = polls.attempt) AS upstream_id`
)

func claimPolls(tx *db.Tx, providers []string, limit int, lease time.Duration) ([]PollTask, error) {
	tasks := []PollTask{}
	name, until := newID(), now(tx)+Time(lease.Microseconds())
	for i, provider := range providers {
		left := len(providers) - i
		share := (limit - len(tasks) + left - 1) / left
		var due []string
		if err := tx.Select(&due, duePollsQuery, provider, now(tx), now(tx), share); err != nil {
			return nil, err
		}
		for _, job := range due {
			var task PollTask
			found, err := tx.Get(&task, claimPollQuery, name, until, until, job, now(tx), now(tx))
			if err != nil {
				return nil, err
			}
			if found {
				tasks = append(tasks, task)
			}
		}
	}
	return tasks, nil
}

// PollCount is how many open jobs wait for somebody to ask a provider for them.
type PollCount struct {
	Provider string `db:"provider"`
	Jobs     int64  `db:"jobs"`
}

// PollsBeside counts the open jobs that were accepted by other providers than those that are known, in the
// order of the providers' names: nobody who knows only these asks for them. Errors: BUSY if ctx ends.
func (l *Ledger) PollsBeside(ctx context.Context, known []string) ([]PollCount, error) {
	return read(ctx, l, func(tx *db.Tx) ([]PollCount, error) { return pollsBeside(tx, known) })
}

func pollsBeside(tx *db.Tx, known []string) (list []PollCount, err error) {
	err = tx.Select(&list, `SELECT provider, COUNT(*) AS jobs FROM polls GROUP BY provider ORDER BY provider`)
	return slices.DeleteFunc(list, func(p PollCount) bool { return slices.Contains(known, p.Provider) }), err
}

// PollAnswer says that a provider was asked and the job is still open.
type PollAnswer struct {
	Job    string
	Lease  string // that of the claim
	Error  string // what went wrong, up to 1024 bytes; empty if the provider is at work on it
	NextAt Time   // when to ask again
}

// FinishPoll records that a provider was asked, and when to ask again: sooner if [Ledger.WakePoll] was
// called meanwhile. What the provider said of the job's end is a report: [Ledger.Settle] ends the task.
//
// Errors: INVALID; NOT_ALLOWED if the lease is not the task's any more, as another poller has it or the
// job has ended: nothing changes then.
func (l *Ledger) FinishPoll(ctx context.Context, a PollAnswer) error {
	if a.NextAt < 0 || a.NextAt > timeMax {
		return InvalidField("next_at", "is before 1970 or after 9999")
	}
	err := firstError(CheckID("job", a.Job), CheckID("lease", a.Lease), checkText("error", a.Error))
	if err != nil {
		return err
	}
	_, err = write(ctx, l, func(tx *db.Tx) (struct{}, error) { return struct{}{}, finishPoll(tx, a) })
	return err
}

func finishPoll(tx *db.Tx, a PollAnswer) error {
	rows, err := tx.Exec(`
		UPDATE polls
		SET lease = NULL, lease_until = NULL, last_error = ?,
		    next_at = CASE WHEN next_at < lease_until THEN next_at ELSE ? END
		WHERE job_id = ? AND lease = ?`, a.Error, a.NextAt, a.Job, a.Lease)
	if err == nil && rows == 0 {
		err = fail(NotAllowed, "the poll of job %q is not under this lease any more", a.Job)
	}
	return err
}

// WakePoll has the provider of a job asked at once, or when the poll that is under way ends; not if the job
// has ended. So a callback can bring news whose word is the poll's. Errors: INVALID; NOT_FOUND; BUSY if the
// job is open and cannot be asked for yet: the news should come again.
func (l *Ledger) WakePoll(ctx context.Context, job string) error {
	if err := CheckID("job", job); err != nil {
		return err
	}
	_, err := write(ctx, l, func(tx *db.Tx) (struct{}, error) { return struct{}{}, wakePoll(tx, job) })
	return err
}

func wakePoll(tx *db.Tx, job string) error {
	rows, err := tx.Exec(`
		UPDATE polls SET next_at = CASE WHEN next_at < ? THEN next_at ELSE ? END WHERE job_id = ?`,
		now(tx), now(tx), job)
	if err != nil || rows > 0 {
		return err
	}
	j, err := mustFindJob(tx, job)
	if err == nil && j.Status.Open() {
		err = fail(Busy, "job %q cannot be asked for yet: its acceptance is not on file", job)
	}
	return err
}

// FindAttempt gives the attempt that a provider knows under its own id: which job a callback is about.
// Errors: INVALID; NOT_FOUND.
func (l *Ledger) FindAttempt(ctx context.Context, provider, upstreamID string) (Attempt, error) {
	if err := firstError(CheckID("provider", provider), CheckID("upstream_id", upstreamID)); err != nil {
		return Attempt{}, err
	}
	return read(ctx, l, func(tx *db.Tx) (a Attempt, err error) {
		found, err := tx.Get(&a, upstreamQuery, provider, upstreamID)
		if err == nil && !found {
			err = fail(NotFound, "no attempt of provider %q has the upstream id %q", provider, shorten(upstreamID))
		}
		return a, err
	})
}

const upstreamQuery = `SELECT ` + attemptColumns + ` FROM attempts WHERE provider = ? AND upstream_id = ?`

// startPoll notes that the provider of an attempt can be asked for its job, and from when.
func startPoll(tx *db.Tx, on *Attempt, at Time) error {
	_, err := tx.Exec(`
		INSERT INTO polls (job_id, attempt, provider, next_at, tries, last_error)
		VALUES (?, ?, ?, ?, 0, '')
		ON CONFLICT (job_id) DO NOTHING`,
		on.Job, on.Attempt, on.Provider, at)
	return err
}

// stopPoll notes that nobody is to be asked for a job any more.
func stopPoll(tx *db.Tx, job string) error {
	_, err := tx.Exec(`DELETE FROM polls WHERE job_id = ?`, job)
	return err
}

// pollable is what a job j and its current attempt a must be for the provider to be asked.
const pollable = `j.status IN ('pending', 'processing') AND j.submission = 'accepted'
  AND a.provider <> '' AND a.upstream_id IS NOT NULL`

// startPolls does what startPoll does, for all jobs that were brought from elsewhere.
func startPolls(tx *db.Tx) error {
	_, err := tx.Exec(`
		INSERT INTO polls (job_id, attempt, provider, next_at, tries, last_error)
		SELECT j.id, j.attempt, a.provider, CAST(? AS BIGINT), 0, ''
		FROM jobs j
		JOIN attempts a ON a.job_id = j.id AND a.attempt = j.attempt
		WHERE `+pollable+`
		ON CONFLICT (job_id) DO NOTHING`, now(tx))
	return err
}
