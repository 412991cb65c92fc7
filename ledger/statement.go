package ledger

import (
	"context"

	"jobledger/db"
)

// StatementParams asks for an owner's statement.
type StatementParams struct {
	Owner  string
	Before int64 // only entries with a lower seq; 0: up to the last
	Limit  int   // of entries, 1 to PageMax
	Points int   // of the history, 1 to PageMax
}

// Statement is an owner's account at one moment: what there is, and how it came to it.
type Statement struct {
	Balance Balance
	Seq     int64         // how many entries the owner has
	Entries []Entry       // the last ones, the latest first
	History []BalanceStep // from the first entry to the last; the points are even in number, not in time
}

// BalanceStep is what an owner's buckets held after an entry.
type BalanceStep struct {
	Seq       int64 `db:"seq"`
	At        Time  `db:"recorded_at"`
	Available int64 `db:"available_after"`
	Held      int64 `db:"held_after"`
	Used      int64 `db:"used_after"`
	Expired   int64 `db:"expired_after"`
}

// Statement tells how an owner's credits became what they are: the last entries, and the balance over all
// of the owner's time. Of a long journal the history has every n-th entry, and always the last: it costs
// the same however long the journal is.
//
// Errors: INVALID; NOT_FOUND.
func (l *Ledger) Statement(ctx context.Context, p StatementParams) (Statement, error) {
	if err := firstError(CheckID("owner", p.Owner), checkPage(p.Limit)); err != nil {
		return Statement{}, err
	}
	if p.Points < 1 || p.Points > PageMax {
		return Statement{}, InvalidField("points", "%d is out of range; it takes 1 to %d", p.Points, PageMax)
	}
	if p.Before < 0 || p.Before > AmountMax {
		return Statement{}, InvalidField("before", "%d is out of range; it takes 0 to %d", p.Before, AmountMax)
	}
	return read(ctx, l, func(tx *db.Tx) (Statement, error) { return statement(tx, p) })
}

const (
	lastEntriesQuery = `
SELECT ` + entryColumns + `
FROM entries
WHERE owner = ? AND seq < ?
ORDER BY seq DESC
LIMIT ?`

	// The entries are numbered without gaps: each one that is wanted is found by its number. SQLite takes the
	// tables of a CROSS JOIN in the order in which they stand.
	historyQuery = `
WITH RECURSIVE wanted(n) AS (
  SELECT CAST(? AS BIGINT)
  UNION ALL
  SELECT n - CAST(? AS BIGINT) FROM wanted WHERE n > CAST(? AS BIGINT)
)
SELECT e.seq, e.recorded_at, e.available_after, e.held_after, e.used_after, e.expired_after
FROM wanted w CROSS JOIN entries e
WHERE e.owner = ? AND e.seq = w.n
ORDER BY e.seq`
)

func statement(tx *db.Tx, p StatementParams) (s Statement, err error) {
	if s.Balance, err = balance(tx, p.Owner); err != nil {
		return s, err
	}
	if _, err = tx.Get(&s.Seq, `SELECT seq FROM balances WHERE owner = ?`, p.Owner); err != nil {
		return s, err
	}
	if p.Before == 0 {
		p.Before = s.Seq + 1
	}
	s.Entries, s.History = []Entry{}, []BalanceStep{}
	stride := max(1, (s.Seq+int64(p.Points)-1)/int64(p.Points))
	if err := firstError(
		tx.Select(&s.Entries, lastEntriesQuery, p.Owner, p.Before, p.Limit),
		tx.Select(&s.History, historyQuery, s.Seq, stride, stride, p.Owner),
	); err != nil {
		return s, err
	}
	return s, addPostings(tx, s.Entries)
}
