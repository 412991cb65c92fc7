package ledger

import (
	"bytes"
	"maps"
	"slices"

	"jobledger/db"
)

// sinceChecked is what an audit since checkpoints checks: of the journal, the entries behind them.
var sinceChecked = []string{
	checkSequence, checkHashes, checkRunning, checkPostings, checkKeys, checkOrphans, checkBalances,
}

// checkedSince is what an audit since checkpoints reports: that of storage only if it met what cannot be
// read, for it did not look at everything.
func (a *auditor) checkedSince() []string {
	if len(a.found[checkStorage]) > 0 {
		return append([]string{checkStorage}, sinceChecked...)
	}
	return sinceChecked
}

func without(names, some []string) (rest []string) {
	for _, name := range names {
		if !slices.Contains(some, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

// auditSince follows each owner's chain from the checkpoint on, or from its start where there is none, and
// proves that the balances stand at the ends of the chains. It reads every balance and its last entry, and
// of the rest of the journal what is new; and it keeps the owners that have something new.
func (a *auditor) auditSince(since map[string]Checkpoint) error {
	gone := maps.Clone(since)
	var moved []Checkpoint
	const last = `COALESCE((SELECT MAX(c.seq) FROM entries c WHERE c.owner = b.owner), 0)`
	err := a.auditHeads(last, func(r *balanceRow) {
		delete(gone, r.Owner)
		c, known := since[r.Owner]
		if !known {
			c = Checkpoint{r.Owner, 0, chainStart}
		}
		switch {
		case r.Seq < c.Seq:
			a.broken(checkSequence, Violation{"owner": r.Owner},
				"seq is %d, expected at least %d, that of the checkpoint", r.Seq, c.Seq)
		case max(r.Seq, r.Entries) > c.Seq: // by the journal too: a balance may have been set back
			moved = append(moved, c)
		case !bytes.Equal(r.Head, c.Head):
			a.broken(checkHashes, Violation{"owner": r.Owner},
				"head is %x, expected %x, that of the checkpoint", []byte(r.Head), []byte(c.Head))
		}
	})
	for _, owner := range slices.Sorted(maps.Keys(gone)) {
		a.broken(checkBalances, Violation{"owner": owner}, "there is no balance, and the checkpoint has one")
	}
	for i := 0; i < len(moved) && err == nil; i++ {
		err = a.auditOwnerSince(moved[i])
	}
	return err
}

// auditOwnerSince follows one chain from a checkpoint on, if the journal still leads through it.
func (a *auditor) auditOwnerSince(from Checkpoint) error {
	c := chain{owner: from.Owner, seq: from.Seq, hash: from.Head}
	if from.Seq > 0 {
		var hash Hash
		found, err := a.tx.Row(`
			SELECT hash, available_after, held_after, used_after, expired_after
			FROM entries WHERE owner = ? AND seq = ?`, []any{from.Owner, from.Seq},
			(*[]byte)(&hash), &c.after[inAvailable], &c.after[inHeld], &c.after[inUsed], &c.after[inExpired])
		if err != nil {
			return err
		}
		if !found || !bytes.Equal(hash, from.Head) {
			a.broken(checkHashes, Violation{"owner": from.Owner}, "the hash of entry %d is %x, expected %x, that of "+
				"the checkpoint", from.Seq, []byte(hash), []byte(from.Head))
		}
	}
	return a.follow(&c, journalSinceQuery, from.Owner, from.Seq)
}

// mark tells how far each owner's journal is audited now.
func (a *auditor) mark(tell func(Checkpoint) error) error {
	return db.Each(a.tx, func(r *balanceRow) (bool, error) {
		return true, tell(Checkpoint{r.Owner, r.Seq, r.Head})
	}, `SELECT owner, seq, head FROM balances ORDER BY owner`)
}
