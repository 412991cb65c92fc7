package ledger_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// filled is a full and clean ledger without its guards, of which each test damages a copy.
type filled struct {
	dsn   string
	image []byte // the file of a SQLite ledger
	dir   string // for its copies; empty: one that lasts as long as the test
}

// No session can go without checks.
const dropChecks = `
	DO $$ DECLARE one record; BEGIN
	  FOR one IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
	    WHERE contype = 'c' AND connamespace = current_schema()::regnamespace
	  LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.t, one.conname); END LOOP;
	END $$`

// Each table is kept under its name, with its rows, in another schema.
const keepTables = `
	DO $$ DECLARE one record; BEGIN
	  CREATE SCHEMA kept;
	  FOR one IN SELECT tablename AS t FROM pg_tables WHERE schemaname = current_schema()
	  LOOP EXECUTE format('CREATE TABLE kept.%I AS TABLE %I', one.t, one.t); END LOOP;
	END $$`

const bringTablesBack = `
	DO $$ DECLARE one record; BEGIN
	  FOR one IN SELECT tablename AS t FROM pg_tables WHERE schemaname = 'kept'
	  LOOP EXECUTE format('DELETE FROM %I', one.t); END LOOP;
	  FOR one IN SELECT tablename AS t FROM pg_tables WHERE schemaname = 'kept'
	  LOOP EXECUTE format('INSERT INTO %I SELECT * FROM kept.%I', one.t, one.t); END LOOP;
	END $$`

// fill fills a ledger and takes its guards away, after statements that change its schema.
func fill(t *testing.T, dsn string, statements ...string) *filled {
	t.Helper()
	b := openBook(t, dsn)
	b.serveAll()
	b.fill()
	b.serve()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Engine() == "postgres" {
		dbtest.Exec(t, dsn, dropChecks, keepTables)
		return &filled{dsn: dsn}
	}
	r := openRaw(t, dsn)
	var triggers []string
	if err := r.Select(&triggers, `SELECT name FROM sqlite_schema WHERE type = 'trigger'`); err != nil {
		t.Fatal(err)
	}
	for _, name := range triggers {
		r.exec(`DROP TRIGGER ` + name)
	}
	for _, statement := range append(statements, `PRAGMA wal_checkpoint(TRUNCATE)`) {
		r.exec(statement)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return &filled{image: image}
}

// copy gives the DSN of a copy; of a PostgreSQL ledger there is one at a time.
func (f *filled) copy(t *testing.T) (dsn string) {
	t.Helper()
	if f.image == nil {
		dbtest.Exec(t, f.dsn, bringTablesBack)
		return f.dsn
	}
	dir := f.dir
	if dir == "" {
		dir = t.TempDir()
	}
	file, err := os.CreateTemp(dir, "*.db") // only its owner can read it
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(f.image); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// corrupt changes a row of a copy and gives the row's id and the audit.
func (f *filled) corrupt(t *testing.T, named, change string) (report ledger.AuditReport, id string) {
	t.Helper()
	dsn := f.copy(t)
	r := openRaw(t, dsn)
	if err := r.Get(&id, named); err != nil {
		t.Fatalf("%s: %v", named, err)
	}
	if rows := r.exec(change, id); rows == 0 {
		t.Fatalf("%s [%s] changed nothing", change, id)
	}
	r.Close()
	b := openBook(t, dsn)
	b.at = b.at.Add(100 * time.Hour)
	return b.audit(ledger.AuditParams{}), id
}

// raw is a way into a database past all its guards.
type raw struct {
	*sqlx.DB
	t *testing.T
}

func openRaw(t *testing.T, dsn string) *raw {
	t.Helper()
	r := &raw{dbtest.Raw(t, dsn), t}
	r.SetMaxOpenConns(1)
	if r.DriverName() == "sqlite" {
		r.exec(`PRAGMA ignore_check_constraints = 1`)
	}
	return r
}

func (r *raw) exec(query string, args ...any) (rows int64) {
	r.t.Helper()
	result, err := r.Exec(dbtest.Spell(r.DB, query), args...)
	if err != nil {
		r.t.Fatalf("%s: %v", query, err)
	}
	rows, err = result.RowsAffected()
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// TestAuditFindsTypes puts values of a wrong type into tables that lost their guards. The audit names
// them, and does not fail because it cannot read them.
func TestAuditFindsTypes(t *testing.T) {
	f := fill(t, dbtest.SQLite(t), `PRAGMA writable_schema = 1`, `
		UPDATE sqlite_schema SET sql = REPLACE(REPLACE(sql, 'STRICT, ', ''), ') STRICT', ')') WHERE type = 'table'`)
	for _, c := range []struct{ key, named, change string }{
		{"owner", anyOwner, `UPDATE balances SET available = 'many' WHERE owner = ?`},
		{"owner", anyOwner, `UPDATE balances SET head = 'no hash' WHERE owner = ?`},
		{"job", openJob, `UPDATE jobs SET cost = 7.5 WHERE id = ?`},
		{"job", openJob, `UPDATE jobs SET settled_at = '2030-01-01' WHERE id = ?`},
		{"entry", refundEntry, `UPDATE entries SET amount = 'seven' WHERE id = ?`},
		{"entry", refundEntry, `UPDATE entries SET recorded_at = CAST(recorded_at AS TEXT) || 'Z' WHERE id = ?`},
		{"lot", firstLot, `UPDATE lots SET available = x'30' WHERE id = ?`},
		{"lot", firstLot, `UPDATE postings SET amount = 1e300 WHERE lot_id = ?`},
		{"job", openJob, `UPDATE reports SET attempt = 'first' WHERE job_id = ?`},
		{"event", holdEvent, `UPDATE events SET payload = CAST(payload AS BLOB) WHERE id = ?`},
	} {
		report, id := f.corrupt(t, c.named, c.change)
		if !names(report, "column-types", c.key, id) {
			t.Errorf("%s [%s]: not named:\n%s", c.change, id, strings.Join(broken(report), "\n"))
		}
	}
}

// TestAuditFindsBits flips one bit in each place where the file has the name of a job: in rows, in keys
// and in indexes.
func TestAuditFindsBits(t *testing.T) {
	f := fill(t, dbtest.SQLite(t), `PRAGMA secure_delete = 1`, `VACUUM`) // leaves no old bytes between rows
	name := []byte("hold-completed")
	places := 0
	for at := 0; ; places++ {
		next := bytes.Index(f.image[at:], name)
		if next < 0 {
			break
		}
		at += next + len(name)
		f.image[at-1] ^= 1
		report, err := openBook(t, f.copy(t)).Audit(t.Context(), ledger.AuditParams{})
		if ledger.CodeOf(err) != ledger.Inconsistent && (err != nil || report.OK) {
			t.Errorf("a bit of the name at byte %d: not found (%v)", at-1, err)
		}
		f.image[at-1] ^= 1
	}
	if places < 10 {
		t.Errorf("the file has the name in %d places, want 10 or more", places)
	}
}

// TestAuditUnreadable has a table without one of its columns.
func TestAuditUnreadable(t *testing.T) {
	path := dbtest.SQLite(t)
	openRaw(t, path).exec(`ALTER TABLE reports RENAME COLUMN count TO number`)
	r := openBook(t, path).audit(ledger.AuditParams{})
	if r.OK || check(t, r, "storage").OK || !check(t, r, "job-rows").OK {
		t.Errorf("%q", broken(r))
	}
}
