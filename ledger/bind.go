package ledger

import (
	"context"
	"time"

	"jobledger/db"
)

// Handles are what an authenticated document of a provider names: one of the two ids at least.
type Handles struct {
	Provider   string // who signed it
	UpstreamID string // the provider's id; empty: it names none
	Job        string // our id, which the provider echoes; empty: it names none
	Attempt    int64  // 0: it names none
}

// Bound is what a document is about.
type Bound struct {
	Job     string
	Attempt int64 // 0: one of several, and the document does not say which
}

// Bind finds the job and attempt that a provider's document is about. The id that the provider gave an
// attempt decides; what else the document names must agree with it. Our own ids serve while the provider's
// is not on file yet: a provider can report a job before its acceptance was recorded.
//
// Errors: INVALID; FORBIDDEN if the document is about an attempt that is not this provider's, or names two
// different ones; NOT_FOUND; BUSY if the provider's id is not on file and one of its submissions of the last
// 24 hours is without an answer: it may be that one, and the document should come again.
func (l *Ledger) Bind(ctx context.Context, h Handles) (Bound, error) {
	if h.UpstreamID == "" && h.Job == "" {
		return Bound{}, InvalidField("upstream_id", "is empty, and so is job; it takes one of them")
	}
	if err := firstError(
		CheckID("provider", h.Provider), checkGivenID("upstream_id", h.UpstreamID), checkGivenID("job", h.Job),
	); err != nil {
		return Bound{}, err
	}
	return read(ctx, l, func(tx *db.Tx) (Bound, error) { return bind(tx, h) })
}

func checkGivenID(field, id string) error {
	if id == "" {
		return nil
	}
	return CheckID(field, id)
}

func bind(tx *db.Tx, h Handles) (Bound, error) {
	if h.UpstreamID != "" {
		var a Attempt
		found, err := tx.Get(&a, upstreamQuery, h.Provider, h.UpstreamID)
		if err != nil {
			return Bound{}, err
		}
		if found {
			return bindKnown(&a, h)
		}
	}
	if h.Job == "" {
		return Bound{}, unknownUpstream(tx, h)
	}
	return bindByJob(tx, h)
}

// bindKnown binds to the attempt that has the document's upstream id.
func bindKnown(a *Attempt, h Handles) (Bound, error) {
	if h.Job != "" && h.Job != a.Job || h.Attempt != 0 && h.Attempt != a.Attempt {
		return Bound{}, fail(Forbidden, "upstream id %q is attempt %d of job %q; the document names another",
			shorten(h.UpstreamID), a.Attempt, a.Job)
	}
	return Bound{a.Job, a.Attempt}, nil
}

// bindByJob binds to an attempt whose upstream id is not on file, or is another one: that is for the
// settlement to judge, which keeps it as evidence.
func bindByJob(tx *db.Tx, h Handles) (Bound, error) {
	job, err := mustFindJob(tx, h.Job)
	if err != nil {
		return Bound{}, err
	}
	b := Bound{job.ID, h.Attempt}
	if b.Attempt == 0 && job.Attempt == 1 {
		b.Attempt = 1
	}
	var at int64
	found, err := tx.Get(&at, `
		SELECT attempt FROM attempts WHERE job_id = ? AND provider = ? AND (? = 0 OR attempt = ?)
		ORDER BY attempt LIMIT 1`, b.Job, h.Provider, b.Attempt, b.Attempt)
	switch {
	case err != nil:
		return Bound{}, err
	case !found && (job.Attempt == 0 || b.Attempt > job.Attempt):
		return Bound{}, fail(NotFound, "job %q has had %d attempts, and the document is about another", b.Job,
			job.Attempt)
	case !found:
		return Bound{}, fail(Forbidden, "job %q: the attempt is not one of provider %q", b.Job, h.Provider)
	}
	return b, nil
}

// awaitedFor is how long after its mark a submission may be what an unknown id belongs to. Without a bound,
// one that was given up would have every stray document sent again for ever.
const awaitedFor = 24 * time.Hour

// awaitedQuery finds an open job that may be at a provider under an id that is not on file. It goes from
// the open jobs, as unresolvedQuery does.
const awaitedQuery = `
WITH open AS MATERIALIZED (SELECT id FROM jobs WHERE status IN ('pending', 'processing'))
SELECT j.id
FROM open o CROSS JOIN jobs j CROSS JOIN attempts a
WHERE j.id = o.id AND j.submission IN ('submitting', 'uncertain', 'unknown', 'accepted')
  AND a.job_id = j.id AND a.attempt = j.attempt AND a.provider = ? AND a.upstream_id IS NULL
  AND a.marked_at >= ?
LIMIT 1`

// unknownUpstream says why no attempt has an upstream id: nobody knows it yet, or it is not ours.
func unknownUpstream(tx *db.Tx, h Handles) error {
	var job string
	found, err := tx.Get(&job, awaitedQuery, h.Provider, now(tx)-Time(awaitedFor.Microseconds()))
	switch {
	case err != nil:
		return err
	case found:
		return fail(Busy, "upstream id %q is not on file; provider %q has a submission without an answer, "+
			"which it may be", shorten(h.UpstreamID), h.Provider)
	}
	return fail(NotFound, "no attempt of provider %q has the upstream id %q", h.Provider, shorten(h.UpstreamID))
}
