package ledger

import (
	"context"

	"jobledger/db"
)

// RevokeParams asks for unspent credits back.
type RevokeParams struct {
	Owner  string
	Amount int64  // 1 to AmountMax, and never more than the owner has available
	Key    string // names this revocation for ever
	Reason string // required: it stands in the journal
	Lot    string // empty: any lots, in spending order
}

// RevokeResult is the journal line of a revocation and what the owner has now.
type RevokeResult struct {
	Entry    Entry   `json:"entry"`
	Balance  Balance `json:"balance"`
	Replayed bool    `json:"replayed"`
}

// Revoke takes unspent credits out of an owner's lots, as expired. Held and used credits stay.
//
// Errors: INVALID; NOT_FOUND for an unknown owner, or a lot that is not the owner's;
// IDEMPOTENCY_MISMATCH; INSUFFICIENT_CREDITS.
func (l *Ledger) Revoke(ctx context.Context, p RevokeParams) (RevokeResult, error) {
	if err := p.check(); err != nil {
		return RevokeResult{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (RevokeResult, error) { return revoke(tx, p) })
}

func (p *RevokeParams) check() error {
	if p.Reason == "" {
		return InvalidField("reason", "is empty; a revocation needs one")
	}
	if p.Lot != "" {
		if err := CheckID("lot", p.Lot); err != nil {
			return err
		}
	}
	return firstError(
		CheckID("owner", p.Owner),
		checkAmount("amount", p.Amount),
		CheckID("key", p.Key),
		checkText("reason", p.Reason),
	)
}

func revoke(tx *db.Tx, p RevokeParams) (RevokeResult, error) {
	key := "revoke:" + p.Key
	first, err := findEntry(tx, key)
	if err != nil {
		return RevokeResult{}, err
	}
	if first != nil {
		return replayRevoke(tx, p, first)
	}
	a, err := lockAccount(tx, p.Owner)
	if err != nil {
		return RevokeResult{}, err
	}
	if _, err := expireDue(tx, a, everyLot); err != nil {
		return RevokeResult{}, err
	}
	from, err := revocable(tx, a, p)
	if err != nil {
		made, again := findEntry(tx, key)
		return RevokeResult{}, overtaken(err, made != nil, again)
	}
	e, err := move(tx, a, movement{
		kind: KindRevoke, key: key, from: from, reason: p.Reason, metadata: p.metadata(),
	})
	if err != nil {
		return RevokeResult{}, err
	}
	b, err := balance(tx, p.Owner)
	return RevokeResult{Entry: *e, Balance: b}, err
}

// metadata keeps the lot that was asked for with the entry, so that a repetition can be compared.
func (p *RevokeParams) metadata() JSON {
	if p.Lot == "" {
		return "{}"
	}
	return mustJSON(struct {
		Lot string `json:"lot"`
	}{p.Lot})
}

// revocable picks the postings of a revocation.
func revocable(tx *db.Tx, a *account, p RevokeParams) ([]Posting, error) {
	if p.Lot == "" {
		return allocate(tx, a, p.Amount)
	}
	var available int64
	found, err := tx.Get(&available, `SELECT available FROM lots WHERE id = ? AND owner = ?`, p.Lot, p.Owner)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fail(NotFound, "%s has no lot %q", p.Owner, p.Lot)
	}
	if available < p.Amount {
		return nil, insufficient("lot "+p.Lot, available, p.Amount)
	}
	return []Posting{{p.Lot, p.Amount}}, nil
}

func replayRevoke(tx *db.Tx, p RevokeParams, first *Entry) (RevokeResult, error) {
	fields := differing(
		field{"owner", p.Owner == first.Owner},
		field{"amount", p.Amount == first.Amount},
		field{"reason", p.Reason == first.Reason},
		field{"lot", p.metadata() == first.Metadata},
	)
	if fields != nil {
		return RevokeResult{}, mismatch("revocation "+p.Key, fields)
	}
	list := []Entry{*first}
	if err := addPostings(tx, list); err != nil {
		return RevokeResult{}, err
	}
	b, err := balance(tx, p.Owner)
	return RevokeResult{Entry: list[0], Balance: b, Replayed: true}, err
}
