package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// Between the rounds of a bounded sweep, a due lot that waits for its turn is no fault.
func TestAuditBetweenSweeps(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for i := range 5 {
			b.give(fmt.Sprint("g", i), 10, until(time.Duration(5-i)*time.Minute))
		}
		b.at(time.Hour)
		for range 5 {
			r, err := b.Sweep(b.Context(), 1)
			b.ok(err)
			if r.ExpiredLots != 1 {
				b.Fatalf("sweep: %+v", r)
			}
			b.audit()
		}
	})
}

// A job and an owner of which the ledger contradicts itself are named and left alone, and do not keep
// the sweep from the others.
func TestSweepPassesContradictions(t *testing.T) {
	eachBrokenWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		b.give("l1", 10, ofOwner("odd"), until(time.Minute))
		b.give("l2", 10, ofOwner("other"), until(time.Minute))
		for _, id := range []string{"bad", "good"} {
			p := ledger.JobParams{ID: id, Owner: "demo", Cost: 3, Deadline: on(time.Minute)}
			_, err := b.CreateJob(b.Context(), p)
			b.ok(err)
		}
		b.exec(`INSERT INTO entries SELECT 'x', 'job-refund:bad', owner, 99, 'refund', amount, job_id,
			available_after, held_after, used_after, expired_after, reason, metadata, occurred_at, recorded_at, hash
			FROM entries WHERE event_key = 'job-hold:bad'`,
			`UPDATE balances SET available = 5 WHERE owner = 'odd'`)
		b.at(time.Hour)
		for round := range 2 {
			r, err := b.Sweep(b.Context(), 1)
			b.ok(err)
			if len(r.Inconsistent) == 0 || !strings.Contains(r.Inconsistent[0], `"bad"`) {
				b.Fatalf("sweep: %+v", r)
			}
			if round == 1 && r.More { // what is left is contradictory: to sweep until there is no more must end
				b.Fatalf("sweep again: %+v", r)
			}
		}
		r, err := b.Sweep(b.Context(), 100)
		b.ok(err)
		if r.TimedOut != 1 || len(r.Inconsistent) != 2 || r.More {
			b.Fatalf("sweep: %+v", r)
		}
		b.same(b.query(`SELECT id || ' ' || status FROM jobs ORDER BY id`),
			[]string{"bad pending", "good timed_out"})
		b.same(b.query(`SELECT owner || ' ' || available FROM lots WHERE owner <> 'demo' ORDER BY owner`),
			[]string{"odd 10", "other 0"})
	})
}

// What becomes due while a sweep waits for what it found is left to the next one, and what ends
// meanwhile is left alone, without a report against it.
func TestSweepKeepsToWhatItFound(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		b := newWorkbench(t, dsn)
		due := func(id, owner string) {
			b.give(id, 5, ofOwner(owner))
			p := ledger.JobParams{ID: id, Owner: owner, Cost: 5, Deadline: on(0)}
			_, err := b.CreateJob(b.Context(), p)
			b.ok(err)
		}
		due("swept", "one")
		due("ended", "two")
		began, failed := false, error(nil)
		r, err := b.beside(func(query string) {
			if !began && strings.HasPrefix(query, "SELECT 1 FROM jobs") {
				began = true
				due("later", "three")
				_, failed = b.report("ended", ledger.Completed)
			}
		}).Sweep(t.Context(), 2)
		b.ok(errors.Join(err, failed))
		if r.TimedOut != 1 || !r.More {
			t.Errorf("the sweep: %+v", r)
		}
		b.same(b.query(`SELECT id || ' ' || status FROM jobs ORDER BY id`),
			[]string{"ended completed", "later pending", "swept timed_out"})
		b.evidence("ended", "callback completed won 1", "job.completed")
		b.audit()
	})
}

// The tables refuse to lose or change evidence, and to end a job without a settlement.
func TestTablesKeepWhatHappened(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		b.ok(b.create("j", 5, ledger.ModeHold))
		b.submit("j", ledger.SubmissionAccepted)
		b.settle("won failed 5 0", "j", ledger.Failed)
		b.ok(b.create("open", 5, ledger.ModeCharge))
		b.refuses(
			`DELETE FROM reports`, `UPDATE reports SET verdict = 'conflict'`, `UPDATE reports SET count = count`,
			`DELETE FROM attempts`, `UPDATE attempts SET marked_at = 0`, `UPDATE entries SET amount = 1`,
			`DELETE FROM entries`, `DELETE FROM postings`, `UPDATE events SET payload = '{}'`, `DELETE FROM jobs`,
			`UPDATE jobs SET status = 'failed' WHERE id = 'open'`, `UPDATE jobs SET cost = 1 WHERE id = 'open'`,
			`UPDATE jobs SET settled_cost = 1 WHERE id = 'j'`, `UPDATE jobs SET imported = 1 WHERE id = 'open'`,
			`DELETE FROM lots`, `DELETE FROM balances`)
	})
}

// A page begins after an entry of its own list, never after one of another owner.
func TestEntriesAfterAnother(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g1", 10)
		b.give("g2", 10)
		b.give("g3", 10, ofOwner("other"))
		list, err := b.Entries(b.Context(), ledger.EntryFilter{Owner: "demo", Limit: 10})
		b.ok(err)
		_, err = b.Entries(b.Context(), ledger.EntryFilter{Owner: "other", After: list[1].ID, Limit: 10})
		b.fails(err, ledger.NotFound)
		list, err = b.Entries(b.Context(), ledger.EntryFilter{Owner: "demo", After: list[0].ID, Limit: 10})
		b.ok(err)
		if len(list) != 1 || list[0].Seq != 2 {
			b.Fatalf("after the first: %+v", list)
		}
	})
}

// Callers that wait at the same time share commits; one lonely caller commits each time.
func TestGroupCommit(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		dsn := dbtest.SQLite(t)
		var commits atomic.Int64
		l, err := ledger.Open(t.Context(), dsn, ledger.Options{Intercept: func(when db.When, query string) error {
			if when == db.After && query == "COMMIT" {
				commits.Add(1)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		grant := func(i int) {
			p := ledger.GrantParams{Owner: "demo", Amount: 1, Key: fmt.Sprint(commits.Load(), "-", i)}
			if _, err := l.Grant(t.Context(), p); err != nil {
				t.Error(err)
			}
		}
		inParallel(1, 20, grant)
		if n := commits.Swap(0); n != 20 {
			t.Errorf("one caller: %d commits for 20 grants", n)
		}
		inParallel(64, 1280, grant)
		if n := commits.Load(); n > 1280/8 {
			t.Errorf("64 callers: %d commits for 1280 grants, want at most %d", n, 1280/8)
		}
	})
}
