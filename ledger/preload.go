package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"jobledger/db"
)

// PreloadMax is the most jobs that one Preload writes.
const PreloadMax = 100_000

// PreloadParams asks for an owner with a past.
type PreloadParams struct {
	Owner string // a new one; its jobs are Owner-000001, Owner-000002, ...
	Jobs  int    // 0 to PreloadMax; every other one completed, the others failed
	Cost  int64  // of each job, 1 to AmountMax
	Mode  Mode   // of each job
	Spare int64  // credits that are available in the end; 0 to AmountMax
}

// Preload writes a new owner whose jobs have all ended, with their credits, journal, events and reports:
// the rows that Grant, CreateJob and Settle would have written one after the other, computed at once and
// written by the statements of a restore. It makes ledgers of a size to be measured; an audit finds no
// difference. An owner that is there already, whatever it has, is left alone and replayed is true.
//
// Errors: INVALID; IDEMPOTENCY_MISMATCH if one of the jobs is there without the owner.
func (l *Ledger) Preload(ctx context.Context, p PreloadParams) (replayed bool, err error) {
	if err := p.check(); err != nil {
		return false, err
	}
	return write(ctx, l, func(tx *db.Tx) (bool, error) { return preload(tx, p) })
}

func (p *PreloadParams) check() error {
	if p.Jobs < 0 || p.Jobs > PreloadMax {
		return InvalidField("jobs", "%d is out of range; it takes 0 to %d", p.Jobs, PreloadMax)
	}
	if err := firstError(
		CheckID("owner", p.Owner), CheckID("owner", p.job(p.Jobs)), checkAmount("cost", p.Cost),
		checkOneOf("mode", p.Mode, ModeHold, ModeCharge),
	); err != nil {
		return err
	}
	if p.Spare < 0 || p.Spare > AmountMax || p.Cost > (AmountMax-p.Spare)/int64(max(p.Jobs, 1)) {
		return InvalidField("spare", "%d and what the jobs cost are out of range; together it takes 0 to %d",
			p.Spare, AmountMax)
	}
	if p.granted() == 0 {
		return InvalidField("spare", "an owner comes into being with a grant: it takes 1 without jobs")
	}
	return nil
}

func (p *PreloadParams) job(n int) string { return fmt.Sprintf("%s-%06d", p.Owner, n) }
func (p *PreloadParams) granted() int64   { return p.Cost*int64(p.Jobs) + p.Spare }

// past is an owner's rows as they come to be.
type past struct {
	account
	tx      *db.Tx
	jobs    []*Job
	entries []*exportEntry
	lots    []*Lot // as they are now; the first is the one that pays
	madeBy  map[*Lot]*exportEntry
	reports []Report
	events  []*Event
}

func preload(tx *db.Tx, p PreloadParams) (replayed bool, err error) {
	there, err := tx.Get(new(int), `SELECT 1 FROM balances WHERE owner = ?`, p.Owner)
	if err != nil || there {
		return there, err
	}
	h := &past{account: account{Owner: p.Owner, Head: chainStart}, tx: tx, madeBy: make(map[*Lot]*exportEntry)}
	h.enter(movement{kind: KindGrant, key: "grant:" + p.Owner, into: []Lot{{Amount: p.granted()}}})
	for n := range p.Jobs {
		h.live(&p, n+1)
	}
	// From here on it must succeed.
	return false, h.write()
}

// live creates job n and settles it.
func (h *past) live(p *PreloadParams, n int) {
	params := JobParams{ID: p.job(n), Owner: p.Owner, Cost: p.Cost, Mode: p.Mode, Metadata: "{}"}
	j := params.job(now(h.tx))
	cost, source, attempt, at := int64(0), Callback, int64(0), now(h.tx)
	r := Report{Job: j.ID, Outcome: Failed, Source: source}
	if n%2 == 1 {
		r.Outcome, cost = Completed, j.Cost
	}
	j.Status, j.SettledCost, j.SettledSource = Status(r.Outcome), &cost, &source
	j.SettledAttempt, j.SettledAt = &attempt, &at
	pays := []Posting{{h.lots[0].ID, j.Cost}}
	for _, kind := range kindsOf(j.Mode, r.Outcome) {
		m := movement{kind: kind, key: jobKey(kind, j.ID), job: &j, from: pays}
		if kind == KindRefund {
			m.into = []Lot{{Amount: j.Cost}}
		}
		h.enter(m)
	}
	h.jobs = append(h.jobs, &j)
	h.reports = append(h.reports, r)
	h.events = append(h.events, settledEvent(&Settlement{Job: j, Consumed: cost, Returned: j.Cost - cost}))
}

// kindsOf are the entries of a job of this mode that ended so.
func kindsOf(mode Mode, o Outcome) []Kind {
	switch {
	case mode == ModeHold && o == Completed:
		return []Kind{KindHold, KindConsume}
	case mode == ModeHold:
		return []Kind{KindHold, KindRelease}
	case o == Completed:
		return []Kind{KindCharge}
	}
	return []Kind{KindCharge, KindRefund}
}

// enter adds a movement's entry to the journal. All that is taken is taken from the first lot.
func (h *past) enter(m movement) {
	change := moves[m.kind].times(m.amount())
	e := &exportEntry{Entry: *h.entry(h.tx, &m, change)}
	if len(m.from) > 0 {
		pays := h.lots[0]
		pays.Available += change.available
		pays.Held += change.held
		pays.Used += change.used
		if m.kind == KindRefund { // these credits leave the lot
			pays.Available -= change.available
			pays.Amount -= change.available
		}
	}
	e.Postings = append(e.Postings, m.from...)
	for i := range m.into {
		m.into[i].ID, m.into[i].Owner, m.into[i].Entry = newID(), h.Owner, e.ID
		m.into[i].Available = m.into[i].Amount
		e.Postings = append(e.Postings, Posting{m.into[i].ID, m.into[i].Amount})
		h.lots = append(h.lots, &m.into[i])
		h.madeBy[&m.into[i]] = e
	}
	slices.SortFunc(e.Postings, func(p, q Posting) int { return strings.Compare(p.Lot, q.Lot) })
	e.Hash = digest(h.Head, &e.Entry, m.into, m.job)
	h.Seq, h.Head = e.Seq, e.Hash
	h.Available, h.Held, h.Used = e.AvailableAfter, e.HeldAfter, e.UsedAfter
	h.entries = append(h.entries, e)
}

// write inserts all rows, each after those that it refers to.
func (h *past) write() error {
	for lot, e := range h.madeBy {
		e.Lots = append(e.Lots, *lot)
	}
	err := inserted(insertBalance(h.tx, &exportBalance{
		Owner: h.Owner, Available: h.Available, Held: h.Held, Used: h.Used, Seq: h.Seq, Head: h.Head,
	}))
	for i := 0; i < len(h.jobs) && err == nil; i++ {
		err = inserted(restoreJob(h.tx, &exportJob{Job: *h.jobs[i]}))
	}
	for i := 0; i < len(h.entries) && err == nil; i++ {
		err = inserted(restoreEntry(h.tx, h.entries[i]))
	}
	for i := 0; i < len(h.jobs) && err == nil; i++ {
		err = firstError(insertWon(h.tx, &h.reports[i]), insertEvent(h.tx, h.events[i]))
	}
	return err
}

// inserted refuses a row that was there already.
func inserted(rows int64, err error) error {
	if err == nil && rows != 1 {
		err = fail(IdempotencyMismatch, "a row of this past is there already, without its owner")
	}
	return err
}
