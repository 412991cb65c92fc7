package ledger_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"jobledger/ledger"
)

// never is the expiry of a lot, and the deadline of a job, that has none.
const never = math.MaxInt64

// model is a ledger as plain lots: no balances, no allocations in tables, every sum made anew.
// Times are microseconds since the start of the test.
type model struct {
	now     int64
	owners  map[string]*modelOwner
	jobs    map[string]*modelJob
	grants  map[string]modelGrant
	revokes map[string]modelRevoke
	reports map[string]int // "job source outcome verdict attempt" and how often
}

func newModel(now int64) *model {
	return &model{
		now:     now,
		owners:  map[string]*modelOwner{},
		jobs:    map[string]*modelJob{},
		grants:  map[string]modelGrant{},
		revokes: map[string]modelRevoke{},
		reports: map[string]int{},
	}
}

type modelOwner struct {
	lots    []*modelLot // oldest first
	journal []string
}

type modelLot struct {
	priority, from, until          int64
	available, held, used, expired int64
}

// moment is a time, a span from now, or neither.
type moment struct {
	kind  string // "", "time", "span"
	value int64
}

func (w moment) fix(now, none int64) int64 {
	switch w.kind {
	case "time":
		return w.value
	case "span":
		return now + w.value
	}
	return none
}

type modelGrant struct {
	owner              string
	amount, priority   int64
	effective, expires moment
	reason             string
	recorded           int64
}

type modelRevoke struct {
	owner, reason, lot string
	amount             int64
}

type modelJob struct {
	id, owner        string
	cost             int64
	mode             ledger.Mode
	deadline         moment
	created, updated int64
	paid             []modelPart
	status           string
	settled          int64
	source           ledger.Source
}

type modelPart struct {
	lot    *modelLot
	amount int64
}

func (j *modelJob) open() bool { return j.status == "pending" }

// due is when the sweep may time the job out.
func (j *modelJob) due() int64 { return j.deadline.fix(j.created, never) }

func differing(pairs ...any) (names []string) {
	for i := 0; i < len(pairs); i += 2 {
		if !pairs[i+1].(bool) {
			names = append(names, pairs[i].(string))
		}
	}
	return names
}

func (m *model) spendable(l *modelLot) bool { return l.from <= m.now && m.now < l.until }

// ordered gives an owner's lots as they are spent.
func (o *modelOwner) ordered() []*modelLot {
	list := slices.Clone(o.lots)
	slices.SortStableFunc(list, func(a, b *modelLot) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.until, b.until))
	})
	return list
}

// write adds a line to the journal, with the sums that the lots have now.
func (o *modelOwner) write(kind ledger.Kind, amount int64) {
	if amount == 0 {
		return
	}
	var sum modelLot
	for _, l := range o.lots {
		sum.available += l.available
		sum.held += l.held
		sum.used += l.used
		sum.expired += l.expired
	}
	o.journal = append(o.journal, fmt.Sprintf("%s %d: %d %d %d %d", kind, amount,
		sum.available, sum.held, sum.used, sum.expired))
}

// balance is what an owner is shown: available, held, used, expired and scheduled.
func (m *model) balance(o *modelOwner) string {
	var b ledger.Balance
	for _, l := range o.lots {
		b.Held += l.held
		b.Used += l.used
		b.Expired += l.expired
		switch {
		case l.until <= m.now:
			b.Expired += l.available
		case l.from > m.now:
			b.Scheduled += l.available
		default:
			b.Available += l.available
		}
	}
	return buckets(b)
}

// expire books what is left in an owner's lapsed lots and gives their number.
func (m *model) expire(o *modelOwner) (n int64) {
	list := slices.Clone(o.lots)
	slices.SortStableFunc(list, func(a, b *modelLot) int { return cmp.Compare(a.until, b.until) })
	for _, l := range list {
		if left := l.available; left > 0 && l.until <= m.now {
			l.available, l.expired = 0, l.expired+left
			o.write(ledger.KindExpire, left)
			n++
		}
	}
	return n
}

func (m *model) grant(key string, g modelGrant) (replayed bool, fields []string, code ledger.Code) {
	if old, known := m.grants[key]; known {
		at := old.recorded
		fields = differing("owner", g.owner == old.owner, "amount", g.amount == old.amount,
			"priority", g.priority == old.priority,
			"effective", g.effective.fix(at, 0) == old.effective.fix(at, 0),
			"expires", g.expires.fix(at, never) == old.expires.fix(at, never), "reason", g.reason == old.reason)
		if fields != nil {
			return false, fields, ledger.IdempotencyMismatch
		}
		return true, nil, ""
	}
	lot := &modelLot{priority: g.priority, available: g.amount,
		from: g.effective.fix(m.now, 0), until: g.expires.fix(m.now, never)}
	if lot.until <= m.now || lot.until <= lot.from {
		return false, nil, ledger.Invalid
	}
	if m.owners[g.owner] == nil {
		m.owners[g.owner] = &modelOwner{}
	}
	o := m.owners[g.owner]
	o.lots = append(o.lots, lot)
	o.write(ledger.KindGrant, g.amount)
	g.recorded = m.now
	m.grants[key] = g
	return false, nil, ""
}

// take picks what pays an amount from lots, or nothing if they have less than that.
func take(lots []*modelLot, amount int64) (parts []modelPart) {
	for _, l := range lots {
		if n := min(l.available, amount); n > 0 {
			parts = append(parts, modelPart{l, n})
			amount -= n
		}
	}
	if amount > 0 {
		return nil
	}
	return parts
}

func (m *model) spend(o *modelOwner, amount int64) []modelPart {
	return take(slices.DeleteFunc(o.ordered(), func(l *modelLot) bool { return !m.spendable(l) }), amount)
}

