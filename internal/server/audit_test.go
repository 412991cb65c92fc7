package server_test

import (
	"database/sql"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // to hold a lock of its own

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// TestOneAuditAtATime: while an audit waits for a lock another is refused at once, and may be tried again;
// everything else is answered, and so is an audit that comes later.
func TestOneAuditAtATime(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, server.Options{})
		s.grant("alice", "k", "7")
		pool, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		lock, err := pool.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lock.ExecContext(t.Context(), `LOCK TABLE reports IN ACCESS EXCLUSIVE MODE`); err != nil {
			t.Fatal(err)
		}
		first := make(chan reply, 1)
		go func() {
			r, err := s.try("GET", "/v1/audit", "")
			if err != nil {
				t.Error(err)
			}
			first <- r
		}()
		for began, waiting := time.Now(), 0; waiting == 0; time.Sleep(2 * time.Millisecond) {
			const query = `SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND relation = 'reports'::regclass`
			if err := pool.QueryRowContext(t.Context(), query).Scan(&waiting); err != nil {
				t.Fatal(err)
			}
			if time.Since(began) > 9*time.Second {
				t.Fatal("no audit waits for the lock")
			}
		}
		r := s.refused(503, ledger.Busy, "another audit is under way", "GET", "/v1/audit", "")
		if after := r.header.Get("Retry-After"); after != "1" || r.member(t, "retryable") != true {
			t.Errorf("Retry-After: %q, %s", after, r.text)
		}
		s.must("GET", "/v1/owners/alice/balance", "")
		if err := lock.Rollback(); err != nil {
			t.Fatal(err)
		}
		if r := <-first; r.status != 200 || r.member(t, "ok") != true {
			t.Errorf("the first: %d %s", r.status, r.text)
		}
		s.must("GET", "/v1/audit", "")
	})
}

// TestAuditsAtOnce is the same on SQLite, where nothing locks a reader out, with audits that take a while: of
// eight at once some are made and the others are refused.
func TestAuditsAtOnce(t *testing.T) {
	s := sqlite(t)
	past := ledger.PreloadParams{Owner: "alice", Jobs: 5000, Cost: 7, Mode: ledger.ModeHold}
	if _, err := s.ledger.Preload(t.Context(), past); err != nil {
		t.Fatal(err)
	}
	const callers = 8
	var group sync.WaitGroup
	answers := make(chan reply, callers)
	for range callers {
		group.Go(func() {
			r, err := s.try("GET", "/v1/audit", "")
			if err != nil {
				t.Error(err)
			}
			answers <- r
		})
	}
	group.Wait()
	close(answers)
	made, refused := 0, 0
	for r := range answers {
		switch {
		case r.status == 200 && r.member(t, "ok") == true:
			made++
		case r.status == 503 && r.member(t, "code") == "BUSY" && r.header.Get("Retry-After") == "1":
			refused++
		default:
			t.Errorf("got %d %s", r.status, r.text)
		}
	}
	if made == 0 || refused == 0 {
		t.Errorf("%d audits were made, %d refused", made, refused)
	}
	s.must("GET", "/v1/audit", "")
}
