package outbox_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/internal/outbox"
	"jobledger/ledger"
)

// Five failures, and then a success: six calls with one id, each signed at its own time.
func TestFailuresThenSuccess(t *testing.T) {
	each(t, func(b *bench) {
		r := b.receive(func(w http.ResponseWriter, _ string, times int) {
			if times <= 5 {
				http.Error(w, "out of order\x00\xff", http.StatusInternalServerError)
			}
		})
		b.add(r.URL)
		var tries []string
		s := b.sender(func(o *outbox.Options) {
			o.Tried = func(tr outbox.Try) { tries = append(tries, fmt.Sprint(tr.Delivery.Status, tr.Delivery.Tries)) }
			o.Schedule = slices.Repeat([]time.Duration{time.Minute}, 6)
		})
		b.settle("j")
		sent := outbox.Sent{}
		for range 6 {
			one, err := s.Once(b.Context())
			b.ok(err)
			sent.Delivered, sent.Retried = sent.Delivered+one.Delivered, sent.Retried+one.Retried
			b.forward(2 * time.Minute)
		}
		if want := (outbox.Sent{Delivered: 1, Retried: 5}); sent != want {
			b.Fatalf("sent %+v, want %+v", sent, want)
		}
		b.same(tries, []string{"pending1", "pending2", "pending3", "pending4", "pending5", "delivered6"})
		b.states("settled:j delivered 6 200")
		b.same(r.got(), slices.Repeat([]string{"settled:j"}, 6))
		stamps := map[string]bool{}
		for _, h := range r.hooks {
			stamps[h.Get("webhook-timestamp")] = true
		}
		if len(stamps) < 2 {
			b.Errorf("all calls have the time of the first")
		}
	})
}

// TestB138PoisonEvent: of three senders and an event that is never taken, the others arrive, those of its
// job too once it is given up, each job's in order; a replay sends it again.
func TestB138PoisonEvent(t *testing.T) {
	each(t, func(b *bench) {
		var healed atomic.Bool
		r := b.receive(func(w http.ResponseWriter, event string, _ int) {
			if event == "settled:j17" && !healed.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		b.add(r.URL)
		want := map[string][]string{}
		for i := range 20 {
			job := fmt.Sprint("j", i)
			b.settle(job)
			b.report(job, ledger.Failed)
			b.report(job, ledger.Canceled)
			want[job] = []string{"settled:" + job, "conflict:" + job + ":1", "conflict:" + job + ":2"}
		}
		var wait sync.WaitGroup
		ctx, stop := context.WithCancel(b.Context())
		for range 3 {
			wait.Go(func() { b.sender().Run(ctx) })
		}
		b.eventually(func() bool {
			waits, err := b.Backlog(b.Context())
			b.ok(err)
			return waits.Pending == 0
		})
		stop()
		wait.Wait()
		got := map[string][]string{}
		for _, event := range r.got() {
			job := strings.Split(event, ":")[1]
			if n := len(got[job]); n == 0 || got[job][n-1] != event {
				got[job] = append(got[job], event)
			}
		}
		for job, events := range want {
			b.same(got[job], events)
		}
		if calls := len(r.got()); calls != 59+6 {
			b.Errorf("%d calls, want 65: each event once, and the one that failed six times", calls)
		}
		dead, err := b.Deliveries(b.Context(), ledger.DeliveryFilter{Status: ledger.DeliveryDead, Limit: 9})
		b.ok(err)
		if len(dead) != 1 || dead[0].Event != "settled:j17" || dead[0].Tries != 6 ||
			dead[0].LastError != "HTTP 500" {
			b.Fatalf("dead: %+v", dead)
		}
		healed.Store(true)
		_, err = b.ReplayEvent(b.Context(), "settled:j17", "")
		b.ok(err)
		b.once(b.sender(), outbox.Sent{Delivered: 1})
	})
}

func (b *bench) eventually(is func() bool) {
	b.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal("waited too long")
		}
	}
}

// A receiver that hangs has a few calls and no more, and holds up neither another receiver nor a
// settlement.
func TestHangingReceiver(t *testing.T) {
	each(t, func(b *bench) {
		release := make(chan bool)
		slow := b.receive(func(http.ResponseWriter, string, int) { <-release })
		fast := b.receive(accept)
		b.add(slow.URL)
		b.add(fast.URL)
		for i := range 10 {
			b.settle(fmt.Sprint("j", i))
		}
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan bool)
		go func() {
			defer close(ended)
			b.sender().Run(ctx)
		}()
		b.eventually(func() bool { return len(fast.got()) >= 10 && len(slow.got()) >= 4 })
		b.settle("more") // while four calls hang
		b.eventually(func() bool { return len(fast.got()) >= 11 })
		if n := len(slow.got()); n != 4 {
			b.Errorf("the slow receiver has %d calls at once", n)
		}
		close(release)
		b.eventually(func() bool { return len(slow.got()) >= 11 })
		stop()
		select {
		case <-ended:
		case <-time.After(patience):
			b.Fatal("the sender goes on")
		}
	})
}

// A call that has no answer in time is a failed try.
func TestTimeout(t *testing.T) {
	each(t, func(b *bench) {
		release := make(chan bool)
		r := b.receive(func(http.ResponseWriter, string, int) { <-release })
		b.Cleanup(func() { close(release) })
		b.add(r.URL)
		b.settle("j")
		b.once(b.sender(func(o *outbox.Options) {
			o.Timeout, o.Schedule = 50*time.Millisecond, outbox.Schedule
		}), outbox.Sent{Retried: 1})
		list := b.states("settled:j pending 1 0")
		if !strings.Contains(list[0].LastError, "no answer in time") {
			b.Errorf("%+v", list[0])
		}
	})
}

