package ledger

import (
	"context"
	"slices"
	"strings"

	"jobledger/db"
)

// SweepResult is what one sweep did, and what it may not do.
type SweepResult struct {
	ExpiredLots         int64    `json:"expired_lots"`
	TimedOut            int64    `json:"timed_out"`
	NeedsReconciliation []Job    `json:"needs_reconciliation"`   // past the deadline, maybe at a provider
	Inconsistent        []string `json:"inconsistent,omitempty"` // what it found contradictory and left alone
	More                bool     `json:"more,omitempty"`         // the limit was reached: sweep again
}

// Sweep expires lots that are due and times out jobs that were never submitted and are past their
// deadline: at most limit of each, 1 to PageMax. Jobs that were submitted are never touched; those
// past their deadline are listed, the first PageMax of them. A job or owner of which the ledger
// contradicts itself is left as it is and named; the others of those limit are swept all the same.
//
// On PostgreSQL all of these jobs and owners stay locked until the end: whoever settles one waits for the
// sweep. Many sweeps of few keep nobody waiting for long; 50 are few.
//
// Errors: INVALID.
func (l *Ledger) Sweep(ctx context.Context, limit int) (SweepResult, error) {
	if err := checkPage(limit); err != nil {
		return SweepResult{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (SweepResult, error) {
		s := sweeping{tx: tx, limit: limit}
		err := s.run()
		return s.result, err
	})
}

// sweepPage is how much one transaction of [SweepAll] sweeps: few enough that nobody waits for long.
const sweepPage = 50

// SweepAll sweeps until nothing is due, and adds up what it did. Each round is a transaction of its own,
// so that others are not kept waiting for the whole; after an error, the rounds before it are done.
func SweepAll(ctx context.Context, l *Ledger) (total SweepResult, err error) {
	for {
		r, err := l.Sweep(ctx, sweepPage)
		if err != nil {
			return total, err
		}
		r.ExpiredLots += total.ExpiredLots
		r.TimedOut += total.TimedOut
		if total = r; !r.More {
			return total, nil
		}
	}
}

type sweptJob struct{ ID, Owner string }

// sweeping is one sweep at work.
type sweeping struct {
	tx     *db.Tx
	limit  int
	jobs   []sweptJob
	owners []struct {
		Owner string
		Lots  int // that are due
	}
	full   bool // there may be more than it found
	moved  bool // what it found is not all there any more
	result SweepResult
}

func (s *sweeping) run() error {
	s.result.NeedsReconciliation = []Job{}
	if err := s.find(); err != nil {
		return err
	}
	if err := s.lock(); err != nil {
		return err
	}
	for _, job := range s.jobs {
		if err := s.attempt(func() error { return s.timeOut(job.ID) }); err != nil {
			return err
		}
	}
	for _, o := range s.owners {
		if err := s.attempt(func() error { return s.expire(o.Owner, o.Lots) }); err != nil {
			return err
		}
	}
	// A round that did nothing would do nothing again.
	s.result.More = s.full && s.moved
	return s.tx.Select(&s.result.NeedsReconciliation, `
		SELECT `+jobColumns+` FROM jobs
		WHERE status IN ('pending', 'processing') AND deadline <= ? AND submission <> 'none'
		ORDER BY deadline, id
		LIMIT ?`, now(s.tx), PageMax)
}

// attempt runs one part of the sweep, undoes it alone if it meets a contradiction, and notes that.
func (s *sweeping) attempt(part func() error) error {
	err := s.tx.Try(part)
	if err != nil && CodeOf(wrap(err)) == Inconsistent {
		s.result.Inconsistent = append(s.result.Inconsistent, err.Error())
		return nil
	}
	return err
}

// dueJob has one parameter, the time.
const dueJob = `status IN ('pending', 'processing') AND deadline <= ? AND submission = 'none'`

// find chooses what this sweep will touch.
func (s *sweeping) find() error {
	err := s.tx.Select(&s.jobs, `
		SELECT id, owner FROM jobs
		WHERE `+dueJob+`
		ORDER BY deadline, id
		LIMIT ?`, now(s.tx), s.limit)
	if err != nil {
		return err
	}
	err = s.tx.Select(&s.owners, `
		SELECT owner, COUNT(*) AS lots
		FROM (SELECT owner FROM lots WHERE available > 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?) d
		GROUP BY owner`, now(s.tx), s.limit)
	lots := 0
	for _, o := range s.owners {
		lots += o.Lots
	}
	s.full = len(s.jobs) == s.limit || lots == s.limit
	return err
}

// lock locks what was found and nothing else: jobs before owners, as a settlement does, and each in the
// order of their ids, as another sweep does. So nobody whom this sweep waits for waits for it. Jobs that
// are not due any more are left out; the others stay in the order of their deadlines.
func (s *sweeping) lock() error {
	byID := slices.Clone(s.jobs)
	slices.SortFunc(byID, func(a, b sweptJob) int { return strings.Compare(a.ID, b.ID) })
	due := map[string]bool{}
	for _, job := range byID {
		found, err := s.tx.Lock(`SELECT 1 FROM jobs WHERE id = ? AND `+dueJob, job.ID, now(s.tx))
		if err != nil {
			return err
		}
		due[job.ID] = found
	}
	s.jobs = slices.DeleteFunc(s.jobs, func(job sweptJob) bool { return !due[job.ID] })
	s.moved = len(s.jobs) < len(byID)
	var owners []string
	for _, job := range s.jobs {
		owners = append(owners, job.Owner)
	}
	for _, o := range s.owners {
		owners = append(owners, o.Owner)
	}
	slices.Sort(owners)
	for _, owner := range slices.Compact(owners) {
		if _, err := s.tx.Lock(`SELECT 1 FROM balances WHERE owner = ?`, owner); err != nil {
			return err
		}
	}
	return nil
}

// timeOut settles a due job by a claim of its own, bySweep, which takes no job that was submitted: what
// was found due may have changed, and the claim decides again.
func (s *sweeping) timeOut(job string) error {
	r := Report{Job: job, Outcome: TimedOut, Source: Sweeper, Reason: "past its deadline, never submitted"}
	settled, _, err := settle(s.tx, bySweep, r)
	if err == nil && settled.Won {
		s.moved = true
		s.result.TimedOut++
		s.result.ExpiredLots += int64(settled.expired)
	}
	return err
}

// expire expires up to a number of an owner's due lots.
func (s *sweeping) expire(owner string, lots int) error {
	a, err := lockAccount(s.tx, owner)
	if err != nil {
		return err
	}
	n, err := expireDue(s.tx, a, lots)
	if err == nil {
		s.moved = s.moved || n > 0
		s.result.ExpiredLots += int64(n)
	}
	return err
}
