package ledger

import (
	"context"

	"jobledger/db"
)

// Job is one generation request with the cost that it was charged. It ends once.
type Job struct {
	ID             string     `db:"id" json:"id"`
	Owner          string     `db:"owner" json:"owner"`
	Cost           int64      `db:"cost" json:"cost"`
	Mode           Mode       `db:"mode" json:"mode"`
	Status         Status     `db:"status" json:"status"`
	Attempt        int64      `db:"attempt" json:"attempt"` // the current one; 0 before the first
	Submission     Submission `db:"submission" json:"submission"`
	SettledCost    *int64     `db:"settled_cost" json:"settled_cost"` // in the end; nil until settled
	SettledSource  *Source    `db:"settled_source" json:"settled_source"`
	SettledAttempt *int64     `db:"settled_attempt" json:"settled_attempt"`
	SettledAt      *Time      `db:"settled_at" json:"settled_at"`
	Deadline       *Time      `db:"deadline" json:"deadline"`
	Reason         string     `db:"reason" json:"reason"`
	Metadata       JSON       `db:"metadata" json:"metadata"`
	CreatedAt      Time       `db:"created_at" json:"created_at"`
	UpdatedAt      Time       `db:"updated_at" json:"updated_at"`
}

const jobColumns = `id, owner, cost, mode, status, attempt, submission, settled_cost, settled_source,
	settled_attempt, settled_at, deadline, reason, metadata, created_at, updated_at`

// JobParams asks for a job.
type JobParams struct {
	ID       string // names the job for ever: the same id never pays twice
	Owner    string
	Cost     int64 // 1 to AmountMax
	Mode     Mode  // empty: ModeHold
	Deadline When  // a job that was never submitted is timed out after it; not given: never
	Metadata JSON
}

// JobResult is a job and what its owner has now.
type JobResult struct {
	Job      Job     `json:"job"`
	Balance  Balance `json:"balance"`
	Replayed bool    `json:"replayed"`
}

