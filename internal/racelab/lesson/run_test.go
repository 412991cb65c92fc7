package lesson

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/ledger"
)

// TestVerdict: a lesson that does not show what it is for says so, and what it showed.
func TestVerdict(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		right, wrong := "A UPDATE n SET x = 7", "A UPDATE n SET x = 8"
		for _, c := range []struct {
			script string
			fixed  bool
			want   string // empty: it shows what it is for
		}{
			{right, true, ""},
			{wrong, false, ""},
			{wrong, true, `fixed version ended with x 8, and 7 is right$`},
			{right, false, `something here protects from the mistake$`},
		} {
			l := scene(7, "A", c.script)
			l.Wrong = l.Fixed
			r, err := s.try(t, l, c.fixed)
			if (c.want == "") != (err == nil) || err != nil &&
				(ledger.CodeOf(err) != ledger.Inconsistent || !matches(c.want, err)) {
				t.Errorf("%q, fixed %v: %v, want %q", c.script, c.fixed, err, c.want)
			}
			if len(r.Numbers) != 1 || r.Numbers[0].OK != (c.script == right) {
				t.Errorf("%q, fixed %v: %+v", c.script, c.fixed, r.Numbers)
			}
		}
	})
}

// TestServerIsRefused: what is no PostgreSQL server is INVALID, and a file that exists is not touched.
func TestServerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]string{
		path:                       `^db: the lab uses no database that exists`,
		"mysql://root:secret@host": `^db: the lab uses no database that exists`,
	} {
		l, _ := Find("lost-update")
		_, err := l.Run(t.Context(), Options{Server: server})
		e, ok := errors.AsType[*ledger.Error](err)
		if !ok || e.Code != ledger.Invalid || e.Field != "db" || !matches(want, err) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", server, err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q: %v", text, err)
	}
}

// TestScratchFile: it is marked while it is there, and gone after a run, however that ended.
func TestScratchFile(t *testing.T) {
	dir := scratchFolder(t)
	s, err := makeDatabase(t.Context(), &sqliteEngine, "")
	if err != nil {
		t.Fatal(err)
	}
	var note string
	err = s.pool.Get(&note, `SELECT note FROM lab_scratch`)
	if err != nil || !strings.Contains(note, "scratch") {
		t.Errorf("note %q: %v", note, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "jobledger-lab-*", "scratch.db"))
	if err != nil || len(found) != 1 {
		t.Errorf("found %q: %v", found, err)
	}
	if err := s.close(); err != nil || s.pool.Stats().OpenConnections != 0 {
		t.Errorf("closed with %d connections open: %v", s.pool.Stats().OpenConnections, err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	l, _ := Find("lost-update")
	_, err = l.Run(stopped, Options{})
	if !errors.Is(err, context.Canceled) || !matches("^the lesson was stopped before its end", err) {
		t.Errorf("a run that was stopped: %v", err)
	}
	broken := scene(0, "A B", "A BEGIN\nA UPDATE n SET x = 1\nB BEGIN")
	if _, err := broken.Run(t.Context(), Options{Fixed: true}); err == nil {
		t.Error("a lesson that does not end has a result")
	}
	broken.Tables = "CREATE TABLE"
	if _, err := broken.Run(t.Context(), Options{Fixed: true}); err == nil || !matches("make the tables", err) {
		t.Errorf("without tables: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestNoFolder: without a place for the scratch file there is one clear error.
func TestNoFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	l, _ := Find("lost-update")
	if _, err := l.Run(t.Context(), Options{}); err == nil || !matches("scratch directory", err) {
		t.Errorf("got %v", err)
	}
}

// TestTooLong: a run that reached its bound says so, and not what that broke.
func TestTooLong(t *testing.T) {
	bounded, stop := context.WithTimeoutCause(t.Context(), 0, errors.New("it took too long"))
	defer stop()
	<-bounded.Done()
	l := Lesson{Name: "slow"}
	err := l.ended(t.Context(), bounded, errors.New("broken pipe"))
	if err.Error() != "lesson slow: it took too long" {
		t.Errorf("got %v", err)
	}
}
