// Package poll asks providers how the jobs are that they took, on the schedule that the ledger keeps, and
// settles those that have ended. It is the second observer beside the callbacks, and settles by the same
// function; whichever comes first wins.
package poll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"jobledger/internal/httpcall"
	"jobledger/internal/providers"
	"jobledger/ledger"
)

// Options adjust a poller. The zero value logs nothing and reaches no private address.
type Options struct {
	// Log gets a line for each poll that brought nothing, and none with a secret in it.
	Log *slog.Logger

	// AllowPrivate lets status addresses be on this machine or in a private network.
	AllowPrivate bool

	// Concurrent bounds the calls to one provider at once; default 8.
	Concurrent int

	// Every is how often the ledger is asked what is due; default 1 s.
	Every time.Duration

	// Look is how often the ledger is looked through for jobs that nobody here asks for; default a minute.
	Look time.Duration

	// Settled is told of each report that the ledger took; it may be nil.
	Settled func(ledger.Verdict)
}

// Poller asks the providers of a set. Several may work on one ledger: each job is asked for by one at a time.
type Poller struct {
	ledger  *ledger.Ledger
	options Options
	askers  []*asker
	named   []string // the providers of the set, also those that are not asked
}

// asker asks one provider. It has its own slots, so that a provider that is slow delays no other.
type asker struct {
	*Poller
	provider *providers.Provider
	client   *httpcall.Client
	slots    chan struct{} // one per call
}

// answerMax bounds what is read of an answer, in bytes: providers send what was made along, and often what
// it was made from. It is more than a callback may have, so that a job whose callback is too large can be
// asked for.
const answerMax = 16 << 20

// New makes a poller for the providers that have a status address. Errors: INVALID, naming the provider,
// if there is none, or one has an address that would not be called.
func New(l *ledger.Ledger, set *providers.Set, o Options) (*Poller, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Concurrent <= 0 {
		o.Concurrent = 8
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Look <= 0 {
		o.Look = time.Minute
	}
	if o.Settled == nil {
		o.Settled = func(ledger.Verdict) {}
	}
	p := &Poller{ledger: l, options: o, named: set.Names()}
	for _, provider := range set.Polled() {
		guard := httpcall.Options{
			Timeout: provider.Poll.Timeout, BodyMax: answerMax, AllowPrivate: o.AllowPrivate,
		}
		if err := provider.Poll.Check(guard); err != nil {
			return nil, ledger.InvalidField("providers", "provider %q: poll.url: %v", provider.Name, err)
		}
		p.askers = append(p.askers, &asker{
			Poller: p, provider: provider, client: httpcall.New(guard), slots: make(chan struct{}, o.Concurrent),
		})
	}
	if len(p.askers) == 0 {
		return nil, ledger.InvalidField("providers", "there is none with a poll section")
	}
	return p, nil
}

// Run polls until ctx ends, and returns when the last call has. What goes wrong is logged, and tried again
// when it is time.
func (p *Poller) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, a := range p.askers {
		all.Go(func() { a.run(ctx) })
	}
	all.Go(func() { p.lookBeside(ctx) })
	all.Wait()
}

// Once asks for what is due now, up to the slots of each provider, and waits for the answers. It gives how
// many calls it made. Errors: those of [ledger.Ledger.ClaimPolls].
func (p *Poller) Once(ctx context.Context) (calls int, err error) {
	var all sync.WaitGroup
	for _, a := range p.askers {
		n, claimErr := a.start(ctx, &all)
		calls, err = calls+n, errors.Join(err, claimErr)
	}
	all.Wait()
	for _, a := range p.askers {
		a.client.Close()
	}
	return calls, err
}

