package ledger

import (
	"cmp"
	"context"
	"slices"

	"jobledger/db"
)

// Report is what an observer says of a job.
type Report struct {
	Job        string
	Outcome    Outcome
	Source     Source
	Attempt    int64  // which attempt it is about; 0: it names none
	UpstreamID string // the provider's id for the attempt; empty: it names none
	Cost       *int64 // the actual cost of a completed job, 0 to the job's cost; nil: the job's cost
	Reason     string
}

// Settlement answers a report: how the job stands now, and whether this report brought it there.
type Settlement struct {
	Won      bool    `json:"won"`
	Job      Job     `json:"job"`
	Reported Outcome `json:"reported"`
	Verdict  Verdict `json:"verdict"`
	Returned int64   `json:"returned"` // credits that the settlement gave back to the owner
	Consumed int64   `json:"consumed"` // credits that the job cost in the end
	Balance  Balance `json:"balance"`
	expired  int     // lots that expired with it
}

// Settle applies a report. The first valid report wins the job's one terminal transition, and the
// credits, the journal, the event and the report are written with it. Every later one is told who
// won, is kept as evidence, and moves nothing; that is no error.
//
// Errors: INVALID, also for a cost above the job's; NOT_FOUND; STALE_ATTEMPT for a report that is
// not about the current attempt, or names another upstream id than the one on file, or names no
// attempt of a job that had several (it is kept as evidence all the same); INCONSISTENT.
func (l *Ledger) Settle(ctx context.Context, r Report) (Settlement, error) {
	if err := r.check(); err != nil {
		return Settlement{}, err
	}
	return l.settleBy(ctx, byReport, r)
}

// Cancel ends a job at its owner's or an operator's wish and returns its credits.
//
// Errors: INVALID; NOT_FOUND; SUBMISSION_RECONCILIATION_REQUIRED while nobody knows whether a
// provider took the job.
func (l *Ledger) Cancel(ctx context.Context, job, reason string) (Settlement, error) {
	r := Report{Job: job, Outcome: Canceled, Source: Operator, Reason: reason}
	if err := r.check(); err != nil {
		return Settlement{}, err
	}
	return l.settleBy(ctx, byCancel, r)
}

// settleBy runs settle. A refused report is evidence: its row is committed with its refusal.
func (l *Ledger) settleBy(ctx context.Context, c *claim, r Report) (Settlement, error) {
	var refusal error
	s, err := write(ctx, l, func(tx *db.Tx) (s Settlement, err error) {
		s, refusal, err = settle(tx, c, r)
		return s, err
	})
	if err != nil {
		return Settlement{}, err
	}
	return s, refusal
}

func (r *Report) check() error {
	if r.Attempt < 0 || r.Attempt > AmountMax {
		return InvalidField("attempt", "%d is out of range", r.Attempt)
	}
	if r.UpstreamID != "" {
		if err := CheckID("upstream_id", r.UpstreamID); err != nil {
			return err
		}
	}
	if r.Cost != nil && (*r.Cost < 0 || *r.Cost > AmountMax) {
		return InvalidField("cost", "%d is out of range; it takes 0 to %d", *r.Cost, AmountMax)
	}
	if err := firstError(
		checkOneOf("outcome", r.Outcome, Outcomes...),
		checkOneOf("source", r.Source, Callback, Poll, Operator),
		CheckID("job", r.Job),
		checkText("reason", r.Reason),
	); err != nil {
		return err
	}
	if r.Cost != nil && r.Outcome != Completed {
		return InvalidField("cost", "only a completed job has an actual cost")
	}
	return nil
}

// settle claims the terminal transition and moves the credits; or, if the job had ended or the claim
// does not allow this report, keeps the report as evidence. refusal is an error to answer with after
// the evidence is committed.
func settle(tx *db.Tx, c *claim, r Report) (s Settlement, refusal, err error) {
	// The claim looks at other rows than the job's, and a lost one asks why: all of it is one moment.
	found, err := tx.Lock(`SELECT 1 FROM jobs WHERE id = ?`, r.Job)
	if err == nil && !found {
		err = noJob(r.Job)
	}
	if err != nil {
		return s, nil, err
	}
	won, err := c.take(tx, &s.Job, &r)
	if err != nil {
		return s, nil, err
	}
	s.Won, s.Reported, s.Verdict = won, r.Outcome, Won
	if !won {
		return lose(tx, c, r)
	}
	a, err := lockAccount(tx, s.Job.Owner)
	if CodeOf(err) == NotFound {
		err = fail(Inconsistent, "job %q: its owner %q has no balance", s.Job.ID, s.Job.Owner)
	}
	if err != nil {
		return s, nil, err
	}
	if s.Returned, s.expired, err = settleCredits(tx, a, &s.Job, c.importing); err != nil {
		return s, nil, err
	}
	s.Consumed = *s.Job.SettledCost
	s.Balance = a.balance()
	if err := insertEvent(tx, settledEvent(&s)); err != nil {
		return s, nil, err
	}
	if s.Job.Submission == SubmissionAccepted { // of no other submission is anybody asked
		if err := stopPoll(tx, s.Job.ID); err != nil {
			return s, nil, err
		}
	}
	return s, nil, firstError(keepUpstream(tx, &s.Job, &r), insertWon(tx, &r))
}

