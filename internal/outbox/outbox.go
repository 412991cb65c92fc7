// Package outbox sends events to the endpoints that are told of them: signed as Standard Webhooks says, at
// least once, those of one job in their order. The ledger remembers what is on its way; a sender has only
// what it is sending at this moment, so several can work on one ledger, and any of them can be killed.
//
// No transaction is open during a call. An endpoint that is slow or away holds up a few calls to itself
// and nothing else.
package outbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"jobledger/internal/httpcall"
	"jobledger/ledger"
)

// Options adjust a sender. The zero value is what a program wants.
type Options struct {
	AllowPrivate bool             // endpoints may be at private, loopback and link-local addresses
	AllowHTTP    bool             // endpoints elsewhere may be without TLS
	Timeout      time.Duration    // of one call; default 15 s
	Schedule     []time.Duration  // the waits before each try, the first included; default [Schedule]
	Every        time.Duration    // how often Run looks for what is due; default 1 s
	Clock        func() time.Time // default time.Now
	Log          *slog.Logger     // of what failed; default none
	Tried        func(Try)        // if set, is told of each try; it must be quick and safe for concurrent use
}

// Try is one try to deliver an event, as it ended.
type Try struct {
	Delivery ledger.Delivery // after it
	Took     time.Duration   // the call
}

// The defaults of the options.
const (
	timeoutDefault = 15 * time.Second
	everyDefault   = time.Second
)

const (
	claimMax   = 64               // deliveries in one claim
	leaseSpare = 30 * time.Second // that a lease has beyond the timeout of the call, to record its end
	claimFor   = 15 * time.Second // that a claim may take; the wait for a lock is 10 s
	grace      = 5 * time.Second  // that calls under way have when Run is told to end
)

// Sender sends events. It is safe for concurrent use.
type Sender struct {
	ledger *ledger.Ledger
	o      Options
	client *httpcall.Client
}

// New makes a sender. Close ends it.
func New(l *ledger.Ledger, o Options) *Sender {
	if o.Timeout == 0 {
		o.Timeout = timeoutDefault
	}
	if o.Schedule == nil {
		o.Schedule = Schedule
	}
	if o.Every == 0 {
		o.Every = everyDefault
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tried == nil {
		o.Tried = func(Try) {}
	}
	return &Sender{ledger: l, o: o, client: httpcall.New(httpcall.Options{
		Timeout: o.Timeout, BodyMax: answerMax, AllowPrivate: o.AllowPrivate, AllowHTTP: o.AllowHTTP,
	})}
}

// Close closes idle connections.
func (s *Sender) Close() { s.client.Close() }

// Sent counts tries by how their deliveries stood after them.
type Sent struct {
	Delivered int `json:"delivered"`
	Retried   int `json:"retried"` // failed, and tried again later
	Dead      int `json:"dead"`    // failed for the last time
}

// Once sends all that is due, and what becomes due by that, such as the next event of a job. What fails
// stays for a later call.
//
// Errors: those of [ledger.Ledger.ClaimDeliveries]; what was begun is finished.
func (s *Sender) Once(ctx context.Context) (Sent, error) {
	r := s.begin(ctx)
	defer r.end()
	for {
		n, err := r.claim()
		if err != nil || n == 0 && r.running == 0 {
			return r.finish(), err
		}
		if n == 0 {
			r.await(nil)
		}
	}
}

// Run sends what is due until ctx ends; then it finishes the calls under way, or gives them up after some
// seconds. What it cannot do, such as with a database that is away, it logs and tries again.
func (s *Sender) Run(ctx context.Context) Sent {
	r := s.begin(ctx)
	defer r.end()
	for ctx.Err() == nil {
		n, err := r.claim()
		if err != nil && ctx.Err() == nil {
			s.o.Log.Error("no deliveries can be had", "code", ledger.CodeOf(err), "error", err)
		}
		if n == 0 {
			timer := time.NewTimer(s.o.Every)
			r.await(timer.C)
			timer.Stop()
		}
	}
	return r.finish()
}

// round is one call of Once or Run: the deliveries that it has.
type round struct {
	*Sender
	ctx     context.Context // ends when the caller wants no more
	calls   context.Context // ends some seconds after that
	stop    func()
	running int
	done    chan ledger.DeliveryStatus // of the deliveries that ended; empty if that is not known
	sent    Sent
}

func (s *Sender) begin(ctx context.Context) *round {
	r := &round{Sender: s, ctx: ctx, done: make(chan ledger.DeliveryStatus)}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var after *time.Timer
	var mutex sync.Mutex
	unwatch := context.AfterFunc(ctx, func() {
		mutex.Lock()
		defer mutex.Unlock()
		after = time.AfterFunc(grace, cancel)
	})
	r.calls, r.stop = calls, func() {
		unwatch()
		cancel()
		mutex.Lock()
		defer mutex.Unlock()
		if after != nil {
			after.Stop()
		}
	}
	return r
}

func (r *round) end() { r.stop() }

// claim claims what is due and sends each in a goroutine of its own: the ledger gives a few of each
// endpoint at a time, so their number is bounded without one waiting for another.
func (r *round) claim() (n int, err error) {
	for ended := true; ended; {
		select {
		case status := <-r.done:
			r.count(status)
		default:
			ended = false
		}
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	// A claim whose answer nobody waits for would keep its deliveries from everybody until the lease is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), claimFor)
	defer cancel()
	list, err := r.ledger.ClaimDeliveries(ctx, claimMax, r.o.Timeout+leaseSpare)
	for i := range list {
		r.running++
		go func() { r.done <- r.send(r.calls, &list[i]) }()
	}
	return len(list), err
}

// await waits until a delivery has ended, the time has come, or the caller wants no more.
func (r *round) await(timer <-chan time.Time) {
	select {
	case status := <-r.done:
		r.count(status)
	case <-timer:
	case <-r.ctx.Done():
	}
}

// finish waits for all deliveries, and gives their count.
func (r *round) finish() Sent {
	for r.running > 0 {
		r.count(<-r.done)
	}
	return r.sent
}

func (r *round) count(status ledger.DeliveryStatus) {
	r.running--
	switch status {
	case ledger.DeliveryDelivered:
		r.sent.Delivered++
	case ledger.DeliveryPending:
		r.sent.Retried++
	case ledger.DeliveryDead:
		r.sent.Dead++
	}
}