func (a *asker) run(ctx context.Context) {
	var calls sync.WaitGroup
	defer a.client.Close()
	defer calls.Wait()
	for ctx.Err() == nil {
		n, err := a.start(ctx, &calls)
		if err != nil && ctx.Err() == nil {
			a.options.Log.LogAttrs(ctx, slog.LevelWarn, "poll", slog.String("provider", a.provider.Name),
				slog.String("code", string(ledger.CodeOf(err))), slog.String("cause", err.Error()))
		}
		if n > 0 {
			continue // there may be more
		}
		select {
		case <-ctx.Done():
		case <-time.After(a.options.Every/2 + rand.N(a.options.Every)): // several pollers do not march in step
		}
	}
}

// start claims as many tasks as there are free slots, waiting for one at least, and starts a call for each.
func (a *asker) start(ctx context.Context, calls *sync.WaitGroup) (started int, err error) {
	free := a.take(ctx)
	if free == 0 {
		return 0, nil
	}
	lease := a.provider.Poll.Timeout + settleTime + leaseExtra
	// A claim whose answer nobody waits for would keep its tasks from everybody until the lease is over.
	claiming, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	tasks, err := a.ledger.ClaimPolls(claiming, []string{a.provider.Name}, free, lease)
	for range free - len(tasks) {
		<-a.slots
	}
	for i := range tasks {
		calls.Go(func() {
			defer func() { <-a.slots }()
			a.do(ctx, &tasks[i])
		})
	}
	return len(tasks), err
}

// take takes the free slots, and waits for one if there is none. 0: ctx has ended.
func (a *asker) take(ctx context.Context) (free int) {
	if ctx.Err() != nil {
		return 0
	}
	select {
	case a.slots <- struct{}{}:
		free++
	case <-ctx.Done():
		return 0
	}
	for {
		select {
		case a.slots <- struct{}{}:
			free++
		default:
			return free
		}
	}
}

const (
	settleTime = 15 * time.Second // to record an answer; the wait for a lock is 10 s
	leaseExtra = 5 * time.Second  // so that a call is over before its task is given again
)

// do asks for one job and records what came of it. No transaction is open during the call.
func (a *asker) do(ctx context.Context, task *ledger.PollTask) {
	said, delay, err := a.ask(ctx, task)
	stopped := ctx.Err() != nil
	// What the provider said is recorded even if the program is ending.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err == nil && said.Outcome != "" {
		var settled bool
		if settled, err = a.settle(ctx, task, said); settled {
			return // the task has ended with the job
		}
	}
	answer := ledger.PollAnswer{
		Job: task.Job, Lease: task.Lease, NextAt: ledger.At(time.Now().Add(delay)), Error: line(err),
	}
	if stopped {
		answer.Error, answer.NextAt = "", ledger.At(time.Now()) // it was not the provider; another may ask
	} else if err != nil {
		a.log(ctx, task, answer.Error)
	}
	err = a.ledger.FinishPoll(ctx, answer)
	if err != nil && ledger.CodeOf(err) != ledger.NotAllowed { // that is: the job has ended meanwhile
		a.log(ctx, task, line(err))
	}
}

// settle reports how a job ended. settled tells that the ledger took the report, whoever has won.
func (a *asker) settle(ctx context.Context, task *ledger.PollTask, said *providers.Said) (bool, error) {
	report := said.Report(task.Job, task.Attempt, ledger.Poll)
	report.UpstreamID = task.UpstreamID
	s, err := a.ledger.Settle(ctx, report)
	switch {
	case ledger.CodeOf(err) == ledger.StaleAttempt:
		a.options.Settled(ledger.Stale)
		return true, nil // the job is at another attempt by now, and the task is not this one any more
	case err != nil:
		return false, fmt.Errorf("the provider says %s: %w", said.Outcome, err)
	}
	a.options.Settled(s.Verdict)
	return true, nil
}

func (a *asker) log(ctx context.Context, task *ledger.PollTask, cause string) {
	a.options.Log.LogAttrs(ctx, slog.LevelWarn, "poll", slog.String("provider", task.Provider),
		slog.String("job", task.Job), slog.Int64("tries", task.Tries), slog.String("cause", cause))
}
