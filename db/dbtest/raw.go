package dbtest

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
)

// OpenRaw opens a database as another program would, one that knows nothing of the rules: without
// foreign keys and, on PostgreSQL, without the triggers. A SQLite file is not created.
func OpenRaw(dsn string) (*sqlx.DB, error) {
	if isPostgres(dsn) {
		return sqlx.Open("pgx", with(dsn, "session_replication_role", "replica"))
	}
	return openSQLite(dsn, "foreign_keys(0)")
}

// OpenRuled opens a database as another program would, with the rules of its tables.
func OpenRuled(dsn string) (*sqlx.DB, error) {
	if isPostgres(dsn) {
		return sqlx.Open("pgx", dsn)
	}
	return openSQLite(dsn, "foreign_keys(1)")
}

func openSQLite(path, pragma string) (*sqlx.DB, error) {
	return sqlx.Open("sqlite", "file:"+escape(path)+"?mode=rw&_pragma=busy_timeout(10000)&_pragma="+pragma)
}

// Lock keeps everybody else from writing to a database, but not from reading it, until release.
func Lock(dsn string) (release func() error, err error) {
	pool, err := OpenRaw(dsn)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(nowhere)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	release = func() error { return errors.Join(conn.Close(), pool.Close()) } // and so ends the transaction
	statements := []string{`BEGIN IMMEDIATE`}
	if isPostgres(dsn) {
		statements = []string{`BEGIN`, `
			DO $$ DECLARE one regclass; BEGIN
			  FOR one IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
			  LOOP EXECUTE format('LOCK TABLE %s IN EXCLUSIVE MODE', one); END LOOP;
			END $$`}
	}
	for _, statement := range statements {
		if _, err := conn.ExecContext(nowhere, statement); err != nil {
			return nil, errors.Join(err, release())
		}
	}
	return release, nil
}

// Raw is [OpenRaw] for as long as the test.
func Raw(t testing.TB, dsn string) *sqlx.DB {
	t.Helper()
	pool, err := OpenRaw(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// Exec runs statements behind the back of whoever has the database open.
func Exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	pool, err := OpenRaw(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for _, statement := range statements {
		if _, err := pool.ExecContext(t.Context(), Spell(pool, statement)); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

var (
	createTrigger = regexp.MustCompile(`(?s)^(CREATE TRIGGER \w+ BEFORE \w+ ON \w+)(?: WHEN (.*))? ` +
		`BEGIN SELECT RAISE\(ABORT, ('[^']*')\); END$`)
	dropTrigger = regexp.MustCompile(`^DROP TRIGGER (?:IF EXISTS )?(\w+)$`)
)

// Spell gives a statement the form of the engine: its ? placeholders, and what a test does to
// triggers, which is written as for SQLite.
func Spell(pool *sqlx.DB, statement string) string {
	if pool.DriverName() != "pgx" {
		return statement
	}
	if m := createTrigger.FindStringSubmatch(statement); m != nil {
		when := ""
		if m[2] != "" {
			when = " WHEN (" + m[2] + ")"
		}
		return m[1] + " FOR EACH ROW" + when + " EXECUTE FUNCTION jobledger_refuse(" + m[3] + ")"
	}
	if m := dropTrigger.FindStringSubmatch(statement); m != nil {
		return strings.ReplaceAll(`
			DO $$ DECLARE on_table regclass; BEGIN
			  SELECT tgrelid INTO on_table FROM pg_trigger WHERE tgname = 'NAME';
			  IF FOUND THEN EXECUTE format('DROP TRIGGER NAME ON %s', on_table); END IF;
			END $$`, "NAME", m[1])
	}
	return pool.Rebind(statement)
}
