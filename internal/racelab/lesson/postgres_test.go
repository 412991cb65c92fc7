package lesson

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"jobledger/db/dbtest"
	"jobledger/internal/racelab/scratch"
	"jobledger/ledger"
)

// TestScratchOnServer: the scratch database is marked while it is there, and gone after a run, however
// that ended; the database that the URL names stays as it was.
func TestScratchOnServer(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		named := dbtest.Raw(t, dsn)
		before := catalog(t, named)
		s, err := makeDatabase(t.Context(), &postgresEngine, dsn)
		if err != nil {
			t.Fatal(err)
		}
		var name, note string
		const look = `SELECT current_database(), note FROM lab_scratch`
		err = s.pool.QueryRowContext(t.Context(), look).Scan(&name, &note)
		if err != nil || !strings.HasPrefix(name, scratch.Prefix) || !strings.Contains(note, "scratch") {
			t.Errorf("database %q, note %q: %v", name, note, err)
		}
		if n := scratches(t, named, name); n != 1 {
			t.Errorf("%d databases %s", n, name)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
		l, _ := Find("lost-update")
		if r, err := l.Run(t.Context(), Options{Server: dsn}); err != nil || r.Engine != Postgres {
			t.Errorf("on %s: %v", r.Engine, err)
		}
		endless := scene(0, "A B", "A BEGIN\nA UPDATE n SET x = 1\nB UPDATE n SET x = 2")
		if _, err := endless.Run(t.Context(), Options{Server: dsn, Fixed: true}); err == nil {
			t.Error("a lesson that does not end has a result")
		}
		if n := scratches(t, named, scratch.Prefix+"%"); n != 0 {
			t.Errorf("%d scratch databases are left", n)
		}
		if after := catalog(t, named); after != before {
			t.Errorf("the catalog was\n%s\nand is\n%s", before, after)
		}
	})
}

// TestStoppedOnServer: a run that is stopped while one actor works and another waits leaves nothing.
func TestStoppedOnServer(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		named := dbtest.Raw(t, dsn)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			for asleep := 0; asleep == 0 && ctx.Err() == nil; time.Sleep(lookPause) {
				_ = named.Get(&asleep, `SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`)
			}
			stop()
		}()
		sleepy := scene(0, "A B", `
A BEGIN
A UPDATE n SET x = 1
B UPDATE n SET x = 2
A UPDATE n SET x = 1 WHERE CAST(pg_sleep(60) AS TEXT) = ''`)
		if _, err := sleepy.Run(ctx, Options{Server: dsn, Fixed: true}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if n := scratches(t, named, scratch.Prefix+"%"); n != 0 {
			t.Errorf("%d scratch databases are left", n)
		}
	})
}

// scratches counts the databases on a server whose names are like a pattern.
func scratches(t *testing.T, server *sqlx.DB, pattern string) (n int) {
	t.Helper()
	if err := server.Get(&n, `SELECT COUNT(*) FROM pg_database WHERE datname LIKE $1`, pattern); err != nil {
		t.Error(err)
	}
	return n
}

// catalog is all tables of a database, with their rows' places: any change shows.
func catalog(t *testing.T, pool *sqlx.DB) string {
	t.Helper()
	var lines []string
	err := pool.Select(&lines, `
		SELECT n.nspname || '.' || c.relname || ' ' || pg_relation_filenode(c.oid)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname NOT LIKE 'pg\_%' AND c.relkind = 'r' ORDER BY 1`)
	if err != nil || len(lines) == 0 {
		t.Fatalf("%d tables: %v", len(lines), err)
	}
	return strings.Join(lines, "\n")
}

// TestServerThatCannot: one clear line that names the flag, and never a password.
func TestServerThatCannot(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		dbtest.Exec(t, dsn, `DROP ROLE IF EXISTS lab_guest`, `CREATE ROLE lab_guest LOGIN`)
		defer dbtest.Exec(t, dsn, `DROP ROLE lab_guest`)
		l, _ := Find("lost-update")
		upgrade, _ := Find("deferred-upgrade")
		for _, c := range []struct {
			lesson       Lesson
			server, want string
		}{
			{upgrade, dsn, `^db: deferred-upgrade is about sqlite: leave --db out$`},
			{l, "postgres://u:secret@127.0.0.1:1/x?sslmode=maybe", `^db: it is not a PostgreSQL URL that can be used`},
			{l, "postgres://u:secret@127.0.0.1:1/x", `^db: the server would not create a scratch database: .*refused`},
			{l, strings.Replace(dsn, "//postgres@", "//lab_guest@", 1),
				`^db: the server would not create a scratch database: permission denied to create database$`},
		} {
			_, err := c.lesson.Run(t.Context(), Options{Server: c.server})
			e, ok := errors.AsType[*ledger.Error](err)
			if !ok || e.Code != ledger.Invalid || e.Field != "db" || !matches(c.want, err) ||
				strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", c.server, err)
			}
		}
	})
}
