package ledger

import (
	"fmt"
	"slices"
	"strings"

	"jobledger/db"
)

// buckets is a change of, or a sum over, the four buckets.
type buckets struct{ available, held, used, expired int64 }

// moves says what one credit of each kind of entry does to its owner's buckets.
var moves = map[Kind]buckets{
	KindGrant:   {available: +1},
	KindHold:    {available: -1, held: +1},
	KindConsume: {held: -1, used: +1},
	KindRelease: {held: -1, available: +1},
	KindCharge:  {available: -1, used: +1},
	KindRefund:  {used: -1, available: +1},
	KindExpire:  {available: -1, expired: +1},
	KindRevoke:  {available: -1, expired: +1},
}

func (b buckets) times(n int64) buckets {
	return buckets{b.available * n, b.held * n, b.used * n, b.expired * n}
}

// Posting is the part of an entry that touches one lot.
type Posting struct {
	Lot    string `db:"lot_id" json:"lot"`
	Amount int64  `db:"amount" json:"amount"`
}

// movement asks for one entry.
type movement struct {
	kind     Kind
	key      string
	job      *Job // nil if no job is concerned
	from     []Posting
	into     []Lot // new lots, for grant and refund; move gives them their ids
	reason   string
	metadata JSON
}

// amount is the credits that the movement moves.
func (m *movement) amount() int64 {
	var taken, issued int64
	for _, p := range m.from {
		taken += p.Amount
	}
	for _, l := range m.into {
		issued += l.Amount
	}
	if m.kind == KindRefund && taken != issued {
		panic(fmt.Sprintf("ledger: %s takes %d and issues %d", m.key, taken, issued))
	}
	return max(taken, issued)
}

// move is the only function that moves money. It writes the entry, its postings, the lots and the
// balance, and refuses with INCONSISTENT, which rolls all of it back, if they do not agree.
//
// It panics if a refund does not issue what it takes: that is a mistake of its caller.
//
// A lot that an entry issues receives credits; every other lot of its postings gives them. So a
// refund takes used credits out of the lots that paid, and puts them into new ones as available.
func move(tx *db.Tx, a *account, m movement) (*Entry, error) {
	change := moves[m.kind].times(m.amount())
	e := a.entry(tx, &m, change)
	for i := range m.into {
		m.into[i].ID, m.into[i].Owner, m.into[i].Entry = newID(), a.Owner, e.ID
		e.Postings = append(e.Postings, Posting{m.into[i].ID, m.into[i].Amount})
	}
	e.Postings = append(e.Postings, m.from...)
	slices.SortFunc(e.Postings, func(p, q Posting) int { return strings.Compare(p.Lot, q.Lot) })
	e.Hash = digest(a.Head, e, m.into, m.job)
	if after := (buckets{e.AvailableAfter, e.HeldAfter, e.UsedAfter, e.ExpiredAfter}); after.broken() {
		return nil, fail(Inconsistent, "%s would bring the balance of %q out of range: %+v", m.key, a.Owner, after)
	}
	// From here on it must succeed.
	if err := insertEntry(tx, e); err != nil {
		return nil, err
	}
	if err := touchLots(tx, e, &m); err != nil {
		return nil, err
	}
	return e, a.apply(tx, e, change)
}

// broken reports whether a bucket is negative or larger than an amount can be.
func (b buckets) broken() bool {
	return min(b.available, b.held, b.used, b.expired) < 0 ||
		max(b.available, b.held, b.used, b.expired) > AmountMax
}

// entry is the journal line of a movement, but for its postings and hash.
func (a *account) entry(tx *db.Tx, m *movement, change buckets) *Entry {
	e := &Entry{
		ID:             newID(),
		EventKey:       m.key,
		Owner:          a.Owner,
		Seq:            a.Seq + 1,
		Kind:           m.kind,
		Amount:         m.amount(),
		AvailableAfter: a.Available + change.available,
		HeldAfter:      a.Held + change.held,
		UsedAfter:      a.Used + change.used,
		ExpiredAfter:   a.Expired + change.expired,
		Reason:         m.reason,
		Metadata:       m.metadata,
		OccurredAt:     now(tx),
		RecordedAt:     now(tx),
	}
	if e.Metadata == "" {
		e.Metadata = "{}"
	}
	if m.job != nil {
		e.Job = &m.job.ID
	}
	return e
}

