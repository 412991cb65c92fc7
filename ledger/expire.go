package ledger

import (
	"fmt"

	"jobledger/db"
)

// expireDue moves what is left in an owner's lapsed lots to expired, one entry per lot. job is the
// job whose settlement put credits into a lapsed lot, or nil. It gives the number of lots.
func expireDue(tx *db.Tx, a *account, job *Job) (n int, err error) {
	if a.Lapsed == 0 {
		return 0, nil
	}
	var due []Lot
	err = tx.Select(&due, `
		SELECT `+lotColumns+` FROM lots
		WHERE owner = ? AND available > 0 AND expires_at <= ?
		ORDER BY expires_at, id`, a.Owner, now(tx))
	if err != nil {
		return 0, err
	}
	for i := range due {
		if err := expireLot(tx, a, &due[i], job); err != nil {
			return 0, err
		}
	}
	if a.Lapsed != 0 {
		return 0, fail(Inconsistent, "the lapsed lots of %q differ from their sum by %d", a.Owner, a.Lapsed)
	}
	return len(due), nil
}

// expireLot writes one expire entry. A lot can lapse again, when a job that held its credits
// releases them; n tells its entries apart.
func expireLot(tx *db.Tx, a *account, lot *Lot, job *Job) error {
	prefix := "lot-expire:" + lot.ID + ":"
	var n int64
	// ';' is the character after ':': the range is all keys with the prefix.
	_, err := tx.Get(&n, `SELECT COUNT(*) FROM entries WHERE event_key > ? AND event_key < ?`,
		prefix, "lot-expire:"+lot.ID+";")
	if err != nil {
		return err
	}
	_, err = move(tx, a, movement{
		kind: KindExpire,
		key:  fmt.Sprintf("%s%d", prefix, n+1),
		job:  job,
		from: []Posting{{lot.ID, lot.Available}},
	})
	a.Lapsed -= lot.Available
	return err
}