// CreateJob makes a job and takes its cost from the owner's lots, in spending order: held or used,
// as the mode says. The owner's lots that are due are expired first.
//
// Errors: INVALID; NOT_FOUND for an unknown owner; IDEMPOTENCY_MISMATCH if the id is that of another
// job; INSUFFICIENT_CREDITS.
func (l *Ledger) CreateJob(ctx context.Context, p JobParams) (JobResult, error) {
	if err := p.check(); err != nil {
		return JobResult{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (JobResult, error) { return createJob(tx, p) })
}

func (p *JobParams) check() (err error) {
	if p.Mode == "" {
		p.Mode = ModeHold
	}
	if p.Metadata, err = checkMetadata(p.Metadata); err != nil {
		return err
	}
	return firstError(
		CheckID("id", p.ID),
		CheckID("owner", p.Owner),
		checkAmount("cost", p.Cost),
		checkOneOf("mode", p.Mode, ModeHold, ModeCharge),
		p.Deadline.check("deadline"),
	)
}

func createJob(tx *db.Tx, p JobParams) (JobResult, error) {
	first, err := findJob(tx, p.ID)
	if err != nil {
		return JobResult{}, err
	}
	if first != nil {
		return replayJob(tx, p, first)
	}
	a, err := lockAccount(tx, p.Owner)
	if err != nil {
		return JobResult{}, err
	}
	if _, err := expireDue(tx, a, everyLot); err != nil {
		return JobResult{}, err
	}
	from, err := allocate(tx, a, p.Cost)
	if err != nil {
		made, again := findJob(tx, p.ID)
		return JobResult{}, overtaken(err, made != nil, again)
	}
	job := p.job(now(tx))
	// From here on it must succeed.
	if err := insertJob(tx, &job); err != nil {
		return JobResult{}, err
	}
	kind := KindHold
	if job.Mode == ModeCharge {
		kind = KindCharge
	}
	_, err = move(tx, a, movement{kind: kind, key: jobKey(kind, job.ID), job: &job, from: from})
	return JobResult{Job: job, Balance: a.balance()}, err
}

// overtaken is the refusal of an operation for want of credits, once it looked for its key again: whoever
// had the account before may have written it, with the credits that are missing now. That calls for a
// replay.
func overtaken(refusal error, written bool, err error) error {
	switch {
	case CodeOf(refusal) != InsufficientCredits:
		return refusal
	case err != nil:
		return err
	case written:
		return db.Changed(refusal)
	}
	return refusal
}

func (p *JobParams) job(at Time) Job {
	return Job{
		ID:         p.ID,
		Owner:      p.Owner,
		Cost:       p.Cost,
		Mode:       p.Mode,
		Status:     Pending,
		Submission: SubmissionNone,
		Deadline:   p.Deadline.from(at),
		Metadata:   p.Metadata,
		CreatedAt:  at,
		UpdatedAt:  at,
	}
}

// jobKey is the event key of a job's entry of a kind: each kind happens once per job.
func jobKey(kind Kind, job string) string { return "job-" + string(kind) + ":" + job }

func insertJob(tx *db.Tx, j *Job) error {
	_, err := tx.Exec(`
		INSERT INTO jobs (id, owner, cost, mode, status, attempt, submission, deadline, reason, metadata,
		                  created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		j.ID, j.Owner, j.Cost, j.Mode, j.Status, j.Attempt, j.Submission, j.Deadline, j.Reason, j.Metadata,
		j.CreatedAt, j.UpdatedAt)
	return err
}

func replayJob(tx *db.Tx, p JobParams, first *Job) (JobResult, error) {
	fields := differing(
		field{"owner", p.Owner == first.Owner},
		field{"cost", p.Cost == first.Cost},
		field{"mode", p.Mode == first.Mode},
		field{"deadline", equal(p.Deadline.from(first.CreatedAt), first.Deadline)},
		field{"metadata", p.Metadata == first.Metadata},
	)
	if fields != nil {
		return JobResult{}, mismatch("job "+p.ID, fields)
	}
	// The job as it is while the balance is read: it must not end between the two.
	job, err := lockJob(tx, p.ID)
	if err != nil {
		return JobResult{}, err
	}
	b, err := balance(tx, p.Owner)
	return JobResult{Job: *job, Balance: b, Replayed: true}, err
}

// findJob gives a job, or nil.
func findJob(tx *db.Tx, id string) (*Job, error) {
	j := new(Job)
	found, err := tx.Get(j, `SELECT `+jobColumns+` FROM jobs WHERE id = ?`, id)
	if err != nil || !found {
		return nil, err
	}
	return j, nil
}

// mustFindJob gives a job, or NOT_FOUND.
func mustFindJob(tx *db.Tx, id string) (*Job, error) {
	j, err := findJob(tx, id)
	if err == nil && j == nil {
		err = noJob(id)
	}
	return j, err
}

func noJob(id string) error { return fail(NotFound, "there is no job %q", id) }

// allocate picks the lots that pay an amount, in spending order. Nothing is written.
// Errors: INSUFFICIENT_CREDITS.
func allocate(tx *db.Tx, a *account, amount int64) ([]Posting, error) {
	if a.spendable() < amount {
		return nil, insufficient(a.Owner, a.spendable(), amount)
	}
	var from []Posting
	missing := amount
	err := db.Each(tx, func(l *Lot) (bool, error) {
		take := min(l.Available, missing)
		from = append(from, Posting{l.ID, take})
		missing -= take
		return missing > 0, nil
	}, `
		SELECT id, available FROM lots
		WHERE owner = ? AND available > 0
		  AND COALESCE(expires_at, 253402300800000000) > ? AND COALESCE(effective_at, 0) <= ?
		ORDER BY `+spendingOrder, a.Owner, now(tx), now(tx))
	if err == nil && missing > 0 {
		err = fail(Inconsistent, "the lots of %q hold %d credits fewer than its balance says", a.Owner, missing)
	}
	return from, err
}

// Job gives one job. Errors: INVALID; NOT_FOUND.
func (l *Ledger) Job(ctx context.Context, id string) (Job, error) {
	if err := CheckID("id", id); err != nil {
		return Job{}, err
	}
	return read(ctx, l, func(tx *db.Tx) (Job, error) {
		j, err := mustFindJob(tx, id)
		if err != nil {
			return Job{}, err
		}
		return *j, nil
	})
}

// JobFilter selects jobs; they come in the order of their ids.
type JobFilter struct {
	Owner  string // empty: of all owners
	Status Status // empty: in any status
	After  string // the id of the last job of the page before; empty: from the start
	Limit  int    // 1 to PageMax
}

// Jobs lists jobs. Errors: INVALID; NOT_FOUND for an unknown owner.
func (l *Ledger) Jobs(ctx context.Context, f JobFilter) ([]Job, error) {
	statuses := []Status{"", Pending, Processing}
	for _, o := range Outcomes {
		statuses = append(statuses, Status(o))
	}
	if err := firstError(checkOneOf("status", f.Status, statuses...), checkPage(f.Limit), checkAfter(f.After),
		checkOptionalID("owner", f.Owner)); err != nil {
		return nil, err
	}
	return read(ctx, l, func(tx *db.Tx) ([]Job, error) {
		list := []Job{}
		if f.Owner != "" {
			if _, err := balance(tx, f.Owner); err != nil {
				return nil, err
			}
		}
		query, args := f.query()
		err := tx.Select(&list, query, args...)
		return list, err
	})
}

func (f *JobFilter) query() (query string, args []any) {
	query = `SELECT ` + jobColumns + ` FROM jobs WHERE id > ?`
	args = []any{f.After}
	if f.Owner != "" {
		query += ` AND owner = ?`
		args = append(args, f.Owner)
	}
	if f.Status != "" {
		query += ` AND status = ?`
		args = append(args, f.Status)
	}
	return query + ` ORDER BY id LIMIT ?`, append(args, f.Limit)
}