// insertEntry writes the journal line. Its key is unique for ever: a key that is there already,
// when the caller found the way clear, means that another transaction was quicker, or that the ledger
// contradicts itself.
func insertEntry(tx *db.Tx, e *Entry) error {
	rows, err := tx.Exec(`
		INSERT INTO entries (id, event_key, owner, seq, kind, amount, job_id, available_after, held_after,
		                     used_after, expired_after, reason, metadata, occurred_at, recorded_at, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (event_key) DO NOTHING`,
		e.ID, e.EventKey, e.Owner, e.Seq, e.Kind, e.Amount, e.Job, e.AvailableAfter, e.HeldAfter,
		e.UsedAfter, e.ExpiredAfter, e.Reason, e.Metadata, e.OccurredAt, e.RecordedAt, []byte(e.Hash))
	if err == nil && rows != 1 {
		err = db.Changed(fail(Inconsistent, "the journal has %q already", e.EventKey))
	}
	return err
}

// touchLots issues the new lots of an entry, takes from the old ones, and writes the postings.
func touchLots(tx *db.Tx, e *Entry, m *movement) error {
	for i := range m.into {
		if err := insertLot(tx, &m.into[i]); err != nil {
			return err
		}
	}
	for _, p := range m.from {
		change := moves[e.Kind].times(p.Amount)
		if e.Kind == KindRefund {
			change.available = 0 // these credits become available in a new lot
		}
		if err := updateLot(tx, e, p.Lot, change); err != nil {
			return err
		}
	}
	for _, p := range e.Postings {
		const insert = `INSERT INTO postings (entry_id, lot_id, amount) VALUES (?, ?, ?)`
		if _, err := tx.Exec(insert, e.ID, p.Lot, p.Amount); err != nil {
			return err
		}
	}
	return nil
}

func insertLot(tx *db.Tx, l *Lot) error {
	l.Available = l.Amount
	_, err := tx.Exec(`
		INSERT INTO lots (id, owner, entry_id, available, held, used, expired, amount, priority,
		                  effective_at, expires_at)
		VALUES (?, ?, ?, ?, 0, 0, 0, ?, ?, ?, ?)`,
		l.ID, l.Owner, l.Entry, l.Available, l.Amount, l.Priority, l.EffectiveAt, l.ExpiresAt)
	return err
}

// updateLot changes one lot of the entry's owner, if its buckets allow it.
func updateLot(tx *db.Tx, e *Entry, lot string, c buckets) error {
	rows, err := tx.Exec(`
		UPDATE lots
		SET available = available + ?, held = held + ?, used = used + ?, expired = expired + ?, amount = amount + ?
		WHERE id = ? AND owner = ? AND available + ? >= 0 AND held + ? >= 0 AND used + ? >= 0`,
		c.available, c.held, c.used, c.expired, c.available+c.held+c.used+c.expired,
		lot, e.Owner, c.available, c.held, c.used)
	if err == nil && rows != 1 {
		err = fail(Inconsistent, "%s: lot %s of %q has not what the entry takes from it", e.EventKey, lot, e.Owner)
	}
	return err
}

// apply moves the balance, which must stand where the entry began, and the account with it.
func (a *account) apply(tx *db.Tx, e *Entry, change buckets) error {
	rows, err := tx.Exec(`
		UPDATE balances
		SET available = available + ?, held = held + ?, used = used + ?, expired = expired + ?,
		    seq = seq + 1, head = ?
		WHERE owner = ? AND seq = ? AND available + ? >= 0 AND held + ? >= 0 AND used + ? >= 0`,
		change.available, change.held, change.used, change.expired, []byte(e.Hash),
		a.Owner, a.Seq, change.available, change.held, change.used)
	if err == nil && rows != 1 {
		err = fail(Inconsistent, "%s: the balance of %q is not where the journal says", e.EventKey, a.Owner)
	}
	if err != nil {
		return err
	}
	a.Seq, a.Head = e.Seq, e.Hash
	a.Available, a.Held, a.Used, a.Expired = e.AvailableAfter, e.HeldAfter, e.UsedAfter, e.ExpiredAfter
	return nil
}
