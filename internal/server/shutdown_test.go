package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// TestShutdownUnderLoad: a server that is told to end answers all that it has accepted, refuses the rest,
// and what it acknowledged is in the ledger.
func TestShutdownUnderLoad(t *testing.T) {
	s := sqlite(t)
	s.grant("alice", "k1", "1000000")
	var acknowledged sync.Map
	var made atomic.Int64
	var clients sync.WaitGroup
	for client := range 16 {
		clients.Go(func() {
			for n := range 1_000_000 {
				id := fmt.Sprintf("j%d-%d", client, n)
				r, err := s.try("POST", "/v1/jobs", `{"id":"`+id+`","owner":"alice","cost":1}`)
				switch {
				case err != nil:
					return // the server is gone
				case r.status == 201:
					acknowledged.Store(id, true)
					made.Add(1)
				case r.status != 503:
					t.Errorf("%s: got %d %s", id, r.status, r.text)
				}
			}
		})
	}
	for made.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	s.stop()
	clients.Wait()
	acknowledged.Range(func(id, _ any) bool {
		if _, err := s.ledger.Job(t.Context(), id.(string)); err != nil {
			t.Errorf("%v was acknowledged: %v", id, err)
		}
		return true
	})
	jobs := int64(0)
	for after := ""; ; {
		page, err := s.ledger.Jobs(t.Context(), ledger.JobFilter{After: after, Limit: ledger.PageMax})
		if err != nil {
			t.Fatal(err)
		}
		if jobs += int64(len(page)); len(page) < ledger.PageMax {
			break
		}
		after = page[len(page)-1].ID
	}
	if jobs != made.Load() {
		t.Errorf("there are %d jobs, and only %d were acknowledged", jobs, made.Load())
	}
}

// TestSweep: a server sweeps by itself, again and again.
func TestSweep(t *testing.T) {
	s := sqlite(t)
	s.grant("alice", "k1", "100")
	h := server.New(s.ledger, server.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var sweeper sync.WaitGroup
	sweeper.Go(func() { h.Sweep(ctx, 10*time.Millisecond) })
	for _, id := range []string{"j1", "j2"} {
		s.must("POST", "/v1/jobs", `{"id":"`+id+`","owner":"alice","cost":1,"deadline":"1ms"}`)
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			status := s.must("GET", "/v1/jobs/"+id, "").member(t, "job", "status")
			if status == "timed_out" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is %v", id, status)
			}
		}
	}
	cancel()
	sweeper.Wait()
}

// TestShutdownIsBounded: a request that cannot be finished within the time is refused, and tells so.
func TestShutdownIsBounded(t *testing.T) {
	dsn := dbtest.SQLite(t)
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{BusyWait: time.Hour}) // nothing else ends the request
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, l, server.Options{Grace: 300 * time.Millisecond})
	s.grant("alice", "k1", "100")
	release, err := dbtest.Lock(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	}()
	in, waiting := make(chan bool), make(chan reply, 1)
	s.client.Transport = &announced{s.client.Transport, in}
	go func() {
		r, err := s.try("POST", "/v1/jobs", `{"id":"j1","owner":"alice","cost":1}`)
		if err != nil {
			t.Error(err)
		}
		waiting <- r
	}()
	<-in
	s.stop()
	r := <-waiting
	if code := r.member(t, "code"); r.status != 503 ||
		(code != string(ledger.Busy) && code != string(ledger.OutcomeUnknown)) {
		t.Errorf("got %d %s", r.status, r.text)
	}
}

// announced closes a channel when the server reads the body of the request: it has taken it in then.
type announced struct {
	http.RoundTripper
	in chan bool
}

func (a *announced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got100Continue: func() { close(a.in) },
	}))
	r.Header.Set("Expect", "100-continue")
	return a.RoundTripper.RoundTrip(r)
}
