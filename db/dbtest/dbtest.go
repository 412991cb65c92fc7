// Package dbtest runs a test on every database engine, each time on a fresh database.
package dbtest

import (
	"os"
	"path/filepath"
	"testing"

	"jobledger/db"
)

// Each runs fn once per engine, as a subtest named after it, with the DSN of a new database that is
// gone after the test.
//
// On a machine without PostgreSQL its subtest says so and does not run fn; where CI=true, it fails.
func Each(t *testing.T, fn func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { fn(t, SQLite(t)) })
	EachPostgres(t, fn)
}

// EachPostgres is [Each] for what only PostgreSQL can show.
func EachPostgres(t *testing.T, fn func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		if NeedPostgres(t) {
			fn(t, Postgres(t))
		}
	})
}

// NeedPostgres reports whether tests can use PostgreSQL. Where they cannot it says why; where CI=true,
// that is a failure.
func NeedPostgres(t *testing.T) bool {
	t.Helper()
	_, err := server()
	return need(t, err)
}

// NeedCluster is [NeedPostgres] for tests that start servers of their own: a server that is named to the
// tests is not enough, they need its programs.
func NeedCluster(t *testing.T) bool {
	t.Helper()
	_, err := findPrograms()
	if err == nil {
		err = findTools()
	}
	return need(t, err)
}

func need(t *testing.T, err error) bool {
	t.Helper()
	switch {
	case err == nil:
		return true
	case os.Getenv("CI") == "true":
		t.Fatalf("postgres: %v", err)
	default:
		t.Logf("postgres: not run: %v", err)
	}
	return false
}

// SQLite makes a new SQLite database in the test's own directory and gives its path.
func SQLite(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	if _, err := db.Create(t.Context(), path, db.Options{}); err != nil {
		t.Fatal(err)
	}
	return path
}
