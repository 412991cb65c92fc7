package db_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A file that is not a ledger is refused in one line that names it, by Open and by Create, and
// stays as it is, as does its directory.
func TestWrongFiles(t *testing.T) {
	good, err := os.ReadFile(dbtest.SQLite(t))
	must(t, err)
	file := func(data []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { must(t, os.WriteFile(path, data, 0o600)) }
	}
	changed := func(query string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			must(t, os.WriteFile(path, good, 0o600))
			change(t, path, query)
		}
	}
	foreign := func(id int) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			change(t, path, fmt.Sprintf(`PRAGMA application_id = %d; CREATE TABLE balances (owner TEXT)`, id))
		}
	}
	type wrong struct {
		name    string
		prepare func(*testing.T, string)
		kinds   []error
	}
	notOurs, damaged := []error{db.ErrNoLedger}, []error{db.ErrNoLedger, db.ErrDamaged}
	cases := []wrong{
		{"directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, notOurs},
		{"empty", file(nil), notOurs},
		{"text", file([]byte(strings.Repeat("owner,credits\n", 1000))), notOurs},
		{"PNG", file(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 5000)...)), notOurs},
		{"foreign, no id", foreign(0), notOurs},
		{"foreign, id 77", foreign(77), notOurs},
		{"newer version", changed(`PRAGMA user_version = 99`), []error{db.ErrNewer}},
		{"newer migration", changed(`INSERT INTO schema_migrations (version, name, checksum, applied_at)
			SELECT MAX(version) + 1, 'x', 'x', 1 FROM schema_migrations`), []error{db.ErrNewer}},
		{"changed migration", changed(`UPDATE schema_migrations SET checksum = 'x' WHERE version = 1`), notOurs},
		{"no migrations", changed(`DROP TABLE schema_migrations`), notOurs},
		{"dangling link", func(t *testing.T, path string) { must(t, os.Symlink("nowhere", path)) }, notOurs},
		{"link to a device", func(t *testing.T, path string) { must(t, os.Symlink(os.DevNull, path)) }, notOurs},
	}
	for _, n := range []int{1, 15, 99, 100, 101, 512, 4095, 4096, 4097, 8192, len(good) / 2, len(good) - 4096} {
		cases = append(cases, wrong{fmt.Sprintf("cut to %d", n), file(good[:n]), damaged})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "wrong.db")
			c.prepare(t, path)
			wantRefused(t, path, path, c.kinds)
		})
	}
}

// wantRefused opens and creates a database that must be refused, for one of some kinds.
func wantRefused(t *testing.T, dsn, path string, kinds []error) {
	t.Helper()
	before := contents(t, filepath.Dir(path))
	check := func(what string, err error) {
		t.Helper()
		if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
			t.Errorf("%s: error %v, want one of %v", what, err, kinds)
		} else if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, path) {
			t.Errorf("%s: %q is not one line that names %s", what, text, path)
		}
		if after := contents(t, filepath.Dir(path)); !slices.Equal(before, after) {
			t.Errorf("%s: the directory held %v and holds %v", what, before, after)
		}
	}
	d, err := db.Open(t.Context(), dsn, db.Options{})
	if err == nil {
		d.Close()
	}
	check("Open", err)
	_, err = db.Create(t.Context(), dsn, db.Options{})
	check("Create", err)
}

// contents gives the names and hashes of what is in a directory. It leaves out what a reader of
// SQLite puts beside a file that says it is in WAL mode, an empty -wal and its index: no content.
func contents(t *testing.T, dir string) (list []string) {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	for _, name := range listing(t, dir) {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		must(t, err)
		if strings.HasSuffix(name, ".db-shm") || strings.HasSuffix(name, ".db-wal") && info.Size() == 0 {
			continue
		}
		line := name + " " + info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			must(t, err)
			line += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		list = append(list, line)
	}
	return list
}

// change runs a script on a SQLite file, as another program would, and closes it.
func change(t *testing.T, path, script string) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = pool.ExecContext(context.Background(), script)
	must(t, errors.Join(err, pool.Close()))
}

