package db_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A COMMIT that was told to wait no longer for its standby is not acknowledged: it is there now, and
// would be gone with this server.
func TestCommitWithoutItsStandby(t *testing.T) {
	if !dbtest.NeedCluster(t) {
		return
	}
	c := dbtest.StartCluster(t, "synchronous_standby_names=nobody", "synchronous_commit=local")
	dsn := c.Database(t)
	local := open(t, dsn, db.Options{})
	pool := dbtest.Raw(t, dsn)
	for name, parameter := range map[string]string{"a": "", "b": "&client_min_messages=error"} {
		waits := reopen(t, dsn+"&synchronous_commit=on"+parameter, db.Options{})
		done := queue(t, t.Context(), waits, mark(name, nil))
		eventually(t, func() bool {
			var told int
			must(t, pool.Get(&told, `
				SELECT COUNT(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`))
			return told == 1
		})
		wantIs(t, answer(t, done), db.ErrOutcomeUnknown)
	}
	must(t, local.Write(t.Context(), mark("c", nil)))
	wantMarks(t, local, "a", "b", "c")
}

// Whatever has failed at a COMMIT, it runs again only if the server said that it rolled it back, in whatever
// language.
func TestCommitRunsAgain(t *testing.T) {
	for _, c := range []struct {
		failure pgconn.PgError
		runs    int
	}{
		{pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "40001"}, 2},
		{pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "FATAL", Code: "40001"}, 1},
		{pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "4"}, 1},
	} {
		dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
			var w watch
			d := open(t, dsn, db.Options{Intercept: w.intercept})
			runs := 0
			w.set(func(when db.When, query string) error {
				if when == db.Before && query == "COMMIT" && runs == 1 {
					return &c.failure
				}
				return nil
			})
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				runs++
				return mark("a", nil)(tx)
			})
			if runs != c.runs || errors.Is(err, db.ErrOutcomeUnknown) != (c.runs == 1) {
				t.Errorf("%+v: %d runs, %v", c.failure, runs, err)
			}
		})
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited too long")
		}
	}
}

// A connection that writes is as durable as was asked for: by default it waits for the disk.
func TestDurability(t *testing.T) {
	for _, c := range []struct {
		options db.Options
		want    int
	}{{db.Options{}, 2}, {db.Options{RiskPowerLoss: true}, 1}} {
		d := open(t, dbtest.SQLite(t), c.options)
		got := -1
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Get(&got, `PRAGMA synchronous`)
			return err
		}))
		if got != c.want {
			t.Errorf("%+v: synchronous is %d, want %d", c.options, got, c.want)
		}
	}
}
