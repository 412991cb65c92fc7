//go:build unix

package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger"
)

// shell is a program as a script.
func shell(script string) []string { return []string{"sh", "-c", script} }

// answering is a program that answers hello and, from then on, does as a script says.
func answering(script string) []string {
	return shell("read request; echo ok charge; while read request; do " + script + "; done")
}

// A command that is no ledger at all is an error in one line.
func TestWhatCannotBeChecked(t *testing.T) {
	for _, c := range []struct {
		name, want string
		command    []string
	}{
		{"missing", "it cannot be started: ", []string{"/no/such/program"}},
		{"not in the path", "it cannot be started: ", []string{"no-such-program"}},
		{"leaves", `process 1 ended when it was asked "hello": exit status 3`, shell("exit 3")},
		{"leaves in peace", `ended when it was asked "hello": exit status 0`, shell("read request")},
		{"complains", `exit status 3, its last words on stderr: "no\ttime"`,
			shell("echo first >&2; printf 'no\ttime' >&2; exit 3")},
		{"dies", "signal: killed", shell("kill -9 $$")},
		{"nonsense", `answered "hello" with "banana split": an answer begins with ok, won, lost, refused or busy`,
			shell("read request; echo banana split; cat")},
		{"an empty line", `answered "hello" with ""`, shell("read request; echo; cat")},
		{"binary", `answered "hello" with "\x00\xff"`, shell(`read request; printf '\000\377\n'; cat`)},
		{"refuses", `answered "hello" with "refused", expected ok`, shell("read request; echo refused; cat")},
		{"no mode", "which names neither charge nor hold", shell("read request; echo ok keys; cat")},
		{"no ability", `"flying" is no ability`, shell("read request; echo ok hold flying; cat")},
		{"twice", "which names hold twice", shell("read request; echo ok hold charge hold; cat")},
		{"flood", `"y"`, shell("yes")},
		{"flood in one line", "a line of more than 4096 bytes", shell("read request; yes | tr -d '\\n'")},
		{"silence", `did not answer "hello" within 300ms`, shell("sleep 100")},
		{"deaf and dumb", `did not answer "hello" within 300ms`, shell("exec <&- >&- 2>&-; sleep 100")},
		{"no end of line", `did not answer "hello" within 300ms`, shell("printf 'ok charge'; sleep 100")},
	} {
		began := time.Now()
		timeout := time.Minute
		if strings.Contains(c.want, "within 300ms") {
			timeout = 300 * time.Millisecond
		}
		r, err := Run(t.Context(), Options{Command: c.command, Timeout: timeout})
		if ledger.CodeOf(err) != ledger.Internal || len(r.Scenarios) > 0 ||
			!strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "the command cannot be checked: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if passed := time.Since(began); passed > 10*time.Second {
			t.Errorf("%s: it took %s", c.name, passed)
		}
	}
}

// A program that goes wrong later fails the scenario, and the report says how.
func TestWhatGoesWrongLater(t *testing.T) {
	for _, c := range []struct{ name, script, want, answered string }{
		{"leaves", "echo bye >&2; exit 4", `process 1 ended when it was asked "create job-1.1 ann.1 7 charge": ` +
			`exit status 4, its last words on stderr: "bye"`, ""},
		{"silence", "sleep 100", `process 1 did not answer "create job-1.1 ann.1 7 charge" within 2s`, ""},
		{"nonsense", "echo banana", `"banana": an answer begins with`, "banana"},
		{"a long line", "yes | tr -d '\\n'", "a line of more than 4096 bytes", ""},
		{"two answers", "echo refused; echo refused; sleep 0.1; echo refused", `without being asked`, "refused"},
		{"always busy", "echo busy", "with busy 50 times", "busy"},
		{"wrong", "echo ok 7", `was answered "ok 7", expected "refused": ann has no credits`, "ok 7"},
		{"noise on stderr", "head -c 300000 /dev/zero | tr '\\0' x >&2; echo ok", `"ok", expected "refused"`, "ok"},
	} {
		r, err := Run(t.Context(), Options{
			Command: answering(c.script), Timeout: 2 * time.Second, Only: []string{"unknown-owner"}})
		if ledger.CodeOf(err) != ledger.Inconsistent || len(r.Scenarios) != 1 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := r.Scenarios[0]
		if got.Verdict != Failed || !strings.Contains(got.Detail, c.want) || len(got.Steps) == 0 ||
			got.Steps[0].Answered != c.answered || got.Steps[0].Process != 1 {
			t.Errorf("%s: %+v, want %s", c.name, got, c.want)
		}
	}
}

