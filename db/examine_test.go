package db_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// finding gives one finding of an examination.
func finding(t *testing.T, dsn string, o db.Options, name string) db.Finding {
	t.Helper()
	all, err := db.Examine(t.Context(), dsn, o)
	must(t, err)
	for _, f := range all {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("%+v: no %s", all, name)
	return db.Finding{}
}

// wantFinding checks the level of a finding, and a part of its message.
func wantFinding(t *testing.T, dsn, name string, level db.Level, text string) {
	t.Helper()
	f := finding(t, dsn, db.Options{}, name)
	if f.Level != level || !strings.Contains(f.Message, text) || (f.Advice == "") != (level == db.Fine) {
		t.Errorf("%+v, want %s, %s", f, level, text)
	}
}

// wantHealthy checks that an examination has nothing to say, and says of how much.
func wantHealthy(t *testing.T, dsn string, checks int) {
	t.Helper()
	all, err := db.Examine(t.Context(), dsn, db.Options{})
	must(t, err)
	for _, f := range all {
		if f.Level != db.Fine || f.Message == "" || f.Advice != "" {
			t.Errorf("%+v", f)
		}
	}
	if len(all) != checks {
		t.Errorf("%d findings, want %d: %+v", len(all), checks, all)
	}
}

func TestExamineSQLite(t *testing.T) {
	wantHealthy(t, dbtest.SQLite(t), 11)
	for _, c := range []struct {
		name  string
		level db.Level
		text  string
		make  func(path string) error
	}{
		{"journal", db.Warning, "delete", func(path string) error {
			dbtest.Exec(t, path, `PRAGMA journal_mode = DELETE`)
			return nil
		}},
		{"file-modes", db.Warning, "test.db (0640)", func(path string) error { return os.Chmod(path, 0o640) }},
		{"wal-size", db.Warning, "200 MB", func(path string) error {
			return errors.Join(os.WriteFile(path+"-wal", nil, 0o600), os.Truncate(path+"-wal", 200<<20))
		}},
		{"integrity", db.Problem, "never used", func(path string) error {
			dbtest.Exec(t, path, `PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'lots_due'`)
			return nil
		}},
	} {
		path := dbtest.SQLite(t)
		must(t, c.make(path))
		wantFinding(t, path, c.name, c.level, c.text)
	}
	if _, err := db.Examine(t.Context(), t.TempDir(), db.Options{}); !errors.Is(err, db.ErrNoLedger) {
		t.Errorf("a directory: %v", err)
	}
}

// What a check finds damaged is a finding; any other error of it ends the examination.
func TestExamineWithChecks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		end := errOwn
		check := db.Check{Name: "own", Look: func(tx *db.Tx) (db.Finding, error) {
			if _, err := tx.Exec(`CREATE TABLE marks (name TEXT)`); !errors.Is(err, db.ErrReadOnly) {
				t.Errorf("a check could write: %v", err)
			}
			return db.Good("seen"), end
		}}
		_, err := db.Examine(t.Context(), dsn, db.Options{}, check)
		wantIs(t, err, errOwn)
		end = &db.Error{Kind: db.ErrDamaged}
		all, err := db.Examine(t.Context(), dsn, db.Options{}, check)
		must(t, err)
		if f := all[len(all)-1]; f.Name != "own" || f.Level != db.Problem || f.Advice == "" {
			t.Errorf("%+v", f)
		}
	})
}
