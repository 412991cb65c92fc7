package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"jobledger/db"
	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// How many histories, and how large each is. A seed repeats what is asked, not when.
const (
	linearHistories = 300
	linearWorkers   = 4 // ledgers, one history after the other on each
	linearClients   = 6
	linearCalls     = 8 // of each client
	linearOwners    = 2
)

// Clients of several handles, some of whom leave, use the same owners and jobs while COMMITs fail on
// either side: what they are told has an order in which one after the other would have been told the same.
func TestLinearizable(t *testing.T) {
	c := dbtest.StartCampaign(t, "T14", linearHistories)
	histories, seed, engines := uint64(c.Wanted), c.Seed, 0
	sums := map[string]*linearSum{"sqlite": newLinearSum(), "postgres": newLinearSum()}
	t.Run("histories", func(t *testing.T) {
		for worker := range linearWorkers {
			t.Run(fmt.Sprint("ledger", worker), func(t *testing.T) {
				t.Parallel()
				eachWorkbench(t, func(b *workbench) {
					faulty := ledger.Options{Intercept: failSomeCommits}
					handles := []*ledger.Ledger{b.open(faulty), b.open(faulty)}
					for n := uint64(worker); n < histories; n += linearWorkers {
						h := newHistory(b, handles, rand.New(rand.NewPCG(seed, n)), fmt.Sprint("history-", n))
						h.run(time.Duration(n) * time.Hour)
						h.check(fmt.Sprintf("history %d of seed %d", n, seed))
						sums[b.Engine()].add(h)
						c.Done(true)
					}
				})
			})
		}
	})
	for engine, sum := range sums {
		if sum.answers["histories"] > 0 {
			engines++
		}
		t.Logf("%s: %v", engine, sum.answers)
		sum.check(t, engine)
	}
	c.All(int(histories) * engines)
}

// failSomeCommits keeps one COMMIT in sixty from the database, and loses the answer of as many.
func failSomeCommits(_ db.When, query string) error {
	if query == "COMMIT" && rand.IntN(60) == 0 {
		return errInjected
	}
	return nil
}

// history is what clients do to owners, and are told.
type history struct {
	*workbench
	handles []*ledger.Ledger
	random  *rand.Rand
	owners  []string
	costs   map[string]int64 // by job
	moves   int64            // when the clock does, and the first pool lapses
	began   time.Time

	mutex sync.Mutex
	told  []porcupine.Operation
	left  int
}

func newHistory(b *workbench, handles []*ledger.Ledger, random *rand.Rand, name string) *history {
	h := &history{workbench: b, handles: handles, random: random, costs: map[string]int64{}, began: time.Now()}
	for o := range linearOwners {
		owner := fmt.Sprint(name, "-", o)
		h.owners = append(h.owners, owner)
		for j := range linearJobs {
			h.costs[linearID(owner, j)] = 10 + random.Int64N(30)
		}
	}
	return h
}

func linearID(owner string, number int) string { return fmt.Sprint(owner, "-", number) }

// run lets the clients do what the seed says, from a time on, while the clock moves once, and looks at
// what is there in the end.
func (h *history) run(from time.Duration) {
	h.at(from)
	h.moves = h.micro.Load() + time.Minute.Microseconds()
	for _, owner := range h.owners {
		h.call(0, h.Ledger, linearCall{kind: "grant", owner: owner, number: 0, amount: 60})
		h.call(0, h.Ledger, linearCall{kind: "grant", owner: owner, number: 1, amount: 40, lapsing: true})
	}
	var clients sync.WaitGroup
	for client := range linearClients {
		random := rand.New(rand.NewPCG(h.random.Uint64(), 0))
		clients.Go(func() { h.client(client, random) })
	}
	clients.Wait()
	for _, owner := range h.owners {
		h.call(0, h.Ledger, linearCall{kind: "balance", owner: owner})
		for j := range linearJobs {
			h.call(0, h.Ledger, linearCall{kind: "job", owner: owner, number: j})
		}
	}
}

func (h *history) client(number int, random *rand.Rand) {
	l, sweeps := h.handles[number%len(h.handles)], number < 2
	for i := range linearCalls {
		if number == 0 && i == linearCalls/2 {
			h.micro.Store(h.moves)
		}
		// Sweeps are many operations each: were there more at once, or any of unknown outcome, that would be
		// more than can be thought about.
		c, patience, again := h.choose(random, sweeps), time.Duration(-1), random.IntN(2) == 0
		if c.kind == "sweep" {
			h.call(number, h.Ledger, c)
			continue
		}
		if random.IntN(8) == 0 {
			patience = time.Duration(random.IntN(3000)) * time.Microsecond
		}
		if unknown := h.callFor(number, l, c, patience); unknown {
			number += linearClients // one who waits for an answer asks for nothing else
			if again {
				h.call(number, l, c)
			}
		}
	}
}

