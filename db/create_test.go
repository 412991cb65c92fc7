package db_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

const createProcesses, createCallers = 5, 4

// Many processes that create one database at once all succeed, and exactly one has created it.
func TestCreateRace(t *testing.T) {
	if argument := os.Getenv(childVariable); argument != "" {
		createWithOthers(t, argument)
		return
	}
	for range 4 {
		dir := t.TempDir()
		path := filepath.Join(dir, "race.db")
		raceToCreate(t, path)
		if got := listing(t, dir); !slices.Equal(got, []string{"race.db"}) {
			t.Errorf("left behind: %v", got)
		}
		wantAllCreated(t, path)
		if dbtest.NeedPostgres(t) {
			dsn := dbtest.EmptyPostgres(t)
			raceToCreate(t, dsn)
			wantAllCreated(t, dsn)
		}
	}
}

// raceToCreate starts processes that run the calling test with a DSN, all at once.
func raceToCreate(t *testing.T, dsn string) {
	t.Helper()
	barrier, gate, err := os.Pipe()
	must(t, err)
	outputs := make([]strings.Builder, createProcesses)
	var running []*exec.Cmd
	for i := range createProcesses {
		cmd := child(t, binary(t), dsn)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = barrier, &outputs[i], &outputs[i]
		must(t, cmd.Start())
		running = append(running, cmd)
	}
	must(t, barrier.Close())
	must(t, gate.Close()) // they all wait to read the end of the pipe
	all := ""
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, &outputs[i])
		}
		all += outputs[i].String()
	}
	won, lost := strings.Count(all, "created=true"), strings.Count(all, "created=false")
	if won != 1 || won+lost != createProcesses*createCallers {
		t.Errorf("%d created it, %d found it; want 1 and %d", won, lost, createProcesses*createCallers-1)
	}
}

// wantAllCreated checks that what the callers wrote after the race is there.
func wantAllCreated(t *testing.T, dsn string) {
	t.Helper()
	d := reopen(t, dsn, db.Options{})
	if n := len(marks(t, d)); n != createProcesses*createCallers {
		t.Errorf("%d writes kept, want %d", n, createProcesses*createCallers)
	}
	must(t, d.Close())
}

// createWithOthers is one process of the race: it waits for the start, and each of its callers
// creates the database, opens it and writes.
func createWithOthers(t *testing.T, path string) {
	_, err := io.ReadAll(os.Stdin)
	must(t, err)
	var wait sync.WaitGroup
	for c := range createCallers {
		wait.Go(func() {
			created, err := db.Create(t.Context(), path, db.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Printf("created=%v\n", created)
			d, err := db.Open(t.Context(), path, db.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			write := func(tx *db.Tx) error {
				_, err := tx.Exec(`CREATE TABLE IF NOT EXISTS marks (name TEXT NOT NULL PRIMARY KEY)`)
				if err != nil {
					return err
				}
				return mark(fmt.Sprint(os.Getpid(), "-", c), nil)(tx)
			}
			err = d.Write(t.Context(), write)
			if err != nil && d.Engine() != "sqlite" { // two may find no table, and the second fails to make it
				err = d.Write(t.Context(), write)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

func TestCreateModeAndRepetition(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	for i := range 3 {
		created, err := db.Create(t.Context(), path, db.Options{})
		if err != nil || created != (i == 0) {
			t.Errorf("time %d: created %v, %v", i, created, err)
		}
	}
	d := reopen(t, path, db.Options{})
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(`CREATE TABLE marks (name TEXT)`)
		return err
	}))
	for _, name := range listing(t, dir) { // the WAL holds the same data
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
	must(t, d.Close())
	if got := listing(t, dir); !slices.Equal(got, []string{"x.db"}) {
		t.Errorf("left behind: %v", got)
	}
}

// The settings that durability rests on hold on the connections that are used, both kinds.
func TestPragmas(t *testing.T) {
	d := open(t, dbtest.SQLite(t), db.Options{})
	common := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "trusted_schema": "0",
		"cell_size_check": "1", "temp_store": "2", "application_id": fmt.Sprint(0x4a424c47),
		"user_version": fmt.Sprint(db.SchemaVersion()),
	}
	check := func(kind string, more map[string]string) func(*db.Tx) error {
		return func(tx *db.Tx) error {
			for _, settings := range []map[string]string{common, more} {
				for name, want := range settings {
					var got string
					if _, err := tx.Get(&got, `PRAGMA `+name); err != nil || got != want {
						t.Errorf("%s: %s is %q (%v), want %q", kind, name, got, err, want)
					}
				}
			}
			return nil
		}
	}
	must(t, d.Write(t.Context(), check("writer", map[string]string{
		"query_only": "0", "busy_timeout": "0", "journal_size_limit": "67108864",
	})))
	must(t, d.Read(t.Context(), check("reader", map[string]string{"query_only": "1", "busy_timeout": "5000"})))
}

// The SQLite library is C translated to Go against one version of its runtime: with another it crashes.
func TestLibcIsTheOneThatSQLiteNames(t *testing.T) {
	list := func(format, module string) string {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", format, module).Output()
		must(t, err)
		return strings.TrimSpace(string(out))
	}
	mod, err := os.ReadFile(list("{{.GoMod}}", "modernc.org/sqlite"))
	must(t, err)
	named := regexp.MustCompile(`modernc\.org/libc (v\S+)`).FindStringSubmatch(string(mod))
	if got := list("{{.Version}}", "modernc.org/libc"); named == nil || named[1] != got {
		t.Errorf("libc %s is used, SQLite names %v", got, named)
	}
}
