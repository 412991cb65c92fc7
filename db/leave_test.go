package db_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// leave writes as a caller who leaves while the transaction cannot begin: the caller leaves at once,
// knows that nothing was written, and does not keep Close waiting.
func leave(t *testing.T, d *db.DB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	wantIs(t, d.Write(ctx, mark("left", nil)), context.DeadlineExceeded)
	must(t, d.Close())
	if waited := time.Since(began); waited > 20*time.Second {
		t.Errorf("left after %s", waited)
	}
}

func TestLeavingWhileLocked(t *testing.T) {
	sharing(t, func(t *testing.T, dsn string) {
		other, d := open(t, dsn, db.Options{}), reopen(t, dsn, db.Options{BusyWait: time.Minute})
		release := hold(t, other)
		leave(t, d)
		release()
		wantMarks(t, other)
	})
}

func TestLeavingWithoutAServer(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		if !dbtest.NeedCluster(t) {
			return
		}
		c := dbtest.StartCluster(t)
		dsn := c.Database(t)
		d := open(t, dsn, db.Options{BusyWait: time.Minute})
		must(t, c.Crash())
		leave(t, d)
		must(t, c.Start())
		wantMarks(t, reopen(t, dsn, db.Options{}))
	})
}

// Try undoes the part of an operation that failed, and nothing else of it.
func TestTry(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			must(t, tx.Try(func() error { return mark("kept", nil)(tx) }))
			wantIs(t, tx.Try(func() error { return mark("undone", context.Canceled)(tx) }), context.Canceled)
			return mark("last", nil)(tx)
		}))
		wantMarks(t, d, "kept", "last")
	})
}

// An operation that gets over a part in whose way another transaction was runs again all the same, as
// often as it would without Try. Then what it made of it counts.
func TestTryKeepsNoConflict(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		run := 0
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			run++
			wantIs(t, tx.Try(func() error { return db.Changed(errOwn) }), errOwn)
			return mark(fmt.Sprint("run ", run), nil)(tx)
		}))
		wantMarks(t, d, map[string]string{"sqlite": "run 1", "postgres": "run 3"}[d.Engine()])
	})
}