// An answer whose status is none of HTTP is a failed try, and is recorded as one without an answer.
func TestNoStatus(t *testing.T) {
	each(t, func(b *bench) {
		r := b.receive(func(w http.ResponseWriter, _ string, _ int) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, err = conn.Write([]byte("HTTP/1.1 050 Odd\r\nContent-Length: 0\r\n\r\n"))
				conn.Close()
			}
			if err != nil {
				b.Error(err)
			}
		})
		b.add(r.URL)
		b.settle("j")
		b.once(b.sender(func(o *outbox.Options) { o.Schedule = outbox.Schedule }), outbox.Sent{Retried: 1})
		if list := b.states("settled:j pending 1 0"); list[0].LastError != "HTTP 50" {
			b.Errorf("%+v", list[0])
		}
	})
}

// A receiver that answers 410 gets nothing more, until somebody enables it.
func TestGone(t *testing.T) {
	each(t, func(b *bench) {
		var back atomic.Bool
		r := b.receive(func(w http.ResponseWriter, _ string, _ int) {
			if !back.Load() {
				w.WriteHeader(http.StatusGone)
			}
		})
		e := b.add(r.URL)
		b.settle("j")
		s := b.sender()
		b.once(s, outbox.Sent{Retried: 1})
		b.settle("k")
		b.once(s, outbox.Sent{})
		list, err := b.Endpoints(b.Context())
		b.ok(err)
		if list[0].DisabledAt == nil || !strings.Contains(list[0].DisabledReason, "410") {
			b.Fatalf("%+v", list)
		}
		back.Store(true)
		_, err = b.EnableEndpoint(b.Context(), e.ID)
		b.ok(err)
		b.once(s, outbox.Sent{Delivered: 1})
		b.states("settled:j delivered 2 200")
		_, err = b.ReplayEvent(b.Context(), "settled:k", "") // it was written while the endpoint was off
		b.ok(err)
		b.once(s, outbox.Sent{Delivered: 1})
	})
}

// An endpoint that asks for time is left alone for that long, all its events.
func TestRetryAfter(t *testing.T) {
	each(t, func(b *bench) {
		r := b.receive(func(w http.ResponseWriter, event string, times int) {
			if event == "settled:j" && times == 1 {
				w.Header().Set("Retry-After", "120")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		b.add(r.URL)
		b.settle("j")
		s := b.sender()
		b.once(s, outbox.Sent{Retried: 1})
		b.settle("k")
		b.forward(60 * time.Second)
		b.once(s, outbox.Sent{})
		b.forward(62 * time.Second)
		b.once(s, outbox.Sent{Delivered: 2})
	})
}

// Two senders on one ledger, in handles of their own: each event arrives once.
func TestTwoSenders(t *testing.T) {
	each(t, func(b *bench) {
		r := b.receive(accept)
		b.add(r.URL)
		for i := range 40 {
			b.settle(fmt.Sprint("j", i))
		}
		other := &bench{T: b.T, dsn: b.dsn}
		other.Ledger = other.open()
		var wait sync.WaitGroup
		sent := make([]outbox.Sent, 2)
		for i, on := range []*bench{b, other} {
			wait.Go(func() {
				var err error
				sent[i], err = on.sender().Once(b.Context())
				if err != nil {
					b.Error(err)
				}
			})
		}
		wait.Wait()
		events := r.got()
		slices.Sort(events)
		if len(events) != 40 || len(slices.Compact(events)) != 40 || sent[0].Delivered+sent[1].Delivered != 40 {
			b.Errorf("%d calls by %+v", len(events), sent)
		}
	})
}

// TestB136WhatIsCommittedIsDelivered: while many settle, whichever transaction commits first, every event
// arrives.
func TestB136WhatIsCommittedIsDelivered(t *testing.T) {
	each(t, func(b *bench) {
		r := b.receive(accept)
		b.add(r.URL)
		ctx, stop := context.WithCancel(b.Context())
		var wait, settling sync.WaitGroup
		for range 2 {
			wait.Go(func() { b.sender().Run(ctx) })
		}
		for w := range 8 {
			settling.Go(func() {
				for i := range 10 {
					b.settle(fmt.Sprintf("j%d-%d", w, i))
				}
			})
		}
		settling.Wait()
		b.eventually(func() bool {
			waits, err := b.Backlog(b.Context())
			b.ok(err)
			return waits.Pending == 0
		})
		stop()
		wait.Wait()
		events := r.got()
		slices.Sort(events)
		if n := len(slices.Compact(slices.Clone(events))); n != 80 || len(events) != 80 {
			b.Errorf("%d calls of %d events, want 80", len(events), n)
		}
	})
}

// What may not be reached is not, and a redirect is an answer like any other.
func TestGuards(t *testing.T) {
	each(t, func(b *bench) {
		r := b.receive(accept)
		from := b.receive(func(w http.ResponseWriter, _ string, _ int) {
			w.Header().Set("Location", r.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		b.add(r.URL)
		b.settle("j")
		b.once(b.sender(func(o *outbox.Options) {
			o.AllowPrivate, o.AllowHTTP, o.Schedule = false, true, outbox.Schedule
		}), outbox.Sent{Retried: 1})
		b.same(r.got(), nil)
		list := b.states("settled:j pending 1 0")
		if !strings.HasPrefix(list[0].LastError, "not called: its address ") {
			b.Errorf("%+v", list[0])
		}
		b.add(from.URL)
		b.settle("k")
		b.once(b.sender(func(o *outbox.Options) { o.Schedule = outbox.Schedule }),
			outbox.Sent{Delivered: 1, Retried: 1})
		b.same(r.got(), []string{"settled:k"})
		b.same(from.got(), []string{"settled:k"})
	})
}
