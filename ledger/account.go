package ledger

import "jobledger/db"

// Balance is where an owner's credits are. The four buckets add up to what was granted, but for
// Scheduled: credits whose time has not come, which are in no bucket yet.
type Balance struct {
	Owner     string `json:"owner"`
	Available int64  `json:"available"`
	Held      int64  `json:"held"`
	Used      int64  `json:"used"`
	Expired   int64  `json:"expired"`
	Scheduled int64  `json:"scheduled,omitempty"`
	Lots      []Lot  `json:"lots,omitempty"`
}

// Granted is the sum of all credits that the owner ever got.
func (b Balance) Granted() int64 { return b.Available + b.Held + b.Used + b.Expired + b.Scheduled }

// Lot is credits granted or refunded together, with one priority and one expiry.
type Lot struct {
	ID          string `db:"id" json:"id"`
	Owner       string `db:"owner" json:"owner"`
	Entry       string `db:"entry_id" json:"entry"`
	Available   int64  `db:"available" json:"available"`
	Held        int64  `db:"held" json:"held"`
	Used        int64  `db:"used" json:"used"`
	Expired     int64  `db:"expired" json:"expired"`
	Amount      int64  `db:"amount" json:"amount"`
	Priority    int64  `db:"priority" json:"priority"`
	EffectiveAt *Time  `db:"effective_at" json:"effective_at"`
	ExpiresAt   *Time  `db:"expires_at" json:"expires_at"`
}

// lapsed reports whether the lot can no longer be spent. A lot is spendable in
// [effective_at, expires_at).
func (l *Lot) lapsed(at Time) bool { return l.ExpiresAt != nil && *l.ExpiresAt <= at }

// expiry is when the lot lapses; one that never does, after all others.
func (l *Lot) expiry() Time {
	if l.ExpiresAt == nil {
		return timeMax + 1
	}
	return *l.ExpiresAt
}

// account is an owner's row as one transaction sees and moves it: the stored buckets, and the part
// of available that cannot be spent now.
type account struct {
	Owner     string
	Available int64
	Held      int64
	Used      int64
	Expired   int64
	Seq       int64
	Head      Hash
	Lapsed    int64 // in lots past their expiry that no sweep has booked yet
	Scheduled int64 // in lots whose effective time has not come
}

// lockAccount reads an owner's row and keeps it, and so all of the owner's lots, from changing under
// this transaction. The balance row is the lock: every movement takes it before touching a lot.
func lockAccount(tx *db.Tx, owner string) (*account, error) {
	found, err := tx.Lock(`SELECT 1 FROM balances WHERE owner = ?`, owner)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noOwner(owner)
	}
	a := new(account)
	at := now(tx)
	found, err = tx.Row(accountQuery, []any{at, at, at, owner},
		&a.Owner, &a.Available, &a.Held, &a.Used, &a.Expired, &a.Seq, (*[]byte)(&a.Head), &a.Lapsed, &a.Scheduled)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noOwner(owner)
	}
	return a, nil
}

func noOwner(owner string) error { return fail(NotFound, "there is no owner %q", owner) }

const accountColumns = `
SELECT owner, available, held, used, expired, seq, head,
       (SELECT CAST(COALESCE(SUM(l.available), 0) AS BIGINT) FROM lots l
        WHERE l.owner = b.owner AND l.available > 0 AND l.expires_at <= ?) AS lapsed,
       (SELECT CAST(COALESCE(SUM(l.available), 0) AS BIGINT) FROM lots l
        WHERE l.owner = b.owner AND l.available > 0 AND l.effective_at > ?
          AND COALESCE(l.expires_at, 253402300800000000) > ?) AS scheduled
FROM balances b
`

const (
	accountQuery  = accountColumns + `WHERE owner = ?`
	balancesQuery = accountColumns + `WHERE owner > ? ORDER BY owner LIMIT ?`
)

// gained notes credits that became available in a lot which may not be spendable now. It reports
// whether the lot has lapsed.
func (a *account) gained(l *Lot, amount int64, at Time) (lapsed bool) {
	switch {
	case l.lapsed(at):
		a.Lapsed += amount
		return true
	case l.EffectiveAt != nil && *l.EffectiveAt > at:
		a.Scheduled += amount
	}
	return false
}

// spendable is what a job can be paid from now.
func (a *account) spendable() int64 { return a.Available - a.Lapsed - a.Scheduled }

// balance shows the account as of now: what has lapsed counts as expired, swept or not.
func (a *account) balance() Balance {
	return Balance{
		Owner:     a.Owner,
		Available: a.spendable(),
		Held:      a.Held,
		Used:      a.Used,
		Expired:   a.Expired + a.Lapsed,
		Scheduled: a.Scheduled,
	}
}
