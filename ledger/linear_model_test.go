package ledger_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"

	"jobledger/ledger"
)

// How many jobs and grants an owner can have in a history, and how many of the pools lapse. Each grant that
// lapses has a pool of its own: a sweep that looks while the second is made expires the first alone.
const (
	linearJobs   = 8
	linearGrants = 4
	linearLapses = 2
)

// linearPools are credits that can be told from others: those of each grant that lapses, and the rest.
type linearPools [linearLapses + 1]linearPool

// linearState is one owner as callers see it, without lots, journal or tables: pools of credits, of which all
// but the last lapse when the clock moves and are spent first, and jobs.
type linearState struct {
	pools   linearPools
	granted [linearGrants]bool
	jobs    [linearJobs]linearJob
}

type linearPool struct{ available, held, used, expired int64 }

// linearJob holds its cost until it ends. Its zero value is a job that nobody has made.
type linearJob struct {
	status  ledger.Status
	paid    [linearLapses + 1]int64 // by each pool
	settled int64
}

func (j *linearJob) cost() (sum int64) {
	for _, amount := range j.paid {
		sum += amount
	}
	return sum
}

// linearPoolOf gives the pool of a grant: the odd ones lapse, in the order in which they are spent.
func linearPoolOf(c linearCall) int {
	if c.lapsing {
		return c.number / 2
	}
	return linearLapses
}

// linearCall is what a caller asks for. The number is that of a job, of a grant's key, or of a pool.
type linearCall struct {
	kind    string
	owner   string
	number  int
	amount  int64
	lapsing bool // grant: into a pool of its own
	outcome ledger.Outcome
}

// linearAnswer is what the caller was told.
type linearAnswer struct {
	text    string
	unknown bool   // it may have happened, it may happen later, it may never happen
	late    []bool // whether the clock may have moved when it happened
}

// linearModel is linearizable, owner by owner, or it is not what a ledger does. An operation of unknown
// outcome returns after all others: at the end, where nobody looks any more, is also where one that
// never happened finds its place.
var linearModel = (&porcupine.NondeterministicModel{
	Partition: linearPartition,
	Init:      func() []any { return []any{linearState{}} },
	Step: func(state, input, output any) (next []any) {
		answer := output.(linearAnswer)
		for _, late := range answer.late {
			s := state.(linearState)
			if text := s.apply(input.(linearCall), late); answer.unknown || text == answer.text {
				next = append(next, s)
			}
		}
		return next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}).ToModel()

// linearPartition gives each owner's operations.
func linearPartition(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	of := map[string][]porcupine.Operation{}
	for _, o := range history {
		owner := o.Input.(linearCall).owner
		of[owner] = append(of[owner], o)
	}
	return slices.Collect(maps.Values(of))
}

// apply does what a call asks for and gives its answer.
func (s *linearState) apply(c linearCall, late bool) string {
	switch c.kind {
	case "grant":
		return s.grant(c, late)
	case "create":
		return s.create(c, late)
	case "settle", "cancel":
		return s.settle(c, late)
	case "time out":
		if j := &s.jobs[c.number]; j.status == ledger.Pending && linearDue(c.number) {
			s.end(j, ledger.TimedOut, 0, late)
		}
		return "swept"
	case "expire":
		s.expire(c.number, late)
		return "swept"
	case "balance":
		return s.shows(late)
	}
	j := s.jobs[c.number]
	if j.status == "" {
		return string(ledger.NotFound)
	}
	return fmt.Sprint(j.status, " ", j.settled)
}

func (s *linearState) grant(c linearCall, late bool) string {
	replayed := s.granted[c.number]
	if c.lapsing && late && !replayed {
		return string(ledger.Invalid)
	}
	if !replayed {
		s.granted[c.number] = true
		s.pools[linearPoolOf(c)].available += c.amount
	}
	return fmt.Sprint(replayed, " ", s.shows(late))
}

func (s *linearState) create(c linearCall, late bool) string {
	j := &s.jobs[c.number]
	if j.status != "" {
		return fmt.Sprint(true, " ", j.status, " ", s.shows(late))
	}
	free := int64(0)
	for i, p := range s.pools {
		if i == linearLapses || !late {
			free += p.available
		}
	}
	if free < c.amount {
		return fmt.Sprint(ledger.InsufficientCredits, " ", free)
	}
	s.expireAll(late)
	*j = linearJob{status: ledger.Pending}
	for i := range s.pools {
		p := &s.pools[i]
		j.paid[i] = min(p.available, c.amount-j.cost())
		p.available, p.held = p.available-j.paid[i], p.held+j.paid[i]
	}
	return fmt.Sprint(false, " ", j.status, " ", s.shows(late))
}

func (s *linearState) settle(c linearCall, late bool) string {
	j := &s.jobs[c.number]
	verdict := ledger.Won
	switch {
	case j.status == "":
		return string(ledger.NotFound)
	case j.status == ledger.Pending:
		s.end(j, c.outcome, c.amount, late)
	case j.status == ledger.Status(c.outcome):
		verdict = ledger.Duplicate
	default:
		verdict = ledger.Conflict
	}
	return fmt.Sprint(verdict, " ", j.status, " ", j.cost()-j.settled, " ", j.settled, " ", s.shows(late))
}

// end consumes what the job cost and returns the rest. What comes back too late expires, and with it
// all that has lapsed already.
func (s *linearState) end(j *linearJob, outcome ledger.Outcome, cost int64, late bool) {
	j.status, j.settled = ledger.Status(outcome), cost
	lapsed := false
	for i := range s.pools {
		p, consumed := &s.pools[i], min(cost, j.paid[i])
		cost -= consumed
		p.held -= j.paid[i]
		p.used += consumed
		p.available += j.paid[i] - consumed
		lapsed = lapsed || i < linearLapses && j.paid[i] > consumed
	}
	if lapsed {
		s.expireAll(late)
	}
}

// expire expires what is in a pool, if it is one that lapses.
func (s *linearState) expire(pool int, late bool) {
	if p := &s.pools[pool]; late && pool < linearLapses {
		p.expired, p.available = p.expired+p.available, 0
	}
}

func (s *linearState) expireAll(late bool) {
	for i := range s.pools {
		s.expire(i, late)
	}
}

// shows is the balance: what has lapsed counts as expired, booked or not.
func (s linearState) shows(late bool) string {
	s.expireAll(late)
	var b ledger.Balance
	for _, p := range s.pools {
		b.Available += p.available
		b.Held += p.held
		b.Used += p.used
		b.Expired += p.expired
	}
	return buckets(b)
}

// parts are the operations that a call is. A sweep looks for what is due, while others go on, and then
// does that: each part of it is one operation, and no two are of one moment.
func (c linearCall) parts(owners []string) (parts []linearCall) {
	if c.kind != "sweep" {
		return []linearCall{c}
	}
	for _, owner := range owners {
		for number := range linearJobs {
			if linearDue(number) {
				parts = append(parts, linearCall{kind: "time out", owner: owner, number: number})
			}
		}
		for pool := range linearLapses {
			parts = append(parts, linearCall{kind: "expire", owner: owner, number: pool})
		}
	}
	return parts
}

// linearDue tells which jobs are due for the sweep from the start.
func linearDue(number int) bool { return number%3 == 0 }
