package db_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

var errInjected = errors.New("injected")

// controls are the statements of the transaction itself, and how the operation under them ends.
var controls = map[string][]struct {
	prefix string
	end    error
}{
	"sqlite": {
		{"BEGIN", nil}, {"SELECT MAX(version)", nil}, {"SAVEPOINT", nil}, {"RELEASE", nil}, {"COMMIT", nil},
		{"ROLLBACK TO", errOwn}, {"RELEASE", errOwn},
	},
	"postgres": {{"BEGIN", nil}, {"SELECT MAX(version)", nil}, {"COMMIT", nil}, {"ROLLBACK", errOwn}},
}

// Whatever call of the transaction itself fails, on either side, the connection is not used again:
// the next operation does not find itself inside the transaction of the last one.
func TestBrokenTransactionsAreThrownAway(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		var w watch
		d := open(t, dsn, db.Options{Intercept: w.intercept})
		var want []string
		controls := controls[d.Engine()]
		fired, rounds := 0, 1000
		for i := range rounds {
			c, side := controls[i%len(controls)], db.When(i/len(controls)%2)
			armed := true
			w.set(func(when db.When, query string) error {
				if !armed || when != side || !strings.HasPrefix(query, c.prefix) {
					return nil
				}
				armed = false
				fired++
				return errInjected
			})
			broken, after := fmt.Sprintf("%04d broken", i), fmt.Sprintf("%04d after", i)
			err := d.Write(t.Context(), mark(broken, c.end))
			switch {
			case c.prefix == "COMMIT":
				wantIs(t, err, db.ErrOutcomeUnknown)
				if side == db.After {
					want = append(want, broken)
				}
			case c.end != nil:
				wantIs(t, err, c.end)
			default:
				wantIs(t, err, errInjected)
			}
			if err := d.Write(t.Context(), mark(after, nil)); err != nil {
				t.Fatalf("after an error at %s (side %d): %v", c.prefix, side, err)
			}
			want = append(want, after)
		}
		wantMarks(t, d, want...)
		if fired != rounds {
			t.Errorf("%d faults fired, want %d", fired, rounds)
		}
	})
}

func TestFailedCommitIsUnknownToAll(t *testing.T) {
	for side, want := range map[db.When][]string{db.Before: nil, db.After: {"a", "b"}} {
		sharing(t, func(t *testing.T, dsn string) {
			var w watch
			d := open(t, dsn, db.Options{Intercept: w.intercept})
			release := hold(t, d)
			w.failCommits(side, 2, 2) // the first is the holder's
			a := queue(t, t.Context(), d, mark("a", nil))
			own := queue(t, t.Context(), d, mark("own", errOwn))
			b := queue(t, t.Context(), d, mark("b", nil))
			release()
			for _, done := range []chan error{a, b} {
				err := answer(t, done)
				wantIs(t, err, db.ErrOutcomeUnknown)
				wantIs(t, err, errInjected)
			}
			if err := answer(t, own); err != errOwn {
				t.Errorf("the operation that failed by itself: %v", err)
			}
			wantMarks(t, d, want...)
			must(t, d.Write(t.Context(), mark("after", nil)))
			wantMarks(t, d, append(want, "after")...)
		})
	}
}

// An operation that was refused for what its neighbour wrote, in a batch whose COMMIT then failed, was
// refused for nothing that anybody will ever see: it runs again. One that was refused before anybody wrote
// is not asked again.
func TestRefusedForNothing(t *testing.T) {
	sharing(t, func(t *testing.T, dsn string) {
		var w watch
		d := open(t, dsn, db.Options{Intercept: w.intercept})
		release := hold(t, d)
		w.failCommits(db.Before, 2, 3) // the first is the holder's
		runs := map[string]int{}
		alone := func(name string) chan error { // writes if nobody has
			return queue(t, t.Context(), d, func(tx *db.Tx) error {
				runs[name]++
				var n int
				if _, err := tx.Get(&n, `SELECT COUNT(*) FROM marks`); err != nil || n > 0 {
					return cmp.Or(err, errOwn)
				}
				return mark(name, nil)(tx)
			})
		}
		first := queue(t, t.Context(), d, mark("first", errOwn))
		a, b, c := alone("a"), alone("b"), alone("c")
		release()
		wantIs(t, answer(t, first), errOwn)
		wantIs(t, answer(t, a), db.ErrOutcomeUnknown)
		wantIs(t, answer(t, b), db.ErrOutcomeUnknown)
		must(t, answer(t, c))
		wantMarks(t, d, "c")
		if runs["a"] != 1 || runs["b"] != 2 || runs["c"] != 3 {
			t.Errorf("runs: %v", runs)
		}
	})
}

