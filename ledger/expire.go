package ledger

import (
	"fmt"
	"math"
	"slices"

	"jobledger/db"
)

// everyLot is a limit for expireDue that no owner reaches.
const everyLot = math.MaxInt32

// expireDue moves what is left in an owner's lapsed lots to expired, one entry per lot, those that
// lapsed first. It gives the number of lots, at most limit.
func expireDue(tx *db.Tx, a *account, limit int) (n int, err error) {
	return expireFor(tx, a, limit, func(*Lot) *Job { return nil })
}

// expireReturned is expireDue after a settlement returned credits to lots: of those, the lapsed ones
// expire on the job's account.
func expireReturned(tx *db.Tx, a *account, job *Job, returned []Lot) (n int, err error) {
	return expireFor(tx, a, everyLot, func(due *Lot) *Job {
		if slices.ContainsFunc(returned, func(l Lot) bool { return l.ID == due.ID }) {
			return job
		}
		return nil
	})
}

func expireFor(tx *db.Tx, a *account, limit int, account func(*Lot) *Job) (n int, err error) {
	if a.Lapsed == 0 {
		return 0, nil
	}
	var due []Lot
	err = tx.Select(&due, `
		SELECT `+lotColumns+` FROM lots
		WHERE owner = ? AND available > 0 AND expires_at <= ?
		ORDER BY expires_at, id
		LIMIT ?`, a.Owner, now(tx), limit)
	if err != nil {
		return 0, err
	}
	for i := range due {
		if err := expireLot(tx, a, &due[i], account(&due[i])); err != nil {
			return 0, err
		}
	}
	if len(due) < limit && a.Lapsed != 0 {
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