// settleCredits moves what a claimed job holds or used, by its mode and settled cost, and gives what
// was returned to the owner.
//
//	hold, completed    consume the settled cost from the job's own lots in hold order, release the rest
//	hold, any other    release all
//	charge, any        refund the cost minus the settled cost, which is 0 unless completed, and minus
//	                   what legacy refunds returned
//
// What comes back into a lot that has lapsed meanwhile expires at once, unless it is an import that will
// expire it; expired counts those lots.
func settleCredits(
	tx *db.Tx, a *account, job *Job, importing bool,
) (returned int64, expired int, err error) {
	paid, err := paidBy(tx, job)
	if err == nil && job.Mode == ModeCharge && *job.SettledCost < job.Cost {
		paid, err = stillPaid(tx, job, paid)
	}
	if err != nil {
		return 0, 0, err
	}
	consumed, rest := split(paid, *job.SettledCost)
	var back []Lot
	if job.Mode == ModeHold {
		if err := moveJob(tx, a, KindConsume, job, consumed, nil); err != nil {
			return 0, 0, err
		}
		back = lotsOf(rest)
		err = moveJob(tx, a, KindRelease, job, rest, nil)
	} else {
		back = refundLots(rest)
		err = moveJob(tx, a, KindRefund, job, rest, back)
	}
	if err != nil {
		return 0, 0, err
	}
	lapsed := false
	for i := range rest {
		returned += rest[i].Amount
		lapsed = a.gained(&rest[i].Lot, rest[i].Amount, now(tx)) || lapsed
	}
	if lapsed && !importing {
		expired, err = expireReturned(tx, a, job, back)
	}
	return returned, expired, err
}

func lotsOf(list []payment) (lots []Lot) {
	for i := range list {
		lots = append(lots, list[i].Lot)
	}
	return lots
}

// payment is what one lot pays for a job.
type payment struct {
	Lot
	Amount int64
}

// inSpendingOrder compares as the ORDER BY terms of spendingOrder do.
func inSpendingOrder(p, q payment) int {
	return cmp.Or(
		cmp.Compare(p.Priority, q.Priority),
		cmp.Compare(p.expiry(), q.expiry()),
		cmp.Compare(p.ID, q.ID),
	)
}

// paidBy gives what pays for a job: the postings of its hold or charge entry, in spending order.
func paidBy(tx *db.Tx, job *Job) ([]payment, error) {
	kind := KindHold
	if job.Mode == ModeCharge {
		kind = KindCharge
	}
	var list []payment
	var sum int64
	var p payment
	err := tx.Rows(func() { list, sum = append(list, p), sum+p.Amount }, `
		SELECT l.id, p.amount, l.priority, l.effective_at, l.expires_at
		FROM entries e
		JOIN postings p ON p.entry_id = e.id
		JOIN lots l ON l.id = p.lot_id
		WHERE e.event_key = ?`, []any{jobKey(kind, job.ID)},
		&p.ID, &p.Amount, &p.Priority, &p.EffectiveAt, &p.ExpiresAt)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, inSpendingOrder)
	if sum != job.Cost {
		return nil, fail(Inconsistent, "job %q costs %d and its %s entry has %d", job.ID, job.Cost, kind, sum)
	}
	return list, nil
}

// split divides payments into the first n credits and the rest.
func split(paid []payment, n int64) (first, rest []payment) {
	for _, p := range paid {
		here := min(p.Amount, n)
		n -= here
		if here > 0 {
			first = append(first, payment{p.Lot, here})
		}
		if p.Amount > here {
			rest = append(rest, payment{p.Lot, p.Amount - here})
		}
	}
	return first, rest
}

// moveJob writes one entry of a job's settlement, if there is anything to move.
func moveJob(tx *db.Tx, a *account, kind Kind, job *Job, list []payment, into []Lot) error {
	if len(list) == 0 {
		return nil
	}
	m := movement{kind: kind, key: jobKey(kind, job.ID), job: job, into: into, reason: job.Reason}
	for i := range list {
		m.from = append(m.from, Posting{list[i].ID, list[i].Amount})
	}
	_, err := move(tx, a, m)
	return err
}

// refundLots makes a new lot for each lot that paid, with its priority and times.
func refundLots(rest []payment) (into []Lot) {
	for i := range rest {
		into = append(into, Lot{
			Amount:      rest[i].Amount,
			Priority:    rest[i].Priority,
			EffectiveAt: rest[i].EffectiveAt,
			ExpiresAt:   rest[i].ExpiresAt,
		})
	}
	return into
}

// lose answers a report that could not claim the job.
func lose(tx *db.Tx, c *claim, r Report) (s Settlement, refusal, err error) {
	job, err := mustFindJob(tx, r.Job)
	if err != nil {
		return s, nil, err
	}
	verdict, refusal, err := c.judge(tx, job, &r)
	if err != nil {
		return s, nil, err
	}
	first, err := insertReport(tx, &r, verdict)
	if err != nil {
		return s, nil, err
	}
	if verdict == Conflict && first {
		if err := announceConflict(tx, job, &r); err != nil {
			return s, nil, err
		}
	}
	s = Settlement{Job: *job, Reported: r.Outcome, Verdict: verdict}
	if job.SettledCost != nil {
		s.Consumed = *job.SettledCost
	}
	if s.Returned, err = returnedBy(tx, job); err != nil {
		return s, nil, err
	}
	s.Balance, err = balance(tx, job.Owner)
	return s, refusal, err
}
