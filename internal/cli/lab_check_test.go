//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"jobledger/internal/racelab/kit"
)

// thrifty is a program that grants, and never creates a job: it is right about owners without credits,
// and about little else. careless misspells an answer.
const (
	thrifty = "while read request words; do case $request in hello) echo ok charge canceled;; " +
		"grant) echo ok;; balance) echo ok 5 0;; *) echo refused no \x1b jobs;; esac; done"
	careless = "while read request words; do " +
		"case $request in hello) echo ok charge;; *) echo refused:;; esac; done"
)

// labCheck runs lab check with flags on a program, as a user would.
func labCheck(t *testing.T, program string, flags ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	line := slices.Concat([]string{programName, "lab", "check"}, flags, []string{"--", "sh", "-c", program})
	exit = Run(t.Context(), Program{Args: line, Stdout: &out, Stderr: &errs})
	return exit, out.String(), errs.String()
}

func TestLabCheckIsReadable(t *testing.T) {
	exit, out, errs := labCheck(t, thrifty, "--rounds=1")
	if exit != 8 || !strings.HasPrefix(errs, "jobledger: ") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d: %s", exit, errs)
	}
	for _, want := range []string{
		"offers: charge, canceled.\n", "\nSCENARIO              VERDICT      WHAT MUST HOLD\n",
		"\nunknown-owner         passed       no credits, no job, no refund for it\n",
		"\nrestart               FAILED       what was answered outlives its process\n",
		"\nown-credits           not offered  needs hold, expiry\n",
		"\nFAILED restart: \"create job-1.1 ann.1 7 charge\" was answered \"refused",
		"\nPROCESS  SENT                           ANSWERED\n      1  grant ann.1 7 key-1.1          ok\n",
		"  refused no \\x1b jobs\n",
		"\n1 passed, ", " not offered.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("the program can steer the terminal")
	}
}

func TestLabCheckJSON(t *testing.T) {
	exit, out, errs := labCheck(t, careless, "--json", "--only=unknown-owner,stale-attempt")
	var r kit.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || exit != 8 || len(r.Scenarios) != 2 {
		t.Fatalf("exit %d, %v: %s%s", exit, err, out, errs)
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(out), &document); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ok", "command", "abilities", "scenarios"} {
		if _, ok := document[name]; !ok || len(document) != 4 {
			t.Errorf("%v, want 4 fields, among them %s", document, name)
		}
	}
	failed, _ := document["scenarios"].([]any)[0].(map[string]any)
	for _, name := range []string{"name", "shows", "verdict", "detail", "steps"} {
		if _, ok := failed[name]; !ok || len(failed) != 5 {
			t.Errorf("%v, want 5 fields, among them %s", failed, name)
		}
	}
	if r.OK || r.Scenarios[0].Verdict != kit.Failed || r.Scenarios[1].Verdict != kit.NotOffered ||
		!strings.Contains(errs, `"code":"INCONSISTENT"`) {
		t.Errorf("%s%s", out, errs)
	}
}

func TestLabCheckExits(t *testing.T) {
	for _, c := range []struct {
		exit          int
		program, want string
		flags         []string
	}{
		{0, thrifty, "", []string{"--only", "unknown-owner"}},
		{8, careless, "1 of 1 scenarios failed: unknown-owner", []string{"--only", "unknown-owner"}},
		{1, "exit 3", `the command cannot be checked: process 1 ended when it was asked "hello": exit`, nil},
		{1, "sleep 9", `did not answer "hello" within 50ms`, []string{"--timeout", "50ms"}},
		{2, thrifty, "only: nothing was checked: stale-attempt needs", []string{"--only", "stale-attempt"}},
		{2, thrifty, `no scenario "restrat": did you mean restart?`, []string{"--only", "restrat"}},
		{2, thrifty, `only: there is no scenario ""`, []string{"--only", "restart,"}},
		{2, thrifty, "rounds: ", []string{"--rounds", "0"}},
		{2, thrifty, "rounds: ", []string{"--rounds", "10001"}},
		{2, thrifty, "timeout: ", []string{"--timeout", "0s"}},
		{2, thrifty, "timeout: ", []string{"--timeout", "soon"}},
		{2, thrifty, "timeout: ", []string{"--timeout", "2h"}},
	} {
		exit, out, errs := labCheck(t, c.program, c.flags...)
		if exit != c.exit || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") > 1 {
			t.Errorf("%s: exit %d, %s%s", c.flags, exit, out, errs)
		}
	}
}

func TestLabCheckNeedsACommand(t *testing.T) {
	var out, errs bytes.Buffer
	for _, line := range [][]string{{"lab", "check"}, {"lab", "check", "--only", "restart", "--"}} {
		errs.Reset()
		exit := Run(t.Context(), Program{Args: append([]string{programName}, line...), Stdout: &out, Stderr: &errs})
		if exit != 2 || out.Len() > 0 || errs.String() != "jobledger: missing argument COMMAND...: "+
			"jobledger lab check COMMAND...\n" {
			t.Errorf("%v: exit %d, %s%s", line, exit, &out, &errs)
		}
	}
}
