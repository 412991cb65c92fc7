package db_test

import (
	"context"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A caller who leaves while another process has the lock leaves at once, knows that nothing was
// written, and does not keep Close waiting.
func TestLeavingWhileLocked(t *testing.T) {
	sharing(t, func(t *testing.T, dsn string) {
		other, d := open(t, dsn, db.Options{}), reopen(t, dsn, db.Options{BusyWait: time.Minute})
		release := hold(t, other)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		wantIs(t, d.Write(ctx, mark("left", nil)), context.DeadlineExceeded)
		must(t, d.Close())
		if waited := time.Since(began); waited > 5*time.Second {
			t.Errorf("left after %s", waited)
		}
		release()
		wantMarks(t, other)
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
