package racelab

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/crew"
	"jobledger/ledger"
)

func TestFailingChildIsAnError(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		child   string
		silence time.Duration
		want    string
	}{
		{"race-die", time.Minute, "ended before it was done: signal: killed"},
		{"race-leave", time.Minute, "ended before it was done: it stopped talking"},
		{"race-hang", 2 * time.Second, "said nothing for 2s"},
		{"race-hang-unready", time.Second, "said nothing for 1s"},
		{"race-refuse", time.Minute, "ended before it was done: exit status 3 (no race today)"},
	} {
		t.Run(c.child, func(t *testing.T) {
			pids := t.TempDir()
			t.Setenv("RACE_PIDS", pids)
			began := time.Now()
			_, err := Run(t.Context(), options(func(o *Options) {
				o.Processes, o.Jobs, o.Notifications = 3, 20, 64
				o.Child, o.Silence = []string{self, c.child}, c.silence
			}))
			if ledger.CodeOf(err) != ledger.Internal || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if passed := time.Since(began); passed > 30*time.Second {
				t.Errorf("it took %s", passed)
			}
			if started := living(t, pids); started == 0 && c.child != "race-refuse" {
				t.Error("no child was started")
			}
		})
	}
	_, err = Run(t.Context(), options(func(o *Options) {
		o.Processes, o.Child = 2, []string{"/no/such/program"}
	}))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that does not exist: %v", err)
	}
}

// living proves that no process that left its id in a directory lives, and counts them.
func living(t *testing.T, pids string) int {
	t.Helper()
	files, err := os.ReadDir(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		pid, err := strconv.Atoi(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		process, err := os.FindProcess(pid)
		if err == nil && process.Signal(syscall.Signal(0)) == nil {
			t.Errorf("process %d lives on", pid)
		}
	}
	return len(files)
}

// A child that cannot open the ledger says why, and its parent says the same.
func TestErrorOfAChildKeepsItsCode(t *testing.T) {
	p := plan{Owner: "race-x", Options: options(func(o *Options) {
		o.DSN, o.Processes = filepath.Join(t.TempDir(), "none.db"), 2
	})}
	err := p.spread(t.Context(), crew.AtOnce, func(shot) error { return nil })
	if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.Invalid || e.Field != "db" {
		t.Errorf("%v", err)
	}
}

func TestChildEndsWithItsParent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		for _, words := range []string{"", `"fire"`} {
			p := plan{Options: options(func(o *Options) {
				o.DSN, o.Jobs, o.Notifications = dsn, 1000, 100
			}), Owner: "race-orphan" + strconv.Itoa(len(words)), Process: 1}
			l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.setUp(t.Context(), l, func() {}); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := orphan(t, p, words); !errors.Is(err, crew.ErrGone) {
				t.Errorf("after %q: %v", words, err)
			}
		}
	})
}

// orphan is a child whose parent gives it a plan, waits until it is ready, says a last word and ends.
func orphan(t *testing.T, p plan, last string) error {
	t.Helper()
	stdin, say := io.Pipe()
	hear, stdout := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Child(t.Context(), stdin, stdout) }()
	if err := json.NewEncoder(say).Encode(p); err != nil {
		t.Fatal(err)
	}
	var m struct{ Ready bool }
	if err := json.NewDecoder(hear).Decode(&m); err != nil || !m.Ready {
		t.Fatalf("the child said %+v, %v", m, err)
	}
	go func() { _, _ = io.Copy(io.Discard, hear) }()
	if _, err := io.WriteString(say, last); err != nil {
		t.Fatal(err)
	}
	say.Close()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		return errors.New("it lives on")
	}
}

func TestChildRefusesWhatIsNoPlan(t *testing.T) {
	for _, text := range []string{"", "hello", "{}", `{"Workers":1}`, `{"Workers":100000}`} {
		err := Child(t.Context(), strings.NewReader(text), io.Discard)
		if ledger.CodeOf(err) != ledger.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}
