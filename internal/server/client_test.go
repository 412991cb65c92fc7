package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// TestSameRequestAtOnce: of many clients that send the same write at the same moment, one does it and all
// others get its answer again.
func TestSameRequestAtOnce(t *testing.T) {
	const clients = 32
	dbtest.Each(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, server.Options{})
		s.grant("alice", "k0", "1000")
		for path, body := range map[string]string{
			"/v1/grants":      `{"owner":"alice","amount":5,"key":"k1"}`,
			"/v1/jobs":        `{"id":"j1","owner":"alice","cost":7}`,
			"/v1/revocations": `{"owner":"alice","amount":3,"key":"r1","reason":"x"}`,
		} {
			var mutex sync.Mutex
			first := 0
			var group sync.WaitGroup
			for range clients {
				group.Go(func() {
					r, err := s.try("POST", path, body)
					mutex.Lock()
					defer mutex.Unlock()
					if err != nil || r.status != 201 {
						t.Errorf("%s: %d %s, %v", path, r.status, r.text, err)
					} else if !strings.Contains(r.text, `"replayed":true`) {
						first++
					}
				})
			}
			group.Wait()
			if first != 1 {
				t.Errorf("%s: %d of %d clients did it", path, first, clients)
			}
		}
		b := s.must("GET", "/v1/owners/alice/balance", "")
		if b.member(t, "available") != 995.0 || b.member(t, "held") != 7.0 || b.member(t, "expired") != 3.0 {
			t.Errorf("got %s", b.text)
		}
	})
}

// TestClientLeaves: who leaves before the answer stops nobody else, and its request is done or not, never
// half: the same request again tells.
func TestClientLeaves(t *testing.T) {
	dsn := dbtest.SQLite(t)
	s := start(t, dsn, server.Options{})
	s.grant("alice", "k1", "1000")
	release, err := dbtest.Lock(dsn)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/jobs",
			strings.NewReader(fmt.Sprintf(`{"id":"j%d","owner":"alice","cost":7}`, n)))
		if err != nil {
			t.Fatal(err)
		}
		if response, err := s.client.Do(r); err == nil {
			response.Body.Close()
			t.Errorf("job %d was answered under a lock: %s", n, response.Status)
		}
		cancel()
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		s.must("POST", "/v1/jobs", fmt.Sprintf(`{"id":"j%d","owner":"alice","cost":7}`, n))
	}
	if held := s.must("GET", "/v1/owners/alice/balance", "").member(t, "held"); held != 35.0 {
		t.Errorf("%v are held for 5 jobs of 7", held)
	}
	s.must("GET", "/v1/audit", "")
}

// TestBusyLedger: a lock that cannot be had in time is BUSY, with the time to wait, and nothing is written.
func TestBusyLedger(t *testing.T) {
	dsn := dbtest.SQLite(t)
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{BusyWait: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, l, server.Options{})
	s.grant("alice", "k1", "1000")
	release, err := dbtest.Lock(dsn)
	if err != nil {
		t.Fatal(err)
	}
	r := s.refused(503, ledger.Busy, "", "POST", "/v1/jobs", `{"id":"j1","owner":"alice","cost":7}`)
	if r.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", r.header.Get("Retry-After"))
	}
	s.must("GET", "/readyz", "")
	if err := release(); err != nil {
		t.Fatal(err)
	}
	s.refused(404, ledger.NotFound, "j1", "GET", "/v1/jobs/j1", "")
}

// TestSlowClient: who sends the head of a request without end is cut off, and holds up nobody.
func TestSlowClient(t *testing.T) {
	s := sqlite(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX: "); err != nil {
		t.Fatal(err)
	}
	s.must("GET", "/v1/jobs", "")
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection is still open: %v", err)
	}
}
