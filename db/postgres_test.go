package db_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A database that is not ours to open is refused in one line that does not tell the password.
func TestPostgresRefusals(t *testing.T) {
	newer := fmt.Sprintf(`INSERT INTO schema_migrations VALUES (%d, 'next', 'x', 1)`, db.SchemaVersion()+1)
	for _, c := range []struct {
		name, damage   string
		kind           error
		open, creation string // parts of what the two say; creation "": it succeeds
	}{
		{"empty", `SELECT 1`, db.ErrNoLedger, "create one with init", ""},
		{"foreign migrations", `CREATE TABLE schema_migrations (version BIGINT, dirty BOOLEAN);
			INSERT INTO schema_migrations VALUES (1, false)`, db.ErrNoLedger,
			"another program's", "another program's"},
		{"empty migrations", `CREATE TABLE schema_migrations (version BIGINT)`, db.ErrNoLedger,
			"another program's", "another program's"},
		{"our names", `CREATE TABLE jobs (id BIGINT)`, db.ErrNoLedger,
			"create one with init", `"jobs" already exists`},
		{"no schema", `DROP SCHEMA public CASCADE`, db.ErrNoLedger, "search_path", "search_path"},
		{"newer", newer, db.ErrNewer, "use a newer jobledger", "use a newer jobledger"},
		{"changed", `UPDATE schema_migrations SET checksum = 'x'`, db.ErrNoLedger, "not the one", "not the one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !dbtest.NeedPostgres(t) {
				return
			}
			dsn := dbtest.EmptyPostgres(t)
			if strings.Contains(c.open, "newer") || c.name == "changed" {
				dsn = dbtest.Postgres(t)
			}
			dbtest.Exec(t, dsn, c.damage)
			before := catalog(t, dsn, `SELECT relname::text FROM pg_class`)
			wantRefusal(t, dsn, c.kind, c.open, func(dsn string) error {
				_, err := db.Open(t.Context(), dsn, db.Options{})
				return err
			})
			if c.creation == "" {
				return
			}
			wantRefusal(t, dsn, c.kind, c.creation, func(dsn string) error {
				_, err := db.Create(t.Context(), dsn, db.Options{})
				return err
			})
			if after := catalog(t, dsn, `SELECT relname::text FROM pg_class`); !slices.Equal(before, after) {
				t.Error("a refusal changed the database")
			}
		})
	}
}

const password = "s3cret-word"

func wantRefusal(t *testing.T, dsn string, kind error, part string, try func(dsn string) error) {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
	u.User = url.UserPassword("postgres", password)
	err = try(u.String())
	if !errors.Is(err, kind) || !strings.Contains(fmt.Sprint(err), part) {
		t.Errorf("error %v, want %v with %q", err, kind, part)
	}
	if text := fmt.Sprint(err); strings.Contains(text, password) || strings.Contains(text, "\n") {
		t.Errorf("says too much: %q", text)
	}
}

// Who may not read what is there is not told to create it.
func TestPostgresForStrangers(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		for _, try := range []func(dsn string) error{
			func(dsn string) error { _, err := db.Open(t.Context(), dsn, db.Options{}); return err },
			func(dsn string) error { _, err := db.Create(t.Context(), dsn, db.Options{}); return err },
		} {
			wantRefusal(t, dsn+"&role=pg_monitor", db.ErrReadOnly, "the role pg_monitor may not read", try)
		}
	})
}

func TestPostgresThatCannotBeReached(t *testing.T) {
	for _, c := range []struct {
		dsn  string
		kind error
	}{
		{"postgres://127.0.0.1:1/x", db.ErrBusy},
		{"postgres://nobody.invalid/x", db.ErrBusy},
		{"postgres://127.0.0.1/x?sslmode=perhaps", db.ErrNoLedger},
		{"postgresql://127.0.0.1:port/x", db.ErrNoLedger},
	} {
		o := db.Options{BusyWait: 100 * time.Millisecond}
		_, err := db.Open(t.Context(), strings.Replace(c.dsn, "://", "://u:"+password+"@", 1), o)
		text := fmt.Sprint(err)
		if !errors.Is(err, c.kind) || strings.Contains(text, password) || strings.Contains(text, "\n") {
			t.Errorf("%s: %v, want %v", c.dsn, err, c.kind)
		}
	}
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		dsn += "&dbname=jobledger_test_nowhere"
		wantRefusal(t, dsn, db.ErrNoLedger, "does not exist", func(dsn string) error {
			_, err := db.Open(t.Context(), dsn, db.Options{})
			return err
		})
	})
}

