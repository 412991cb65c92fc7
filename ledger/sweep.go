package ledger

import (
	"context"

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
// contradicts itself is left as it is and named; the others are swept all the same.
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

// sweeping is one sweep at work.
type sweeping struct {
	tx     *db.Tx
	limit  int
	result SweepResult
}

func (s *sweeping) run() error {
	s.result.NeedsReconciliation = []Job{}
	if err := s.lockDue(); err != nil {
		return err
	}
	if err := s.timeOutDue(); err != nil {
		return err
	}
	if err := s.expireDue(); err != nil {
		return err
	}
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

// lockDue locks what a sweep is about to touch: jobs before owners, as a settlement does, and each in
// the order of their ids, as another sweep does. What becomes due meanwhile is left to a retry.
func (s *sweeping) lockDue() error {
	at := now(s.tx)
	_, err := s.tx.Lock(`
		SELECT 1 FROM jobs WHERE id IN (`+dueJobs+`)
		ORDER BY id`, at, s.limit)
	if err != nil {
		return err
	}
	_, err = s.tx.Lock(`
		SELECT 1 FROM balances
		WHERE owner IN (SELECT owner FROM jobs WHERE id IN (`+dueJobs+`)) OR owner IN (`+dueOwners+`)
		ORDER BY owner`, at, s.limit, at, s.limit)
	return err
}

const (
	dueJobs = `
		SELECT id FROM jobs
		WHERE status IN ('pending', 'processing') AND deadline <= ? AND submission = 'none'
		ORDER BY deadline, id
		LIMIT ?`
	dueOwners = `
		SELECT owner FROM lots WHERE available > 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?`
)

// timeOutDue settles the due jobs that it finds, each by a claim of its own: what the SELECT saw may
// have changed, and the claim decides again.
func (s *sweeping) timeOutDue() error {
	var due []string
	err := s.tx.Select(&due, dueJobs, now(s.tx), s.limit)
	if err != nil {
		return err
	}
	before := s.result.TimedOut
	for _, id := range due {
		err := s.attempt(func() error {
			r := Report{Job: id, Outcome: TimedOut, Source: Sweeper, Reason: "past its deadline, never submitted"}
			settled, _, err := settle(s.tx, bySweep, r)
			if err == nil && settled.Won {
				s.result.TimedOut++
				s.result.ExpiredLots += int64(settled.expired)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	s.more(len(due), s.result.TimedOut > before)
	return nil
}

// expireDue expires the due lots of as many owners as it finds within the limit.
func (s *sweeping) expireDue() error {
	var due []struct {
		Owner string
		Lots  int64
	}
	err := s.tx.Select(&due, `
		SELECT owner, COUNT(*) AS lots
		FROM (`+dueOwners+`) d
		GROUP BY owner
		ORDER BY owner`, now(s.tx), s.limit)
	if err != nil {
		return err
	}
	seen, before := 0, s.result.ExpiredLots
	for _, d := range due {
		seen += int(d.Lots)
		err := s.attempt(func() error {
			a, err := lockAccount(s.tx, d.Owner)
			if err != nil {
				return err
			}
			n, err := expireDue(s.tx, a, int(d.Lots))
			if err == nil {
				s.result.ExpiredLots += int64(n)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	s.more(seen, s.result.ExpiredLots > before)
	return nil
}

// more notes that the limit was reached. A round that did nothing would do nothing again.
func (s *sweeping) more(found int, progress bool) {
	s.result.More = s.result.More || (found == s.limit && progress)
}