// choose makes a call. What is said of a job or a key is always the same.
func (h *history) choose(random *rand.Rand, sweeps bool) linearCall {
	kinds := []string{"create", "create", "create", "settle", "settle", "settle", "cancel", "grant",
		"balance", "job"}
	if sweeps {
		kinds = append(kinds, "sweep", "sweep", "sweep")
	}
	c := linearCall{
		kind: kinds[random.IntN(len(kinds))], owner: h.owners[random.IntN(len(h.owners))],
		number: random.IntN(linearJobs),
	}
	cost := h.costs[linearID(c.owner, c.number)]
	switch c.kind {
	case "create":
		c.amount = cost
	case "settle":
		c.outcome = ledger.Failed
		if random.IntN(2) == 0 {
			c.outcome, c.amount = ledger.Completed, cost/2
		}
	case "cancel":
		c.outcome = ledger.Canceled
	case "grant":
		c.number %= linearGrants
		c.amount, c.lapsing = 20*int64(3-c.number%2), c.number%2 == 1
	}
	return c
}

func (h *history) call(client int, l *ledger.Ledger, c linearCall) { h.callFor(client, l, c, -1) }

// callFor makes a call for a client who leaves when its patience ends, if it has an end, and notes the
// answer. One that was not begun leaves nothing to note.
func (h *history) callFor(client int, l *ledger.Ledger, c linearCall, patience time.Duration) (unknown bool) {
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	if patience >= 0 {
		defer time.AfterFunc(patience, cancel).Stop()
	}
	late := func() bool { return h.micro.Load() >= h.moves }
	answer := linearAnswer{late: []bool{late()}}
	from := time.Since(h.began).Nanoseconds()
	text, err := h.ask(ctx, l, c)
	to := time.Since(h.began).Nanoseconds()
	answer.text, answer.late = text, slices.Compact(append(answer.late, late()))
	switch code := codeOrNone(err); code {
	case "":
	case ledger.OutcomeUnknown:
		answer.unknown, answer.late = true, slices.Compact([]bool{answer.late[0], true})
	case ledger.InsufficientCredits:
		e := err.(*ledger.Error)
		answer.text = fmt.Sprint(code, " ", *e.Available)
	case ledger.NotFound, ledger.Invalid:
		answer.text = string(code)
	case ledger.Busy:
		h.mutex.Lock()
		defer h.mutex.Unlock()
		h.left++
		return false
	default:
		h.Errorf("%+v: %v", c, err)
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, part := range c.parts(h.owners) {
		h.told = append(h.told, porcupine.Operation{
			ClientId: client, Input: part, Call: from, Output: answer, Return: to,
		})
	}
	return answer.unknown
}

// ask makes a call and words what the ledger says.
func (h *history) ask(ctx context.Context, l *ledger.Ledger, c linearCall) (text string, err error) {
	id := linearID(c.owner, c.number)
	switch c.kind {
	case "grant":
		p := ledger.GrantParams{Owner: c.owner, Amount: c.amount, Key: id}
		if c.lapsing {
			p.Expires = on(time.Duration(h.moves) * time.Microsecond)
		}
		r, err := l.Grant(ctx, p)
		return fmt.Sprint(r.Replayed, " ", buckets(r.Balance)), err
	case "create":
		p := ledger.JobParams{ID: id, Owner: c.owner, Cost: c.amount}
		if linearDue(c.number) {
			p.Deadline = on(0)
		}
		r, err := l.CreateJob(ctx, p)
		return fmt.Sprint(r.Replayed, " ", r.Job.Status, " ", buckets(r.Balance)), err
	case "settle", "cancel":
		s, err := h.end(ctx, l, c, id)
		return fmt.Sprint(s.Verdict, " ", s.Job.Status, " ", s.Returned, " ", s.Consumed, " ",
			buckets(s.Balance)), err
	case "sweep":
		r, err := l.Sweep(ctx, ledger.PageMax)
		return "swept" + strings.Join(r.Inconsistent, " "), err
	case "balance":
		r, err := l.Balance(ctx, ledger.BalanceParams{Owner: c.owner})
		return buckets(r), err
	}
	j, err := l.Job(ctx, id)
	if err != nil || j.SettledCost == nil {
		return fmt.Sprint(j.Status, " ", 0), err
	}
	return fmt.Sprint(j.Status, " ", *j.SettledCost), nil
}

func (h *history) end(
	ctx context.Context, l *ledger.Ledger, c linearCall, id string,
) (ledger.Settlement, error) {
	if c.kind == "cancel" {
		return l.Cancel(ctx, id, "not wanted")
	}
	r := ledger.Report{Job: id, Outcome: c.outcome, Source: ledger.Callback}
	if c.outcome == ledger.Completed {
		r.Cost = &c.amount
	}
	return l.Settle(ctx, r)
}
