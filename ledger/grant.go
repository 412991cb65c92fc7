package ledger

import (
	"context"

	"jobledger/db"
)

// GrantParams asks for credits.
type GrantParams struct {
	Owner     string
	Amount    int64  // 1 to AmountMax
	Key       string // names this grant for ever: the same key never grants twice
	Priority  int64  // lower is spent first; 0 to AmountMax
	Effective When   // spendable from; not given: at once
	Expires   When   // spendable before; not given: for ever
	Reason    string
	Metadata  JSON
}

// GrantResult is a granted lot and what its owner has now.
type GrantResult struct {
	Lot      Lot     `json:"lot"`
	Balance  Balance `json:"balance"`
	Replayed bool    `json:"replayed"`
}

// Grant gives an owner credits as one new lot. An owner comes into being with its first grant.
//
// Errors: INVALID; IDEMPOTENCY_MISMATCH if the key granted something else before.
func (l *Ledger) Grant(ctx context.Context, p GrantParams) (GrantResult, error) {
	if err := p.check(); err != nil {
		return GrantResult{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (GrantResult, error) { return grant(tx, p) })
}

func (p *GrantParams) check() (err error) {
	if p.Metadata, err = checkMetadata(p.Metadata); err != nil {
		return err
	}
	if p.Priority < 0 || p.Priority > AmountMax {
		return InvalidField("priority", "%d is out of range; it takes 0 to %d", p.Priority, AmountMax)
	}
	return firstError(
		CheckID("owner", p.Owner),
		checkAmount("amount", p.Amount),
		CheckID("key", p.Key),
		p.Effective.check("effective"),
		p.Expires.check("expires"),
		checkText("reason", p.Reason),
	)
}

func grant(tx *db.Tx, p GrantParams) (GrantResult, error) {
	key := "grant:" + p.Key
	first, err := findEntry(tx, key)
	if err != nil {
		return GrantResult{}, err
	}
	if first != nil {
		return replayGrant(tx, p, first)
	}
	lot := Lot{
		Amount:      p.Amount,
		Priority:    p.Priority,
		EffectiveAt: p.Effective.from(now(tx)),
		ExpiresAt:   p.Expires.from(now(tx)),
	}
	if err := checkTerms(&lot, now(tx)); err != nil {
		return GrantResult{}, err
	}
	if err := insertOwner(tx, p.Owner); err != nil {
		return GrantResult{}, err
	}
	a, err := lockAccount(tx, p.Owner)
	if err != nil {
		return GrantResult{}, err
	}
	if a.balance().Granted()+p.Amount > AmountMax {
		return GrantResult{}, InvalidField("amount", "%q would have been granted more than %d credits",
			p.Owner, AmountMax)
	}
	m := movement{kind: KindGrant, key: key, into: []Lot{lot}, reason: p.Reason, metadata: p.Metadata}
	if _, err := move(tx, a, m); err != nil {
		return GrantResult{}, err
	}
	a.gained(&lot, lot.Amount, now(tx))
	return GrantResult{Lot: m.into[0], Balance: a.balance()}, nil
}

// checkTerms refuses a lot that nobody could ever spend.
func checkTerms(lot *Lot, at Time) error {
	if lot.lapsed(at) {
		return InvalidField("expires", "%s has passed", lot.ExpiresAt)
	}
	if lot.EffectiveAt != nil && lot.lapsed(*lot.EffectiveAt) {
		return InvalidField("effective", "%s is not before the expiry, %s", lot.EffectiveAt, lot.ExpiresAt)
	}
	return nil
}

func insertOwner(tx *db.Tx, owner string) error {
	_, err := tx.Exec(`
		INSERT INTO balances (owner, available, held, used, expired, seq, head)
		VALUES (?, 0, 0, 0, 0, 0, ?)
		ON CONFLICT (owner) DO NOTHING`, owner, []byte(chainStart))
	return err
}

// replayGrant answers a grant whose key is known: with the lot as it is now, or with what differs.
func replayGrant(tx *db.Tx, p GrantParams, first *Entry) (GrantResult, error) {
	r := GrantResult{Replayed: true}
	a, err := lockAccount(tx, first.Owner) // the lot and the balance are of one moment
	if err != nil {
		return GrantResult{}, err
	}
	found, err := tx.Get(&r.Lot, `
		SELECT `+lotColumns+`
		FROM lots
		WHERE entry_id = ? AND owner = ?
		ORDER BY id
		LIMIT 1`, first.ID, first.Owner)
	if err != nil {
		return GrantResult{}, err
	}
	if !found {
		return GrantResult{}, fail(Inconsistent, "%s has no lot", first.EventKey)
	}
	if fields := p.differences(first, &r.Lot); fields != nil {
		return GrantResult{}, mismatch("grant "+p.Key, fields)
	}
	r.Balance = a.balance()
	return r, nil
}

// differences names the fields in which a grant is not the one that was recorded.
func (p *GrantParams) differences(e *Entry, lot *Lot) []string {
	return differing(
		field{"owner", p.Owner == e.Owner},
		field{"amount", p.Amount == e.Amount},
		field{"priority", p.Priority == lot.Priority},
		field{"effective", equal(p.Effective.from(e.RecordedAt), lot.EffectiveAt)},
		field{"expires", equal(p.Expires.from(e.RecordedAt), lot.ExpiresAt)},
		field{"reason", p.Reason == e.Reason},
		field{"metadata", p.Metadata == e.Metadata},
	)
}