func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "missing.db")
	_, err := db.Open(t.Context(), path, db.Options{})
	wantIs(t, err, db.ErrNoLedger)
	if !strings.Contains(err.Error(), path) || len(listing(t, dir)) != 0 {
		t.Errorf("a missing file: %v; left %v", err, listing(t, dir))
	}
	nowhere := filepath.Join(dir, "nowhere", "x.db")
	wantRefused(t, nowhere, nowhere, []error{db.ErrNoLedger})
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	below := filepath.Join(dir, "file", "x.db")
	for _, dsn := range []string{"", ":memory:", "a\x00b", below} {
		_, err := db.Open(t.Context(), dsn, db.Options{})
		wantIs(t, err, db.ErrNoLedger)
		if created, err := db.Create(t.Context(), dsn, db.Options{}); err == nil || created {
			t.Errorf("%q was created", dsn)
		}
	}
	if got := listing(t, dir); !slices.Equal(got, []string{"file"}) {
		t.Errorf("left behind: %v", got)
	}
}

// Every name opens exactly the file of that name, and nothing is left beside it.
func TestNames(t *testing.T) {
	names := []string{
		"with space", "a?b", "a", "a#b", "x%41.db", "xA.db", "%2e%2e", "a&b", "a;b", "a=b", "a+b", "a b+c",
		"x?mode=memory", "x?mode=ro&cache=shared", ":memory:.db", "file:x", "file:a?mode=memory", "a'b", `a"b`,
		`a\b`, "-leading", "~", "$HOME", "日本.db", "caf\u00e9", "cafe\u0301", "\xff", "a\tb", ".hidden",
		"a-wal.db", strings.Repeat("n", 247),
	}
	for folder, names := range map[string][]string{".": names, "odd ?#%41&;": {"a?b", "a", "x%41.db"}} {
		dir := filepath.Join(t.TempDir(), folder)
		must(t, os.MkdirAll(dir, 0o700))
		for _, name := range names {
			d := mustCreate(t, filepath.Join(dir, name))
			must(t, d.Write(t.Context(), mark(fmt.Sprintf("%q", name), nil)))
			must(t, d.Close())
		}
		want := slices.Sorted(slices.Values(names))
		if got := listing(t, dir); !slices.Equal(got, want) {
			t.Errorf("in the directory: %q, want %q", got, want)
		}
		for _, name := range names {
			d := reopen(t, filepath.Join(dir, name), db.Options{})
			wantMarks(t, d, fmt.Sprintf("%q", name))
			must(t, d.Close())
		}
	}
}

// mustCreate creates a database that must not be there yet, and opens it.
func mustCreate(t *testing.T, path string) *db.DB {
	t.Helper()
	created, err := db.Create(t.Context(), path, db.Options{})
	if err != nil || !created {
		t.Fatalf("create %q: %v, %v", path, created, err)
	}
	return open(t, path, db.Options{})
}

// A name that leaves no room for the -wal and -shm files beside it is refused before anything is made.
func TestNamesThatAreTooLong(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, strings.Repeat("d", 200), strings.Repeat("e", 200))
	must(t, os.MkdirAll(deep, 0o700))
	for _, path := range []string{
		filepath.Join(dir, strings.Repeat("n", 248)), filepath.Join(dir, strings.Repeat("n", 255)),
		filepath.Join(dir, strings.Repeat("n", 256)), filepath.Join(deep, strings.Repeat("n", 200)),
	} {
		before := listing(t, filepath.Dir(path))
		created, err := db.Create(t.Context(), path, db.Options{})
		if err == nil {
			must(t, reopen(t, path, db.Options{}).Close()) // what is created can be opened
			continue
		}
		if after := listing(t, filepath.Dir(path)); created || !slices.Equal(before, after) {
			t.Errorf("%d bytes: refused (%v) and left %q", len(path), err, after)
		}
	}
}

func TestRelativeNamesAndLinks(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	d := mustCreate(t, "-relative.db")
	t.Chdir(t.TempDir()) // the name was made absolute when it was opened
	must(t, d.Write(t.Context(), mark("a", nil)))
	must(t, d.Close())
	t.Chdir(dir)
	must(t, os.Symlink("-relative.db", "link.db"))
	created, err := db.Create(t.Context(), "link.db", db.Options{})
	if created || err != nil {
		t.Errorf("create through a link: %v, %v", created, err)
	}
	through, direct := reopen(t, "link.db", db.Options{}), reopen(t, "./-relative.db", db.Options{})
	must(t, through.Write(t.Context(), mark("b", nil)))
	must(t, direct.Write(t.Context(), mark("c", nil)))
	wantMarks(t, through, "a", "b", "c")
	wantMarks(t, direct, "a", "b", "c")
	must(t, errors.Join(through.Close(), direct.Close()))
	if got := listing(t, dir); !slices.Equal(got, []string{"-relative.db", "link.db"}) {
		t.Errorf("in the directory: %q", got)
	}
}
