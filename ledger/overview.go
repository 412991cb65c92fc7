package ledger

import (
	"context"
	"math"
	"time"

	"jobledger/db"
)

// Survey is what a look at everything shows. To make one, all jobs are read.
type Survey struct {
	At         Time             // of the look
	Owners     int64            // how many there are
	Jobs       map[Status]int64 // how many are in each status; a status without jobs is missing
	Backlog    Backlog
	Unresolved []Unresolved    // those of UnresolvedJobs that wait the longest, the oldest first
	Conflicts  int64           // how many reports contradicted a settlement
	Latest     []Contradiction // of them, the latest first
}

// Contradiction is a report that contradicted a settlement, as the event of it says.
type Contradiction struct {
	Event    string
	Job      string
	Owner    string
	Outcome  Outcome // how the job had ended
	Reported Outcome // what was said
	Source   Source  // who said it
	Reason   string  // why, in its words
	At       Time
}

// Survey reads all jobs and counts them. It takes as long as that takes: it is for a look now and then,
// beside the work, and not for every reader of a page. Its lists have at most limit rows.
//
// Errors: INVALID; BUSY if ctx ends.
func (l *Ledger) Survey(ctx context.Context, limit int) (Survey, error) {
	if err := checkPage(limit); err != nil {
		return Survey{}, err
	}
	return read(ctx, l, func(tx *db.Tx) (Survey, error) { return survey(tx, limit) })
}

const (
	countJobsQuery = `SELECT status, COUNT(*) AS n FROM jobs GROUP BY status`

	oldestUnresolvedQuery = `
SELECT * FROM (` + unresolvedQuery + `) u ORDER BY marked_at, job_id LIMIT ?`

	// ';' is the character after ':': the range is the ids of all conflicts.
	conflictRange = ` FROM events WHERE id > 'conflict:' AND id < 'conflict;'`
)

func survey(tx *db.Tx, limit int) (Survey, error) {
	s := Survey{At: now(tx), Jobs: map[Status]int64{}, Unresolved: []Unresolved{}, Latest: []Contradiction{}}
	var jobs []struct {
		Status Status
		N      int64
	}
	events := []Event{}
	_, owners := tx.Get(&s.Owners, `SELECT COUNT(*) FROM balances`)
	_, conflicts := tx.Get(&s.Conflicts, `SELECT COUNT(*)`+conflictRange)
	var backlog error
	s.Backlog, backlog = countBacklog(tx)
	if err := firstError(
		owners, conflicts, backlog,
		tx.Select(&jobs, countJobsQuery),
		tx.Select(&s.Unresolved, oldestUnresolvedQuery, "", now(tx), math.MaxInt32, limit),
		tx.Select(&events, `SELECT `+eventColumns+conflictRange+` ORDER BY created_at DESC, id LIMIT ?`, limit),
	); err != nil {
		return Survey{}, err
	}
	for _, j := range jobs {
		s.Jobs[j.Status] = j.N
	}
	for i := range s.Unresolved {
		s.Unresolved[i].age(now(tx))
	}
	for i := range events {
		c, err := events[i].Contradiction()
		if err != nil {
			return Survey{}, err
		}
		s.Latest = append(s.Latest, c)
	}
	return s, nil
}

const expiringQuery = `
SELECT ` + lotColumns + `
FROM lots
WHERE available > 0 AND expires_at IS NOT NULL AND expires_at <= ?
ORDER BY expires_at
LIMIT ?`

// ExpiringLots lists the lots with available credits that lapse within a time from now, the first to
// lapse first. Those that have lapsed and wait for a sweep come before them.
//
// Errors: INVALID.
func (l *Ledger) ExpiringLots(ctx context.Context, within time.Duration, limit int) ([]Lot, error) {
	if err := checkPage(limit); err != nil {
		return nil, err
	}
	return read(ctx, l, func(tx *db.Tx) ([]Lot, error) {
		list := []Lot{}
		err := tx.Select(&list, expiringQuery, now(tx)+Time(within.Microseconds()), limit)
		return list, err
	})
}
