package db_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// What a ledger of the first version has: jobs whose provider is asked from now on, and others.
const olderJobs = `
	INSERT INTO balances VALUES ('o', 0, 9, 0, 0, 0, CAST('12345678901234567890123456789012' AS BYTEA));
	INSERT INTO jobs (id, owner, cost, mode, status, attempt, submission, reason, metadata, created_at,
	                  updated_at)
	VALUES ('new', 'o', 1, 'hold', 'pending', 0, 'none', '', '{}', 1, 1),
	       ('taken', 'o', 1, 'hold', 'processing', 2, 'accepted', '', '{}', 1, 7),
	       ('no handle', 'o', 1, 'hold', 'processing', 1, 'accepted', '', '{}', 1, 1),
	       ('unsure', 'o', 1, 'hold', 'processing', 1, 'uncertain', '', '{}', 1, 1);
	INSERT INTO attempts (job_id, attempt, provider, upstream_id, submission, evidence, operator, marked_at)
	VALUES ('taken', 1, 'p', NULL, 'rejected', 'busy', '', 1), ('taken', 2, 'q', 'u', 'accepted', '', '', 1),
	       ('no handle', 1, 'p', NULL, 'accepted', '', '', 1), ('unsure', 1, 'p', 'v', 'uncertain', 'e', '', 1)`

// A ledger of the first version is brought up to date when it is opened, with what follows for its jobs.
func TestMigratesTheFirstVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		older := olderJobs
		if dbtest.Raw(t, dsn).DriverName() == "pgx" {
			dsn = dbtest.EmptyPostgres(t)
		} else {
			dsn = filepath.Join(t.TempDir(), "older.db")
			older = strings.ReplaceAll(older, "BYTEA", "BLOB")
		}
		restore := db.Migrations(1)
		t.Cleanup(restore)
		_, err := db.Create(t.Context(), dsn, db.Options{})
		must(t, err)
		dbtest.Exec(t, dsn, older)
		restore()
		for range 2 {
			d, err := db.Open(t.Context(), dsn, db.Options{})
			must(t, err)
			var polls []string
			must(t, d.Read(t.Context(), func(tx *db.Tx) error {
				return tx.Select(&polls,
					`SELECT job_id || ' ' || attempt || ' ' || provider || ' ' || next_at FROM polls`)
			}))
			if !slices.Equal(polls, []string{"taken 2 q 7"}) {
				t.Errorf("polls: %q", polls)
			}
			must(t, d.Close())
		}
	})
}
