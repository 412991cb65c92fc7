package ledger

import (
	"context"

	"jobledger/db"
)

// BalanceParams asks for one owner's balance.
type BalanceParams struct {
	Owner string
	At    When // as of; not given: now. What had lapsed by then counts as expired
	Lots  bool // with the owner's lots in spending order; not together with At
}

// Balance shows where an owner's credits are. Errors: INVALID; NOT_FOUND.
func (l *Ledger) Balance(ctx context.Context, p BalanceParams) (Balance, error) {
	if p.Lots && p.At.given {
		return Balance{}, InvalidField("lots", "are shown as they are now; leave out the time")
	}
	if err := firstError(CheckID("owner", p.Owner), p.At.checkPast("at")); err != nil {
		return Balance{}, err
	}
	return read(ctx, l, func(tx *db.Tx) (Balance, error) {
		if at := p.At.from(now(tx)); at != nil {
			return balanceAt(tx, p.Owner, *at)
		}
		b, err := balance(tx, p.Owner)
		if err == nil && p.Lots {
			b.Lots, err = lots(tx, p.Owner)
		}
		return b, err
	})
}

// Balances lists the balances of all owners, without lots, in the order of their ids: at most limit
// of those after the id after. Errors: INVALID.
func (l *Ledger) Balances(ctx context.Context, after string, limit int) ([]Balance, error) {
	if err := firstError(checkPage(limit), checkAfter(after)); err != nil {
		return nil, err
	}
	return read(ctx, l, func(tx *db.Tx) ([]Balance, error) {
		list := []Balance{}
		at := now(tx)
		err := db.Each(tx, func(a *account) (bool, error) {
			list = append(list, a.balance())
			return true, nil
		}, balancesQuery, at, at, at, after, limit)
		return list, err
	})
}

func balance(tx *db.Tx, owner string) (Balance, error) {
	var a account
	at := now(tx)
	found, err := tx.Get(&a, accountQuery, at, at, at, owner)
	if err == nil && !found {
		err = noOwner(owner)
	}
	return a.balance(), err
}

const lotColumns = `id, owner, entry_id, available, held, used, expired, amount, priority,
	effective_at, expires_at`

// spendingOrder is the order in which lots are spent, as ORDER BY terms that an index holds.
const spendingOrder = `priority, COALESCE(expires_at, 253402300800000000), id`

func lots(tx *db.Tx, owner string) ([]Lot, error) {
	list := []Lot{}
	err := tx.Select(&list, `SELECT `+lotColumns+` FROM lots WHERE owner = ? ORDER BY `+spendingOrder, owner)
	return list, err
}

// balanceAt takes the buckets from the last entry recorded by then, and finds from the postings up
// to that entry what lots had lapsed, or were not effective, with credits in them.
func balanceAt(tx *db.Tx, owner string, at Time) (Balance, error) {
	if _, err := balance(tx, owner); err != nil {
		return Balance{}, err
	}
	a := account{Owner: owner}
	found, err := tx.Get(&a, `
		SELECT owner, available_after AS available, held_after AS held, used_after AS used,
		       expired_after AS expired, seq
		FROM entries
		WHERE owner = ? AND recorded_at <= ?
		ORDER BY seq DESC
		LIMIT 1`, owner, at)
	if err != nil || !found {
		return a.balance(), err
	}
	var stuck struct{ Lapsed, Scheduled int64 }
	if _, err = tx.Get(&stuck, unspendableQuery, at, at, at, owner, a.Seq, at, at); err != nil {
		return Balance{}, err
	}
	a.Lapsed, a.Scheduled = stuck.Lapsed, stuck.Scheduled
	return a.balance(), nil
}

const unspendableQuery = `
SELECT CAST(COALESCE(SUM(CASE WHEN x.expires_at <= ? THEN x.change END), 0) AS BIGINT) AS lapsed,
       CAST(COALESCE(SUM(CASE WHEN x.effective_at > ? AND COALESCE(x.expires_at, 253402300800000000) > ?
                         THEN x.change END), 0) AS BIGINT) AS scheduled
FROM (SELECT l.expires_at, l.effective_at,
             CASE WHEN e.kind IN ('grant', 'release') THEN p.amount
                  WHEN e.kind IN ('hold', 'charge', 'expire', 'revoke') THEN -p.amount
                  WHEN e.kind = 'refund' AND l.entry_id = e.id THEN p.amount
                  ELSE 0 END AS change
      FROM entries e
      JOIN postings p ON p.entry_id = e.id
      JOIN lots l ON l.id = p.lot_id
      WHERE e.owner = ? AND e.seq <= ? AND (l.expires_at <= ? OR l.effective_at > ?)) x`
