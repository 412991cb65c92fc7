package ledger

import (
	"context"
	"math"

	"jobledger/db"
)

// Backlog counts what waits for somebody.
type Backlog struct {
	Pending       int64 `db:"pending" json:"pending"`               // deliveries to enabled endpoints
	Dead          int64 `db:"dead" json:"dead"`                     // deliveries that were given up
	OldestPending *Time `db:"oldest_pending" json:"oldest_pending"` // the event of the oldest one; nil: none
	Polls         int64 `db:"polls" json:"polls"`                   // open jobs whose provider is asked
	Open          int64 `db:"open" json:"open"`                     // open jobs
	Reconcile     int64 `db:"reconcile" json:"reconcile"`           // jobs that UnresolvedJobs lists
}

const backlogQuery = `
SELECT (SELECT COUNT(*) FROM deliveries d JOIN endpoints p ON p.id = d.endpoint_id
        WHERE d.status = 'pending' AND p.disabled_at IS NULL) AS pending,
       (SELECT MIN(d.created_at) FROM deliveries d JOIN endpoints p ON p.id = d.endpoint_id
        WHERE d.status = 'pending' AND p.disabled_at IS NULL) AS oldest_pending,
       (SELECT COUNT(*) FROM deliveries WHERE status = 'dead') AS dead,
       (SELECT COUNT(*) FROM polls) AS polls,
       (SELECT COUNT(*) FROM jobs WHERE status IN ('pending', 'processing')) AS open,
       (SELECT COUNT(*) FROM (` + unresolvedQuery + `) u) AS reconcile`

// Backlog counts what waits. Errors: BUSY if ctx ends.
func (l *Ledger) Backlog(ctx context.Context) (Backlog, error) {
	return read(ctx, l, countBacklog)
}

func countBacklog(tx *db.Tx) (b Backlog, err error) {
	_, err = tx.Get(&b, backlogQuery, "", now(tx), math.MaxInt32)
	return b, err
}
