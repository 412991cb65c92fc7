//go:build unix

package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// canned is a stage in round 3 with one process, which answers what it is given, whatever it is asked.
func canned(t *testing.T, mode string, answers ...string) *stage {
	t.Helper()
	c := checker{dir: t.TempDir()}
	c.Command = shell(`for answer; do read request; echo "$answer"; done; read request`)
	c.Command = append(c.Command, "sh", "ok charge")
	c.Command, c.Timeout = append(c.Command, answers...), 10*time.Second
	s, err := c.newStage(t.Context(), "canned")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	s.mode, s.players, s.round = mode, 1, 3
	if err := s.enter(1); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestScript(t *testing.T) {
	const script = `
		grant ann 7 key-1 -> ok
		create job-1 ann 7 MODE @60 -> ok|refused -- why not
		notify job-1 failed -> won failed
		balance ann -> ok 0 HELD7 -- it is open`
	for _, c := range []struct{ mode, answers, want, sent string }{
		{"charge", "ok/ok/won failed/ok 0 0", "", "balance ann.3"},
		{"hold", "ok so/refused/won failed once/ok 0 7 of 7", "", "balance ann.3"},
		{"hold", "busy/busy/ok/ok/won failed/ok 0 7", "", "balance ann.3"},
		{"hold", "ok/ok/won failed/ok 0 0", `"balance ann.3" was answered "ok 0 0", expected "ok 0 7": it is open`,
			"balance ann.3"},
		{"charge", "ok/lost failed/lost failed/ok 7 0", `"create job-1.3 ann.3 7 charge 3060" was answered ` +
			`"lost failed", expected "ok" or "refused": why not; ` +
			`"balance ann.3" was answered "ok 7 0", expected "ok 0 0": it is open`, "balance ann.3"},
		{"hold", "ok/won failed", `"create job-1.3 ann.3 7 hold 3060" was answered "won failed", expected "ok" ` +
			`or "refused": why not; process 1 ended when it was asked "notify job-1.3 failed": exit status 0`,
			"notify job-1.3 failed"},
	} {
		s := canned(t, c.mode, strings.Split(c.answers, "/")...)
		if err := s.play(script); (c.want == "") != (err == nil) || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.answers, err, c.want)
		}
		if last := s.steps[len(s.steps)-1]; last.Sent != c.sent || last.Process != 1 {
			t.Errorf("%s: the last step is %v, want %s", c.answers, last, c.sent)
		}
	}
}

// The processes take turns, and a kill replaces them.
func TestTurns(t *testing.T) {
	s := canned(t, "charge", "ok", "ok", "ok")
	s.players = 2
	if err := s.play("sweep -> ok\nsweep -> ok\nsweep -> ok\nkill\nsweep -> ok\nsweep -> ok"); err != nil {
		t.Fatal(err)
	}
	var turns []int
	for _, step := range s.steps {
		turns = append(turns, step.Process)
	}
	if want := []int{1, 2, 1, 4, 3}; !slices.Equal(turns, want) {
		t.Errorf("the requests went to processes %v, want %v", turns, want)
	}
}

// A process may finish what it does when its stdin ends; a kill leaves it no time.
func TestEndOfStdin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ended")
	t.Setenv("ENDED", file)
	for _, c := range []struct {
		end  func(*stage)
		want bool
	}{{(*stage).killAll, false}, {(*stage).close, true}} {
		s := canned(t, "charge")
		s.checker.Command = shell("while read request; do echo ok charge; done; echo > $ENDED")
		s.killAll()
		if err := s.enter(3); err != nil {
			t.Fatal(err)
		}
		c.end(s)
		if _, err := os.Stat(file); (err == nil) != c.want {
			t.Errorf("the process went on to its end: %v, want %v", err == nil, c.want)
		}
	}
}

// repliesOf makes replies of "request = answer" texts, separated by slashes.
func repliesOf(text string) (list []reply) {
	for part := range strings.SplitSeq(text, "/") {
		request, answer, _ := strings.Cut(part, " = ")
		list = append(list, reply{request, answer})
	}
	return list
}

func TestWinner(t *testing.T) {
	const won, lost = "notify j failed = won failed", "notify j failed = lost failed"
	for _, c := range []struct{ replies, outcome, told string }{
		{won, "failed", ""},
		{lost + "/" + won + "/" + lost, "failed", ""},
		{"notify j completed = lost failed/" + won, "failed", ""},
		{"notify j completed = won completed/notify j failed = lost completed", "completed", ""},
		{lost, "", `"lost failed" once`},
		{won + "/" + won, "", `"won failed" 2 times`},
		{won + "/notify j completed = won completed", "", `"won completed" once, "won failed" once`},
		{won + "/notify j completed = lost completed", "", `"lost completed" once, "won failed" once`},
		{won + "/notify j completed = lost", "", `"lost" once, "won failed" once`},
		{"notify j completed = won failed/" + lost, "", `"lost failed" once, "won failed" once`},
		{won + "/notify j failed = refused database is locked", "", `"refused" once, "won failed" once`},
	} {
		outcome, err := winner(repliesOf(c.replies))
		if outcome != c.outcome || (err == nil) != (c.told == "") ||
			err != nil && !strings.Contains(err.Error(), "were answered "+c.told+"; ") {
			t.Errorf("%s: %q, %v", c.replies, outcome, err)
		}
	}
}

func TestCreated(t *testing.T) {
	for _, c := range []struct {
		replies string
		want    int
		fault   string
	}{
		{"create = ok/create = ok", 2, ""},
		{"create = ok/create = refused too few/create = refused", 1, ""},
		{"create = ok/create = refused", 2, `"ok" once, "refused" once; expected ok 2 times, refused never`},
		{"create = ok/create = ok", 1, `were answered "ok" 2 times; expected ok once, refused once`},
		{"create = ok/create = won failed", 1, `were answered "ok" once, "won failed" once`},
	} {
		err := created(repliesOf(c.replies), c.want)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v", c.replies, err)
		}
	}
}

// A race between sweeps and reports is won by one of them, and the balance shows by which.
func TestSweptOrEnded(t *testing.T) {
	for _, c := range []struct{ replies, balance, want string }{
		{"sweep = ok/notify j completed = lost timed_out", "ok 7 0", ""},
		{"sweep = ok/notify j completed = lost timed_out", "ok 0 0", `"ok 7 0": the job ended as timed_out`},
		{"notify j completed = won completed/sweep = ok", "ok 0 0", ""},
		{"notify j completed = won completed/sweep = ok", "ok 7 0", `"ok 0 0": the job ended as completed`},
		{"sweep = ok/notify j completed = won completed/notify j completed = lost timed_out", "",
			`2 reports of one job's end, at once, were answered "lost timed_out" once, "won completed" once;`},
		{"sweep = ok/notify j completed = lost completed", "", `answered "lost completed" once`},
	} {
		err := canned(t, "charge", c.balance).sweptOrEnded(repliesOf(c.replies))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.replies, err)
		}
	}
}

func TestWorst(t *testing.T) {
	a, b, other := faultf("a"), faultf("b"), errors.New("other")
	for want, errs := range map[string][]error{
		"<nil>": {nil, nil}, "a": {nil, a, nil}, "a; b": {a, b, a}, "other": {a, other, b},
	} {
		if got := fmt.Sprint(worst(errs...)); got != want {
			t.Errorf("%v: %s, want %s", errs, got, want)
		}
	}
	ended := &fault{text: "it ended", ended: true}
	if f, ok := errors.AsType[*fault](worst(nil, ended)); !ok || !f.ended {
		t.Error("worst forgets that a process ended")
	}
}