func (m *model) create(j modelJob) (replayed bool, fields []string, code ledger.Code) {
	if old := m.jobs[j.id]; old != nil {
		fields = differing("owner", j.owner == old.owner, "cost", j.cost == old.cost, "mode", j.mode == old.mode,
			"deadline", j.deadline.fix(old.created, never) == old.due())
		if fields != nil {
			return false, fields, ledger.IdempotencyMismatch
		}
		return true, nil, ""
	}
	o := m.owners[j.owner]
	if o == nil {
		return false, nil, ledger.NotFound
	}
	if j.paid = m.spend(o, j.cost); j.paid == nil {
		return false, nil, ledger.InsufficientCredits
	}
	m.expire(o)
	kind := ledger.KindHold
	for _, p := range j.paid {
		p.lot.available -= p.amount
		if j.mode == ledger.ModeHold {
			p.lot.held += p.amount
		} else {
			p.lot.used += p.amount
			kind = ledger.KindCharge
		}
	}
	o.write(kind, j.cost)
	j.status, j.created, j.updated = "pending", m.now, m.now
	m.jobs[j.id] = &j
	return false, nil, ""
}

// settle applies a report; anyAttempt is for those that are about the job as such.
func (m *model) settle(r ledger.Report, anyAttempt bool) (v ledger.Verdict, code ledger.Code) {
	j := m.jobs[r.Job]
	switch {
	case r.Cost != nil && (*r.Cost < 0 || r.Outcome != ledger.Completed):
		return "", ledger.Invalid
	case j == nil:
		return "", ledger.NotFound
	case r.Cost != nil && *r.Cost > j.cost:
		return "", ledger.Invalid
	case r.Attempt != 0 && !anyAttempt: // nothing here submits a job, so there is no attempt to speak of
		v, code = ledger.Stale, ledger.StaleAttempt
	case j.open():
		v = ledger.Won
		m.end(j, r)
	case j.status == string(r.Outcome):
		v = ledger.Duplicate
	default:
		v = ledger.Conflict
	}
	m.reports[fmt.Sprint(r.Job, " ", r.Source, " ", r.Outcome, " ", v, " ", r.Attempt)]++
	return v, code
}

// end moves the credits of an open job and gives the number of lots that expired with it.
func (m *model) end(j *modelJob, r ledger.Report) int64 {
	j.status, j.source, j.updated, j.settled = string(r.Outcome), r.Source, m.now, 0
	if r.Outcome == ledger.Completed {
		j.settled = j.cost
		if r.Cost != nil {
			j.settled = *r.Cost
		}
	}
	o := m.owners[j.owner]
	var back []modelPart
	for left, i := j.settled, 0; i < len(j.paid); i++ {
		p := j.paid[i]
		used := min(left, p.amount)
		left -= used
		if j.mode == ledger.ModeHold {
			p.lot.held, p.lot.used = p.lot.held-used, p.lot.used+used
		}
		if p.amount > used {
			back = append(back, modelPart{p.lot, p.amount - used})
		}
	}
	if j.mode == ledger.ModeHold {
		o.write(ledger.KindConsume, j.settled)
	}
	return m.giveBack(o, j, back)
}

func (m *model) giveBack(o *modelOwner, j *modelJob, back []modelPart) int64 {
	kind, lapsed := ledger.KindRelease, false
	for _, p := range back {
		if j.mode == ledger.ModeHold {
			p.lot.held, p.lot.available = p.lot.held-p.amount, p.lot.available+p.amount
		} else {
			kind = ledger.KindRefund
			p.lot.used -= p.amount
			o.lots = append(o.lots, &modelLot{priority: p.lot.priority, from: p.lot.from, until: p.lot.until,
				available: p.amount})
		}
		lapsed = lapsed || p.lot.until <= m.now
	}
	o.write(kind, j.cost-j.settled)
	if !lapsed {
		return 0
	}
	return m.expire(o)
}

func (m *model) sweep() (expired, timedOut int64) {
	var due []*modelJob
	for _, j := range m.jobs {
		if j.open() && j.due() <= m.now {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(a.due(), b.due()), strings.Compare(a.id, b.id))
	})
	for _, j := range due {
		expired += m.end(j, ledger.Report{Outcome: ledger.TimedOut, Source: ledger.Sweeper})
		m.reports[j.id+" sweep timed_out won 0"]++
	}
	for _, o := range m.owners {
		expired += m.expire(o)
	}
	return expired, int64(len(due))
}

// revoke takes credits back; target is the lot that is asked for, or nil if the owner has no such.
func (m *model) revoke(
	key string, r modelRevoke, target *modelLot,
) (replayed bool, fields []string, code ledger.Code) {
	if old, known := m.revokes[key]; known {
		fields = differing("owner", r.owner == old.owner, "amount", r.amount == old.amount,
			"reason", r.reason == old.reason, "lot", r.lot == old.lot)
		if fields != nil {
			return false, fields, ledger.IdempotencyMismatch
		}
		return true, nil, ""
	}
	o := m.owners[r.owner]
	if o == nil || (r.lot != "" && target == nil) {
		return false, nil, ledger.NotFound
	}
	parts := m.spend(o, r.amount)
	if r.lot != "" {
		parts = nil
		if target.until > m.now {
			parts = take([]*modelLot{target}, r.amount)
		}
	}
	if parts == nil {
		return false, nil, ledger.InsufficientCredits
	}
	m.expire(o)
	for _, p := range parts {
		p.lot.available, p.lot.expired = p.lot.available-p.amount, p.lot.expired+p.amount
	}
	o.write(ledger.KindRevoke, r.amount)
	m.revokes[key] = r
	return false, nil, ""
}