// Only the operation under which the transaction broke is answered with the error; the others of
// its batch, before and after it, run again and are written once.
func TestBrokenBatchRunsAgain(t *testing.T) {
	sharing(t, func(t *testing.T, dsn string) {
		var w watch
		d := open(t, dsn, db.Options{Intercept: w.intercept})
		release := hold(t, d)
		savepoints := 0
		w.set(func(when db.When, query string) error {
			if when == db.After && query == "SAVEPOINT operation" {
				if savepoints++; savepoints == 2 {
					return errInjected
				}
			}
			return nil
		})
		a := queue(t, t.Context(), d, mark("a", nil))
		broken := queue(t, t.Context(), d, mark("broken", nil))
		b := queue(t, t.Context(), d, mark("b", nil))
		release()
		must(t, answer(t, a))
		wantIs(t, answer(t, broken), errInjected)
		must(t, answer(t, b))
		wantMarks(t, d, "a", "b")
	})
}

// raw opens a connection of its own, as another program would.
func raw(t *testing.T, path string) *sql.Conn {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	must(t, err)
	t.Cleanup(func() { pool.Close() })
	conn, err := pool.Conn(context.Background())
	must(t, err)
	return conn
}

func execute(t *testing.T, conn *sql.Conn, query string) {
	t.Helper()
	_, err := conn.ExecContext(context.Background(), query)
	must(t, err)
}

func TestBusy(t *testing.T) {
	const wait = 150 * time.Millisecond
	path := dbtest.SQLite(t)
	d := open(t, path, db.Options{BusyWait: wait})
	other := raw(t, path)
	for i := range 3 { // again and again: a refusal must not spoil the connection
		execute(t, other, `BEGIN IMMEDIATE`)
		began := time.Now()
		err := d.Write(t.Context(), func(*db.Tx) error {
			t.Error("an operation ran without the lock")
			return nil
		})
		wantIs(t, err, db.ErrBusy)
		if took := time.Since(began); took < wait || took > wait+5*time.Second {
			t.Errorf("waited %v for the lock, want %v", took, wait)
		}
		if len(marks(t, d)) != i {
			t.Error("a refused operation was written")
		}
		execute(t, other, `ROLLBACK`)
		must(t, d.Write(t.Context(), mark(fmt.Sprint(i), nil)))
	}
	patient := reopen(t, path, db.Options{}) // however late a busy machine lets the lock go
	execute(t, other, `BEGIN IMMEDIATE`)
	waits := queue(t, t.Context(), patient, mark("waits", nil))
	time.Sleep(wait / 5)
	execute(t, other, `COMMIT`)
	must(t, answer(t, waits))
	wantMarks(t, d, "0", "1", "2", "waits")
}

// A handle that cannot make its connection because of another's lock is no worse off than one that has it.
func TestBusyOnTheFirstWrite(t *testing.T) {
	path := dbtest.SQLite(t)
	must(t, open(t, path, db.Options{}).Close())
	d := reopen(t, path, db.Options{BusyWait: 50 * time.Millisecond})
	other := raw(t, path)
	execute(t, other, `BEGIN IMMEDIATE`)
	wantIs(t, d.Write(t.Context(), mark("refused", nil)), db.ErrBusy)
	execute(t, other, `ROLLBACK`)
	must(t, d.Write(t.Context(), mark("written", nil)))
	wantMarks(t, d, "written")
}

func TestMigratedMeanwhile(t *testing.T) {
	path := dbtest.SQLite(t)
	d := open(t, path, db.Options{})
	must(t, d.Write(t.Context(), mark("before", nil)))
	version := db.SchemaVersion() + 1
	other := raw(t, path)
	execute(t, other, fmt.Sprintf(`INSERT INTO schema_migrations (version, name, checksum, applied_at)
		VALUES (%d, 'next.sql', 'x', 1); PRAGMA user_version = %[1]d`, version))
	for range 3 {
		wantIs(t, d.Write(t.Context(), mark("after", nil)), db.ErrNewer)
	}
	wantMarks(t, d, "before")
	execute(t, other, fmt.Sprintf(`DELETE FROM schema_migrations WHERE version = %d`, version))
	must(t, d.Write(t.Context(), mark("back again", nil)))
}
