package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/outbox"
	"jobledger/ledger"
)

// A sender that is told to end while it claims sends what it has claimed, and claims no more.
func TestEndsWhileItClaims(t *testing.T) {
	each(t, func(b *bench) {
		b.add(b.receive(accept).URL)
		ctx, stop := context.WithCancel(b.Context())
		defer stop()
		var claiming atomic.Bool
		l, err := ledger.Open(b.Context(), b.dsn, ledger.Options{Clock: func() time.Time {
			if claiming.Load() {
				stop()
			}
			return b.now()
		}})
		b.ok(err)
		defer l.Close()
		b.settle("j")
		s := outbox.New(l, outbox.Options{AllowPrivate: true, Timeout: time.Minute, Clock: b.now})
		defer s.Close()
		claiming.Store(true)
		if sent := s.Run(ctx); sent != (outbox.Sent{Delivered: 1}) {
			b.Errorf("sent %+v", sent)
		}
		b.states("settled:j delivered 1 204")
		b.settle("k")
		if sent, err := s.Once(ctx); !errors.Is(err, context.Canceled) || sent != (outbox.Sent{}) {
			b.Errorf("sent %+v, %v", sent, err)
		}
	})
}

// Once tells what it cannot do; Run goes on until it can.
func TestLedgerIsAway(t *testing.T) {
	each(t, func(b *bench) {
		r := b.receive(accept)
		b.add(r.URL)
		b.settle("j")
		raw, err := dbtest.OpenRaw(b.dsn)
		b.ok(err)
		defer raw.Close()
		rename := func(from, to string) {
			b.Helper()
			_, err := raw.ExecContext(b.Context(), `ALTER TABLE `+from+` RENAME TO `+to)
			b.ok(err)
		}
		rename("endpoints", "away")
		if sent, err := b.sender().Once(b.Context()); err == nil {
			b.Errorf("nothing is wrong, and %+v", sent)
		}
		log := &lines{}
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		running.Go(func() {
			b.sender(func(o *outbox.Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) }).Run(ctx)
		})
		b.eventually(func() bool { return log.n.Load() >= 2 })
		rename("away", "endpoints")
		b.eventually(func() bool { return len(r.got()) > 0 })
		stop()
		running.Wait()
		b.states("settled:j delivered 1 204")
	})
}

// lines counts what is logged.
type lines struct{ n atomic.Int64 }

func (l *lines) Write(p []byte) (int, error) { l.n.Add(1); return len(p), nil }
