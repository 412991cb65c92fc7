package ledger

import (
	"context"

	"jobledger/db"
)

// SweepResult is what one sweep did, and what it may not do.
type SweepResult struct {
	ExpiredLots         int64 `json:"expired_lots"`
	TimedOut            int64 `json:"timed_out"`
	NeedsReconciliation []Job `json:"needs_reconciliation"` // past the deadline, but a provider may be at work
	More                bool  `json:"more,omitempty"`       // the limit was reached: sweep again
}

// Sweep expires lots that are due and times out jobs that were never submitted and are past their
// deadline: at most limit of each, 1 to PageMax. Jobs that were submitted are never touched; those
// past their deadline are listed, the first PageMax of them.
//
// Errors: INVALID; INCONSISTENT.
func (l *Ledger) Sweep(ctx context.Context, limit int) (SweepResult, error) {
	if err := checkPage(limit); err != nil {
		return SweepResult{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (SweepResult, error) { return sweep(tx, limit) })
}

func sweep(tx *db.Tx, limit int) (SweepResult, error) {
	jobs, err := timeOutDue(tx, limit)
	if err != nil {
		return SweepResult{}, err
	}
	lots, seen, err := expireAnyDue(tx, limit)
	if err != nil {
		return SweepResult{}, err
	}
	r := SweepResult{ExpiredLots: lots, NeedsReconciliation: []Job{}}
	for _, s := range jobs {
		if s.Won {
			r.TimedOut++
		}
		r.ExpiredLots += int64(s.expired)
	}
	r.More = seen == limit || len(jobs) == limit
	err = tx.Select(&r.NeedsReconciliation, `
		SELECT `+jobColumns+` FROM jobs
		WHERE status IN ('pending', 'processing') AND deadline <= ? AND submission <> 'none'
		ORDER BY deadline, id
		LIMIT ?`, now(tx), PageMax)
	return r, err
}

// timeOutDue settles the due jobs that it finds, each by a claim of its own: what the SELECT saw may
// have changed, and the claim decides again.
func timeOutDue(tx *db.Tx, limit int) (ended []Settlement, err error) {
	var due []string
	err = tx.Select(&due, `
		SELECT id FROM jobs
		WHERE status IN ('pending', 'processing') AND deadline <= ? AND submission = 'none'
		ORDER BY deadline, id
		LIMIT ?`, now(tx), limit)
	if err != nil {
		return nil, err
	}
	for _, id := range due {
		r := Report{Job: id, Outcome: TimedOut, Source: Sweeper, Reason: "past its deadline, never submitted"}
		s, _, err := settle(tx, bySweep, r)
		if err != nil {
			return nil, err
		}
		ended = append(ended, s)
	}
	return ended, nil
}

// expireAnyDue expires the due lots of as many owners as it finds within the limit.
func expireAnyDue(tx *db.Tx, limit int) (expired int64, seen int, err error) {
	var due []struct {
		Owner string
		Lots  int64
	}
	err = tx.Select(&due, `
		SELECT owner, COUNT(*) AS lots
		FROM (SELECT owner FROM lots WHERE available > 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?) d
		GROUP BY owner
		ORDER BY owner`, now(tx), limit)
	if err != nil {
		return 0, 0, err
	}
	for _, d := range due {
		a, err := lockAccount(tx, d.Owner)
		if err != nil {
			return 0, 0, err
		}
		n, err := expireDue(tx, a, int(d.Lots))
		if err != nil {
			return 0, 0, err
		}
		expired += int64(n)
		seen += int(d.Lots)
	}
	return expired, seen, nil
}
