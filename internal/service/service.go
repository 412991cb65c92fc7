// Package service runs the server and what works beside it on the same ledger: the sweeper, the poller and
// the sender of events. Several services may work on one ledger.
package service

import (
	"context"
	"net"
	"sync"
	"time"

	"jobledger/internal/outbox"
	"jobledger/internal/poll"
	"jobledger/internal/racelab/scratch"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// Options adjust a service.
type Options struct {
	Server server.Options

	// Poll asks the providers of the server's set how their jobs are.
	Poll bool

	// Deliver sends events to their endpoints.
	Deliver bool

	// AllowPrivate lets polls and events go to this machine and to private networks; AllowHTTP lets events go
	// elsewhere without TLS, and endpoints be added that are so.
	AllowPrivate, AllowHTTP bool
}

// sweepEvery is how often a service sweeps. Nothing depends on it: what is due counts as swept anyway.
const sweepEvery = 30 * time.Second

// Service is a server and what works beside it.
type Service struct {
	server *server.Server
	poller *poll.Poller   // nil if nothing polls
	sender *outbox.Sender // nil if nothing sends
}

// CheckLab says whether the lab could use a server, which would else show only when somebody starts a run.
// Errors: INVALID, of the field.
func CheckLab(ctx context.Context, field, server string) error {
	return scratch.Check(ctx, field, server)
}

// New makes a service for a ledger, which it does not close. [Service.Run] ends it. Errors: INVALID, naming
// the provider, if there is none to poll, or one has an address that would not be called.
func New(l *ledger.Ledger, o Options) (*Service, error) {
	o.Server.AllowHTTP = o.AllowHTTP
	s := &Service{server: server.New(l, o.Server)}
	if o.Poll {
		var err error
		s.poller, err = poll.New(l, o.Server.Providers, poll.Options{
			Log: o.Server.Log, AllowPrivate: o.AllowPrivate, Settled: s.server.CountPolled,
		})
		if err != nil {
			return nil, err
		}
	}
	if o.Deliver {
		s.sender = outbox.New(l, outbox.Options{
			Log: o.Server.Log, AllowPrivate: o.AllowPrivate, AllowHTTP: o.AllowHTTP,
			Tried: func(t outbox.Try) { s.server.CountTry(t.Delivery.Status) },
		})
	}
	return s, nil
}

// Run answers what comes in through a listener, which it closes, and works beside that, until ctx ends. Then
// it finishes what it has accepted, in bounded time. Its error is nil if every request was answered.
func (s *Service) Run(ctx context.Context, listener net.Listener) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var beside sync.WaitGroup
	beside.Go(func() { s.server.Sweep(ctx, sweepEvery) })
	if s.sender != nil {
		defer s.sender.Close()
		beside.Go(func() { s.sender.Run(ctx) })
	}
	if s.poller != nil {
		beside.Go(func() { s.poller.Run(ctx) })
	}
	err := s.server.Serve(ctx, listener)
	end()
	beside.Wait()
	return err
}