// Programs that start others, and leave their ids in $PIDS.
const (
	nested   = "sleep 1000 & echo > $PIDS/$!; echo > $PIDS/$$; "
	stubborn = nested + "trap '' TERM HUP INT; read request; echo ok charge; sleep 1000"
	orphans  = nested + "read request; echo ok charge; exit"
)

func TestNothingOutlivesTheCheck(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		stop   time.Duration // after which the caller gives up; 0: never
	}{
		"stubborn": {stubborn, 0}, "orphans": {orphans, 0}, "given up": {stubborn, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			pids, scratch := t.TempDir(), t.TempDir()
			t.Setenv("PIDS", pids)
			t.Setenv("TMPDIR", scratch)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.stop > 0 {
				time.AfterFunc(c.stop, cancel)
			}
			_, err := Run(ctx, Options{
				Command: shell(c.script), Timeout: time.Second, Only: []string{"failures-race", "restart"}})
			if err == nil || errors.Is(err, context.Canceled) != (c.stop > 0) {
				t.Errorf("it ended with %v", err)
			}
			checkGone(t, pids)
			if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// checkGone proves that no process that left its id in a directory is there.
func checkGone(t *testing.T, pids string) {
	t.Helper()
	files, err := os.ReadDir(pids)
	if err != nil || len(files) == 0 {
		t.Fatalf("no process was started: %v", err)
	}
	for _, f := range files {
		pid, err := strconv.Atoi(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for range 100 { // a killed process is there until its new parent has seen it
			if syscall.Kill(pid, 0) != nil || isZombie(pid) {
				pid = 0
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if pid != 0 {
			t.Errorf("process %d lives on", pid)
		}
	}
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		answer, expected string
		want             bool
	}{
		{"ok", "ok", true}, {"ok 7 0", "ok 7 0", true}, {"ok 7 0 and so on", "ok 7 0", true},
		{"ok  7\t0\r", "ok 7 0", true}, {"ok 7", "ok 7 0", false}, {"ok 70 0", "ok 7 0", false},
		{"ok 07 0", "ok 7 0", false}, {"okay", "ok", false}, {"refused: no", "refused", false},
		{"refused no", "ok|refused", true}, {"lost failed", "refused|lost completed", false},
		{"", "ok", false}, {"OK", "ok", false},
	} {
		if got := fits(c.answer, c.expected); got != c.want {
			t.Errorf("%q fits %q: %v", c.answer, c.expected, got)
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", lineBytesMax)
	for _, c := range []struct {
		writes, want []string
		part         string
	}{
		{[]string{"one\ntwo\n"}, []string{"one", "two"}, ""},
		{[]string{"o", "ne\nt", "wo"}, []string{"one"}, "two"},
		{[]string{"one\r\n", "\n"}, []string{"one", ""}, ""},
		{[]string{long[1:] + "\n"}, []string{long[1:]}, ""},
		{[]string{long}, nil, long},
		{[]string{long, "\nshort\n"}, []string{"LONG " + long, "short"}, ""},
		{[]string{long + "yz", "\nshort\n"}, []string{"LONG " + long + "yz", "", "short"}, ""},
	} {
		var got []string
		l := lines{each: func(s said) error {
			if s.long {
				s.line = "LONG " + s.line
			}
			got = append(got, s.line)
			return nil
		}}
		for _, text := range c.writes {
			if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%.20q: wrote %d, %v", text, n, err)
			}
		}
		if !slices.Equal(got, c.want) || string(l.part) != c.part {
			t.Errorf("%.20q: %.40q and %.20q, want %.40q and %.20q", c.writes, got, l.part, c.want, c.part)
		}
	}
	closed := lines{each: func(said) error { return errUnheard }}
	if _, err := closed.Write([]byte("text\n")); err != errUnheard {
		t.Errorf("nobody listens, and the writer is told %v", err)
	}
}
