package db_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A copy has what is only in the write-ahead log yet, belongs to its owner alone, and is one file.
func TestB128CopyOfALiveFile(t *testing.T) {
	source, folder := dbtest.SQLite(t), t.TempDir()
	writer := dbtest.Raw(t, source)
	_, err := writer.Exec(`INSERT INTO balances (owner, available, held, used, expired, seq, head)
		VALUES ('only in the log', 0, 0, 0, 0, 0, zeroblob(32))`)
	must(t, err)
	target, told := filepath.Join(folder, "it's a ?copy%20#1.db"), 0
	must(t, db.CopyFile(t.Context(), source, target, db.Options{}, db.CopyParams{
		Progress: func(done, total int) {
			if told++; done > total || total == 0 {
				t.Errorf("%d of %d pages", done, total)
			}
		},
	}))
	if list := listing(t, folder); !slices.Equal(list, []string{filepath.Base(target)}) || told == 0 {
		t.Errorf("the folder has %q; progress told %d times", list, told)
	}
	info, err := os.Stat(target)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	var owners int
	must(t, dbtest.Raw(t, target).Get(&owners, `SELECT COUNT(*) FROM balances`))
	if owners != 1 {
		t.Errorf("%d owners", owners)
	}
}

// What cannot be copied, or not there, is refused, and nothing is left behind.
func TestCopyFileRefuses(t *testing.T) {
	source, folder := dbtest.SQLite(t), t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	must(t, os.WriteFile(at("text"), []byte(strings.Repeat("text", 5000)), 0o600))
	must(t, os.WriteFile(at("left-wal"), []byte("frames"), 0o600))
	must(t, os.WriteFile(at("old-journal"), nil, 0o600))
	must(t, db.CopyFile(t.Context(), source, at("earlier"), db.Options{}, db.CopyParams{}))
	must(t, db.CopyFile(t.Context(), source, at("open"), db.Options{}, db.CopyParams{}))
	must(t, os.Symlink("earlier", at("link")))
	user := dbtest.Raw(t, at("open"))
	var n int
	must(t, user.Get(&n, `SELECT COUNT(*) FROM balances`)) // it keeps a connection
	left := listing(t, folder)
	refuse := func(string, int) error { return errOwn }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		from, to string
		p        db.CopyParams
		ctx      context.Context
		want     error
	}{
		{source, at("earlier"), db.CopyParams{}, t.Context(), db.ErrExists},
		{source, at("link"), db.CopyParams{}, t.Context(), db.ErrExists},
		{source, at("text"), db.CopyParams{}, t.Context(), db.ErrExists},
		{source, at("text"), db.CopyParams{Replace: true}, t.Context(), db.ErrNoLedger},
		{source, folder, db.CopyParams{Replace: true}, t.Context(), db.ErrExists},
		{source, at("open"), db.CopyParams{Replace: true}, t.Context(), db.ErrExists},
		{source, at("left"), db.CopyParams{}, t.Context(), db.ErrExists},
		{source, at("old"), db.CopyParams{}, t.Context(), db.ErrExists},
		{source, at("link"), db.CopyParams{Replace: true}, t.Context(), db.ErrExists},
		{source, source, db.CopyParams{Replace: true}, t.Context(), db.ErrExists},
		{source, filepath.Join(folder, "missing", "x"), db.CopyParams{}, t.Context(), db.ErrNoLedger},
		{source, at("new"), db.CopyParams{Check: refuse}, t.Context(), errOwn},
		{source, at("new"), db.CopyParams{}, gone, context.Canceled},
		{at("text"), at("new"), db.CopyParams{}, t.Context(), db.ErrNoLedger},
		{at("nowhere"), at("new"), db.CopyParams{}, t.Context(), db.ErrNoLedger},
		{folder, at("new"), db.CopyParams{}, t.Context(), db.ErrNoLedger},
		{source, "postgres://localhost/x", db.CopyParams{}, t.Context(), db.ErrNoLedger},
		{"postgres://localhost/x", at("new"), db.CopyParams{}, t.Context(), db.ErrNoLedger},
		{source, ":memory:", db.CopyParams{}, t.Context(), db.ErrNoLedger},
	} {
		if err := db.CopyFile(c.ctx, c.from, c.to, db.Options{}, c.p); !errors.Is(err, c.want) {
			t.Errorf("%s to %s: %v, want %v", c.from, c.to, err, c.want)
		}
	}
	now := slices.DeleteFunc(listing(t, folder), func(name string) bool {
		return strings.HasPrefix(name, "earlier-") // what readers leave
	})
	if !slices.Equal(now, left) {
		t.Errorf("the folder has %q, want %q", now, left)
	}
}

// A copy takes the place of an earlier one that was looked at since, and of nothing that is in use.
func TestCopyFileReplaces(t *testing.T) {
	source, target := dbtest.SQLite(t), filepath.Join(t.TempDir(), "backup.db")
	must(t, db.CopyFile(t.Context(), source, target, db.Options{}, db.CopyParams{}))
	reader, err := db.Open(t.Context(), target, db.Options{})
	must(t, err)
	must(t, reader.Read(t.Context(), func(*db.Tx) error { return nil }))
	dbtest.Exec(t, source, `UPDATE schema_migrations SET applied_at = 77`)
	again := db.CopyParams{Replace: true}
	wantIs(t, db.CopyFile(t.Context(), source, target, db.Options{}, again), db.ErrExists)
	must(t, reader.Close())
	must(t, db.CopyFile(t.Context(), source, target, db.Options{}, again))
	var at int64
	must(t, dbtest.Raw(t, target).Get(&at, `SELECT MAX(applied_at) FROM schema_migrations`))
	if at != 77 {
		t.Errorf("the old copy is there: %d", at)
	}
}

// A damaged file does not become a backup. An older schema does, and is not migrated on the way.
func TestCopyFileOfAnOddSource(t *testing.T) {
	for _, c := range []struct {
		change string
		want   error
	}{
		{`PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'lots_due'`, db.ErrDamaged},
		{`PRAGMA user_version = 99`, db.ErrNewer},
		{`PRAGMA user_version = 0`, nil},
	} {
		source, target := dbtest.SQLite(t), filepath.Join(t.TempDir(), "backup.db")
		dbtest.Exec(t, source, c.change)
		version := -1
		err := db.CopyFile(t.Context(), source, target, db.Options{}, db.CopyParams{
			Check: func(_ string, v int) error { version = v; return nil },
		})
		if !errors.Is(err, c.want) || (err == nil) != (version == 0) {
			t.Errorf("%s: %v, version %d", c.change, err, version)
		}
	}
}
