package ledger

import (
	"bytes"

	"jobledger/db"
)

// balanceRow is an owner's balance beside something that it must equal.
type balanceRow struct {
	Owner                          string
	Available, Held, Used, Expired int64
	Seq                            int64
	Head                           Hash
	AvailableThere                 int64 `db:"available_there"`
	HeldThere                      int64 `db:"held_there"`
	UsedThere                      int64 `db:"used_there"`
	ExpiredThere                   int64 `db:"expired_there"`
	Entries                        int64
	Hash                           Hash
}

func (r *balanceRow) here() fold { return fold{r.Available, r.Held, r.Used, r.Expired} }

func (r *balanceRow) there() fold {
	return fold{r.AvailableThere, r.HeldThere, r.UsedThere, r.ExpiredThere}
}

// auditBalances compares each balance with the owner's last entry, the sum of the owner's lots, and
// what the owner's unsettled jobs hold.
func (a *auditor) auditBalances() error {
	const counted = `(SELECT COUNT(*) FROM entries c WHERE c.owner = b.owner)`
	if err := a.auditHeads(counted, func(*balanceRow) {}); err != nil {
		return err
	}
	err := a.auditSums(checkBalanceLots, "the sum of the lots", `
		SELECT b.owner, b.available, b.held, b.used, b.expired,
		       COALESCE(l.available, 0) AS available_there, COALESCE(l.held, 0) AS held_there,
		       COALESCE(l.used, 0) AS used_there, COALESCE(l.expired, 0) AS expired_there
		FROM balances b
		LEFT JOIN lots l ON l.owner = b.owner
		ORDER BY b.owner`)
	if err != nil {
		return err
	}
	return a.auditSums(checkOwnersHeld, "the cost of the unsettled hold jobs", `
		SELECT b.owner, 0 AS available, b.held, 0 AS used, 0 AS expired,
		       0 AS available_there, COALESCE(j.cost, 0) AS held_there, 0 AS used_there, 0 AS expired_there
		FROM balances b
		LEFT JOIN jobs j ON j.owner = b.owner AND j.mode = 'hold' AND j.settled_cost IS NULL
		ORDER BY b.owner`)
}

// auditHeads compares each balance with the owner's last entry. entries is SQL for how many there are; each
// hears of every balance.
func (a *auditor) auditHeads(entries string, each func(*balanceRow)) error {
	return db.Each(a.tx, func(r *balanceRow) (bool, error) {
		if d := r.there().differences(r.here()); d != "" {
			a.broken(checkBalances, Violation{"owner": r.Owner}, "%s, by the last entry", d)
		}
		if r.Seq != r.Entries {
			a.broken(checkBalances, Violation{"owner": r.Owner}, "seq is %d, expected %d entries", r.Seq, r.Entries)
		}
		if r.Seq == 0 {
			r.Hash = chainStart
		}
		if !bytes.Equal(r.Head, r.Hash) {
			a.broken(checkBalances, Violation{"owner": r.Owner}, "head is %x, expected %x, the hash of the last entry",
				[]byte(r.Head), []byte(r.Hash))
		}
		each(r)
		return true, nil
	}, `
		SELECT b.owner, b.available, b.held, b.used, b.expired, b.seq, b.head, `+entries+` AS entries,
		       COALESCE(e.available_after, 0) AS available_there, COALESCE(e.held_after, 0) AS held_there,
		       COALESCE(e.used_after, 0) AS used_there, COALESCE(e.expired_after, 0) AS expired_there,
		       COALESCE(e.hash, b.head) AS hash
		FROM balances b
		LEFT JOIN entries e ON e.owner = b.owner AND e.seq = b.seq
		ORDER BY b.owner`)
}

// auditSums compares each balance with a sum over the rows that a query puts beside it.
func (a *auditor) auditSums(check, what, query string) error {
	var current balanceRow
	var sum fold
	finish := func() {
		if d := sum.differences(current.here()); d != "" {
			a.broken(check, Violation{"owner": current.Owner}, "%s, by %s", d, what)
		}
	}
	err := db.Each(a.tx, func(r *balanceRow) (bool, error) {
		if current.Owner != r.Owner {
			finish()
			current, sum = *r, fold{}
		}
		for bucket, n := range r.there() {
			sum.add(bucket, n)
		}
		return true, nil
	}, query)
	if err == nil {
		finish()
	}
	return err
}

// lotsMax bounds the lots that are folded in one scan of the postings, and so the memory.
const lotsMax = 1 << 16

// auditedLot is a lot and what the journal says of it.
type auditedLot struct {
	Lot
	fold      fold
	issued    int   // postings that made it; one is right
	allocated int64 // held in it by unsettled jobs
	filled    int64 // seq of the last entry that put credits into it
}