// Whatever the server's default, a write is READ COMMITTED and a read one snapshot that cannot write.
func TestIsolation(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		dbtest.SetDefault(t, dsn, "default_transaction_isolation", "serializable")
		dbtest.SetDefault(t, dsn, "default_transaction_read_only", "on")
		d := reopen(t, dsn, db.Options{})
		look := func(want string) func(*db.Tx) error {
			return func(tx *db.Tx) error {
				var got string
				_, err := tx.Get(&got, `
					SELECT current_setting('transaction_isolation') || ', read only '
					       || current_setting('transaction_read_only')`)
				if got != want {
					t.Errorf("%q, want %q", got, want)
				}
				return err
			}
		}
		must(t, d.Write(t.Context(), look("read committed, read only off")))
		must(t, d.WriteSnapshot(t.Context(), look("repeatable read, read only off")))
		must(t, d.Read(t.Context(), look("repeatable read, read only on")))
	})
}

// The bounds are those of each transaction, and none is left to the session: another may share it.
func TestBounds(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		var sessions []*pgx.Conn
		d := reopen(t, dsn, db.Options{BusyWait: 200 * time.Millisecond, Wrap: func(c driver.Conn) driver.Conn {
			sessions = append(sessions, c.(interface{ Conn() *pgx.Conn }).Conn())
			return c
		}})
		const bounds = `
			SELECT current_setting('lock_timeout') || ' '
			       || current_setting('idle_in_transaction_session_timeout')`
		look := func(want string) func(*db.Tx) error {
			return func(tx *db.Tx) error {
				var got string
				_, err := tx.Get(&got, bounds)
				if got != want {
					t.Errorf("%q, want %q", got, want)
				}
				return err
			}
		}
		must(t, d.Write(t.Context(), look("201ms 1min")))
		must(t, d.WriteSnapshot(t.Context(), look("201ms 0")))
		must(t, d.Read(t.Context(), look("201ms 0")))
		for _, s := range sessions {
			var got string
			if err := s.QueryRow(t.Context(), bounds).Scan(&got); err != nil || got != "0 0" {
				t.Errorf("left to the session: %q, %v", got, err)
			}
		}
		if len(sessions) != 2 {
			t.Errorf("%d sessions, want one that reads and one that writes", len(sessions))
		}
	})
}

// Two operations that lock the same rows in opposite orders: the server breaks the deadlock, and the one
// that it chose runs again.
func TestDeadlockRunsAgain(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{Writers: 2})
		must(t, d.Write(t.Context(), mark("a", nil)))
		must(t, d.Write(t.Context(), mark("b", nil)))
		both := make(chan bool, 2)
		runs := make(chan bool, 10)
		cross := func(first, second string) func(*db.Tx) error {
			arrived := false
			return func(tx *db.Tx) error {
				runs <- true
				if _, err := tx.Lock(`SELECT 1 FROM marks WHERE name = ?`, first); err != nil {
					return err
				}
				if !arrived { // each waits once until the other has its first lock
					arrived = true
					both <- true
					for len(both) < 2 {
						time.Sleep(time.Millisecond)
					}
				}
				_, err := tx.Lock(`SELECT 1 FROM marks WHERE name = ?`, second)
				return err
			}
		}
		done := make(chan error, 2)
		go func() { done <- d.Write(t.Context(), cross("a", "b")) }()
		go func() { done <- d.Write(t.Context(), cross("b", "a")) }()
		must(t, answer(t, done))
		must(t, answer(t, done))
		if len(runs) < 3 {
			t.Errorf("%d runs: there was no deadlock", len(runs))
		}
	})
}

// A row that another program keeps locked is waited for no longer than the bound, and then it is busy.
func TestBusyRow(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{BusyWait: 200 * time.Millisecond})
		must(t, d.Write(t.Context(), mark("a", nil)))
		other, err := dbtest.Raw(t, dsn).Beginx()
		must(t, err)
		_, err = other.Exec(`UPDATE marks SET name = name`)
		must(t, err)
		lock := func(tx *db.Tx) error {
			_, err := tx.Lock(`SELECT 1 FROM marks WHERE name = ?`, "a")
			return err
		}
		wantIs(t, d.Write(t.Context(), lock), db.ErrBusy)
		must(t, other.Rollback())
		must(t, d.Write(t.Context(), lock))
	})
}

func TestNamesHideSecrets(t *testing.T) {
	for dsn, want := range map[string]string{
		"ledger.db": "ledger.db",
		"postgres://u:" + password + "@h:5433/d?password=" + password: "postgres://u@h:5433/d",
		"postgresql://h,i/d?sslpassword=" + password + "#x":           "postgresql://h,i/d",
		"postgres://u:" + password + "%zz@h/d":                        "the PostgreSQL URL",
	} {
		if got := db.Name(dsn); got != want {
			t.Errorf("%s is shown as %s, want %s", dsn, got, want)
		}
	}
}
