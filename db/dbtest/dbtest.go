// Package dbtest runs a test on every database engine, each time on a fresh database.
package dbtest

import (
	"path/filepath"
	"testing"

	"jobledger/db"
)

// Each runs fn once per engine, as a subtest named after it, with the DSN of a new database that is
// gone after the test.
func Each(t *testing.T, fn func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { fn(t, SQLite(t)) })
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
