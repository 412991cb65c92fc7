package db_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A migration waits for the writes that are under way.
func TestMigrationWaitsForWrites(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		short := db.Options{BusyWait: 50 * time.Millisecond}
		release := hold(t, d)
		wantIs(t, db.MigratePostgres(t.Context(), dsn, short), db.ErrBusy)
		release()
		must(t, db.MigratePostgres(t.Context(), dsn, db.Options{}))
	})
}

// A write that begins while another process migrates waits, and then finds itself too old.
func TestWritesWaitForAMigration(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{Writers: 2})
		pool := dbtest.Raw(t, dsn)
		other, err := pool.Beginx()
		must(t, err)
		defer other.Rollback()
		_, err = other.Exec(fmt.Sprintf(`
			LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE;
			INSERT INTO schema_migrations (version, name, checksum, applied_at)
			VALUES (%d, 'next.sql', 'x', 1)`, db.SchemaVersion()+1))
		must(t, err)
		done := make(chan error, 2)
		for _, write := range []func(context.Context, func(*db.Tx) error) error{d.Write, d.WriteSnapshot} {
			go func() { done <- write(t.Context(), mark("late", nil)) }()
		}
		eventually(t, func() bool {
			var waiting int
			must(t, pool.Get(&waiting, `SELECT COUNT(*) FROM pg_locks WHERE NOT granted`))
			return waiting == 2
		})
		must(t, other.Commit())
		wantIs(t, answer(t, done), db.ErrNewer)
		wantIs(t, answer(t, done), db.ErrNewer)
		wantMarks(t, d)
	})
}
