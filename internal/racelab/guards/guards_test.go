package guards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// TestEveryRemovalIsCaught: each guard holds alone, without it an invariant breaks, and with all of them
// none does. Three times on SQLite; on PostgreSQL, where each scene takes a database of its own, once.
func TestEveryRemovalIsCaught(t *testing.T) {
	for run := range 3 {
		t.Run(fmt.Sprint("sqlite", run), func(t *testing.T) { caught(t, "", 13) })
	}
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) { caught(t, dsn, 12) })
}

func caught(t *testing.T, server string, guards int) {
	t.Helper()
	told := 0
	r, err := Run(t.Context(), Options{Server: server, Progress: func(done, total int) { told = total - done }})
	for _, g := range r.Guards {
		if !g.Held || !g.Caught || len(g.Detail) == 0 {
			t.Errorf("%s: held %t, caught %t: %q", g.Guard, g.Held, g.Caught, g.Detail)
		}
	}
	if err != nil || !r.OK || !r.Complete.OK || len(r.Guards) != guards || told != 0 {
		t.Errorf("%d guards, %d scenes to go, complete: %+v, error: %v", len(r.Guards), told, r.Complete, err)
	}
}

// TestAGuardThatIsNotThere: a removal that removes nothing is not caught, and says why.
func TestAGuardThatIsNotThere(t *testing.T) {
	altered(t, "attempt-predicate", func(g *Guard) { g.change = replace(`attempt IS ABOUT`, ``) })
	r, err := Run(t.Context(), Options{Guard: "attempt-predicate"})
	if ledger.CodeOf(err) != ledger.Inconsistent || r.OK || r.Guards[0].Caught || !r.Complete.OK ||
		!strings.Contains(r.Guards[0].Detail[0], "attempt IS ABOUT") {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestARemovalThatBreaksNothing is not caught: what is taken away is no guard.
func TestARemovalThatBreaksNothing(t *testing.T) {
	altered(t, "status-predicate", func(g *Guard) { g.change = replace(`updated_at`, `updated_at`) })
	r, err := Run(t.Context(), Options{Guard: "status-predicate"})
	if ledger.CodeOf(err) != ledger.Inconsistent || r.OK || !r.Guards[0].Held || r.Guards[0].Caught {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestAGuardThatDoesNotHold alone is no guard.
func TestAGuardThatDoesNotHold(t *testing.T) {
	altered(t, "check", func(g *Guard) { g.Others = append(g.Others, "check") })
	r, err := Run(t.Context(), Options{Guard: "check"})
	if ledger.CodeOf(err) != ledger.Inconsistent || r.OK || r.Guards[0].Held || !r.Guards[0].Caught {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestABrokenProduct is found with all guards in place, too.
func TestABrokenProduct(t *testing.T) {
	title := crowd.title
	played := crowd.play
	crowd.play = func(_ context.Context, s *stage) error { s.broke("on purpose"); return nil }
	defer func() { crowd.play = played }()
	r, err := Run(t.Context(), Options{Guard: "begin-immediate"})
	if ledger.CodeOf(err) != ledger.Inconsistent || r.Complete.OK ||
		!slices.Equal(r.Complete.Detail, []string{title + ": on purpose"}) {
		t.Errorf("got %+v, %v", r.Complete, err)
	}
}

// TestStopped: what is stopped says so, also before the first scene, and leaves nothing behind.
func TestStopped(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := Run(ctx, Options{})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped before its end") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d directories are left, %v", len(left), err)
	}
}

// altered changes a guard for the time of a test.
func altered(t *testing.T, name string, change func(*Guard)) {
	t.Helper()
	g := find(name)[0]
	before := *g
	t.Cleanup(func() { *g = before })
	change(g)
}

func TestUnknownGuards(t *testing.T) {
	for guard, server := range map[string]string{"luck": "", "row-lock": "", "begin-immediate": "postgres://x"} {
		_, err := Run(t.Context(), Options{Guard: guard, Server: server})
		if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), guard) {
			t.Errorf("%s on %q: %v", guard, server, err)
		}
	}
}

// TestPlaces: the functions that hold the guards are there, and so are the tables and keys.
func TestPlaces(t *testing.T) {
	source := ""
	for _, pattern := range []string{"../../../ledger/*.go", "../../../db/*.go", "../../../db/sqlite/*.sql"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") {
				source += string(text)
			}
		}
	}
	for _, g := range all {
		if place := places[g.Where]; place == "" || !strings.Contains(source, place) {
			t.Errorf("%s: %s is not there", g.Name, g.Where)
		}
		for _, other := range g.Others {
			if len(find(other)) != 1 {
				t.Errorf("%s: there is no guard %q", g.Name, other)
			}
		}
	}
}

// places are the declarations that the guards name.
var places = map[string]string{
	"ledger.claim.take":     "\nfunc (c *claim) take(",
	"trigger jobs_end_once": "\nCREATE TRIGGER jobs_end_once\n",
	"entries.event_key":     ",\n  event_key       TEXT    NOT NULL UNIQUE,\n",
	"events.id":             "\nCREATE TABLE events (\n  id ",
	"ledger.lockAccount":    "\nfunc lockAccount(",
	"entries (owner, seq)":  "\n  UNIQUE (owner, seq)\n",
	"ledger.account.apply":  "\nfunc (a *account) apply(",
	"ledger.updateLot":      "\nfunc updateLot(",
	"balances, lots":        "\nCREATE TABLE lots (\n",
	"db.sqliteEngine":       "\nfunc sqliteEngine(o Options) *engine {\n",
	"db.writer.commit":      "\nfunc (w *writer) commit(",
}