// auditLots compares each lot with its postings.
func (a *auditor) auditLots() error {
	for after := ""; ; {
		var lots []*auditedLot
		err := db.Each(a.tx, func(l *Lot) (bool, error) {
			lots = append(lots, &auditedLot{Lot: *l})
			return true, nil
		}, `SELECT `+lotColumns+` FROM lots WHERE id > ? ORDER BY id LIMIT ?`, after, lotsMax)
		if err != nil || len(lots) == 0 {
			return err
		}
		if err := a.foldPostings(lots); err != nil {
			return err
		}
		for _, l := range lots {
			if err := a.auditLot(l); err != nil {
				return err
			}
		}
		after = lots[len(lots)-1].ID
	}
}

// postingRow is a posting with what it needs of its entry.
type postingRow struct {
	Posting
	EntryID   string `db:"entry_id"`
	Kind      Kind
	Seq       int64
	Unsettled int // 1 for a hold whose job is not settled
}

// foldPostings posts to consecutive lots all that they were ever part of.
func (a *auditor) foldPostings(lots []*auditedLot) error {
	byID := make(map[string]*auditedLot, len(lots))
	for _, l := range lots {
		byID[l.ID] = l
	}
	return db.Each(a.tx, func(p *postingRow) (bool, error) {
		if l := byID[p.Lot]; l != nil {
			l.post(p)
		}
		return true, nil
	}, `
		SELECT p.lot_id, p.amount, p.entry_id, COALESCE(e.kind, '') AS kind, COALESCE(e.seq, 0) AS seq,
		       CASE WHEN e.kind = 'hold' AND j.id IS NOT NULL AND j.settled_cost IS NULL
		            THEN 1 ELSE 0 END AS unsettled
		FROM postings p
		LEFT JOIN entries e ON e.id = p.entry_id
		LEFT JOIN jobs j ON j.id = e.job_id
		WHERE p.lot_id BETWEEN ? AND ?`, lots[0].ID, lots[len(lots)-1].ID)
}

// post folds a posting. The lot that an entry makes receives its credits; other lots give them, and
// what a refund takes leaves the lot.
func (l *auditedLot) post(p *postingRow) {
	flow, ok := flows[p.Kind]
	if !ok {
		return
	}
	if l.Entry == p.EntryID {
		l.issued++
		l.fold.add(flow.to, p.Amount)
	} else {
		l.fold.add(flow.from, -p.Amount)
		if p.Kind != KindRefund {
			l.fold.add(flow.to, p.Amount)
		}
	}
	if p.Unsettled == 1 {
		l.allocated = plus(l.allocated, p.Amount)
	}
	if flow.to == inAvailable && (l.Entry == p.EntryID || p.Kind == KindRelease) {
		l.filled = max(l.filled, p.Seq)
	}
}

func (a *auditor) auditLot(l *auditedLot) error {
	row := func() Violation { return Violation{"owner": l.Owner, "lot": l.ID} }
	found := fold{l.Available, l.Held, l.Used, l.Expired}
	if d := l.fold.differences(found); d != "" {
		a.broken(checkLots, row(), "%s, by the postings", d)
	}
	var sum int64
	for _, n := range found {
		sum = plus(sum, n)
	}
	if sum != l.Amount {
		a.broken(checkLots, row(), "amount is %d, expected %s, the sum of the buckets", l.Amount, number(sum))
	}
	if l.issued != 1 {
		a.broken(checkLots, row(), "entry %s has %d postings that make the lot, expected 1", l.Entry, l.issued)
	}
	if l.Held != l.allocated {
		a.broken(checkAllocations, row(), "held is %d, expected %s, what unsettled jobs hold of it",
			l.Held, number(l.allocated))
	}
	return a.auditOverdue(l)
}

// auditOverdue finds credits in a lot that a sweep had to expire. A sweep takes an owner's lots in the
// order of their expiry: once it expired a later one, this one had to be gone. Credits that came into
// the lot after it are no fault, nor is a lot that no sweep has seen since it lapsed: spending passes
// it by.
func (a *auditor) auditOverdue(l *auditedLot) error {
	if l.Available <= 0 || l.ExpiresAt == nil || *l.ExpiresAt > now(a.tx) {
		return nil
	}
	var swept Time
	found, err := a.tx.Get(&swept, `
		SELECT e.recorded_at
		FROM entries e
		JOIN postings p ON p.entry_id = e.id
		JOIN lots x ON x.id = p.lot_id
		WHERE e.owner = ? AND e.seq > ? AND e.kind = 'expire' AND x.expires_at > ?
		ORDER BY e.seq
		LIMIT 1`, l.Owner, l.filled, *l.ExpiresAt)
	if err == nil && found {
		a.broken(checkOverdue, Violation{"owner": l.Owner, "lot": l.ID},
			"available is %d, expected 0: it lapsed at %s and a sweep ran at %s", l.Available, *l.ExpiresAt, swept)
	}
	return err
}
