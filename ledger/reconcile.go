package ledger

import (
	"context"

	"jobledger/db"
)

// Unresolved is an open job that needs a person: nobody knows whether, or how, it will end.
type Unresolved struct {
	Job        string     `db:"job_id" json:"job"`
	Owner      string     `db:"owner" json:"owner"`
	Submission Submission `db:"submission" json:"submission"`
	Reason     string     `db:"evidence" json:"reason"` // what was recorded with the attempt
	Attempt    int64      `db:"attempt" json:"attempt"`
	Provider   string     `db:"provider" json:"provider"`
	UpstreamID *string    `db:"upstream_id" json:"upstream_id"`
	Cost       int64      `db:"cost" json:"cost"`
	Held       int64      `db:"held" json:"held"` // the cost of a job in mode hold, else 0: it is used
	Deadline   *Time      `db:"deadline" json:"deadline"`
	MarkedAt   Time       `db:"marked_at" json:"marked_at"`
	AgeSeconds int64      `db:"-" json:"age_seconds"` // since the attempt was marked
}

// UnresolvedJobs lists the jobs that wait for reconciliation, by id: those whose submission has no
// answer or an uncertain one, those that were imported without evidence or had ended without being
// settled, those accepted without both handles, and those submitted in any way and past their deadline.
// At most limit of those after the id after.
//
// Errors: INVALID.
func (l *Ledger) UnresolvedJobs(ctx context.Context, after string, limit int) ([]Unresolved, error) {
	if err := firstError(checkPage(limit), checkAfter(after)); err != nil {
		return nil, err
	}
	return read(ctx, l, func(tx *db.Tx) ([]Unresolved, error) {
		list := []Unresolved{}
		if err := tx.Select(&list, unresolvedQuery, after, now(tx), limit); err != nil {
			return nil, err
		}
		for i := range list {
			list[i].age(now(tx))
		}
		return list, nil
	})
}

func (u *Unresolved) age(at Time) { u.AgeSeconds = int64(at-u.MarkedAt) / 1_000_000 }

// unresolvedQuery finds the open jobs first, through their own index: they are few among all jobs.
// SQLite takes the tables of a CROSS JOIN in the order in which they stand.
const unresolvedQuery = `
WITH open AS MATERIALIZED (
  SELECT id FROM jobs WHERE status IN ('pending', 'processing')
  UNION ALL
  SELECT id FROM jobs WHERE imported = 1 AND settled_cost IS NULL AND status NOT IN ('pending', 'processing')
)
SELECT j.id AS job_id, j.owner, j.submission, a.evidence, j.attempt, a.provider, a.upstream_id,
       j.cost, CASE j.mode WHEN 'hold' THEN j.cost ELSE 0 END AS held, j.deadline, a.marked_at
FROM open o CROSS JOIN jobs j CROSS JOIN attempts a
WHERE o.id > ? AND j.id = o.id AND a.job_id = j.id AND a.attempt = j.attempt
  AND (j.submission IN ('submitting', 'uncertain', 'unknown')
       OR j.status NOT IN ('pending', 'processing')
       OR j.submission = 'accepted' AND (a.provider = '' OR a.upstream_id IS NULL)
       OR j.deadline <= ?)
ORDER BY o.id
LIMIT ?`

// Reconciliation is an operator's finding about a job's current attempt.
type Reconciliation struct {
	Job        string
	Provider   string // fills in a provider that is not on file; else leave it empty
	UpstreamID string // accept only: the provider's id for the attempt
	Evidence   string // required: what the operator saw, and where
	Operator   string // required: who
}

// ReconcileAccept records an operator's evidence that the provider took the job. It stays open, and
// its reports settle it.
//
// Errors: INVALID; NOT_FOUND; IDEMPOTENCY_MISMATCH; NOT_ALLOWED if the attempt needs no
// reconciliation.
func (l *Ledger) ReconcileAccept(ctx context.Context, r Reconciliation) (AnswerResult, error) {
	if err := firstError(r.check(), CheckID("upstream_id", r.UpstreamID)); err != nil {
		return AnswerResult{}, err
	}
	a := r.answer(SubmissionAccepted)
	a.upstreamID = r.UpstreamID
	a.replaces = func(_ *Job, on *Attempt) bool {
		return on.Submission == SubmissionAccepted && (on.Provider == "" || on.UpstreamID == nil)
	}
	return l.answer(ctx, a)
}

// ReconcileReject records an operator's evidence that the provider does not have the job, or will
// not finish it, and settles the job as failed. It also closes an open job that the provider has
// taken, or has refused without a further attempt.
//
// Errors: as of [Ledger.ReconcileAccept].
func (l *Ledger) ReconcileReject(ctx context.Context, r Reconciliation) (AnswerResult, error) {
	if err := r.check(); err != nil {
		return AnswerResult{}, err
	}
	a := r.answer(SubmissionRejected)
	a.replaces = func(job *Job, on *Attempt) bool {
		// What the provider took and does not finish, or refused and nobody tries again.
		return (job.Status.Open() || job.legacy()) &&
			(on.Submission == SubmissionAccepted || on.Submission == SubmissionRejected)
	}
	return l.answer(ctx, a)
}

func (r *Reconciliation) check() error {
	if r.Provider != "" {
		if err := CheckID("provider", r.Provider); err != nil {
			return err
		}
	}
	return firstError(CheckEvidence("evidence", r.Evidence), CheckID("operator", r.Operator))
}

func (r *Reconciliation) answer(s Submission) answer {
	return answer{
		job: r.Job, submission: s, evidence: r.Evidence, operator: r.Operator, provider: r.Provider,
		from:   []Submission{SubmissionSubmitting, SubmissionUncertain, SubmissionUnknown},
		source: Operator,
	}
}
