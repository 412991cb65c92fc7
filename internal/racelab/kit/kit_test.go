//go:build unix

package kit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// TestMain lets this binary be ledgers that speak the protocol.
func TestMain(m *testing.M) {
	programs := map[string]func() error{"adapter": adapterMain, "sloppy": sloppyMain}
	program := programs[os.Args[len(os.Args)-1]]
	if program == nil {
		os.Exit(m.Run())
	}
	if err := program(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// selfOptions check a ledger that this binary is: jobledger itself, or the sloppy one.
func selfOptions(t *testing.T, program string, rounds int, only ...string) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Command: []string{self, program}, Rounds: rounds, Only: only, Timeout: time.Minute}
}

func TestJobledgerPasses(t *testing.T) {
	o := selfOptions(t, "adapter", 12)
	done := 0
	o.Progress = func(n, total int) {
		if done++; n != done || total != len(scenarios) {
			t.Errorf("progress is %d of %d at step %d", n, total, done)
		}
	}
	r, err := Run(t.Context(), o)
	if err != nil || !r.OK || r.Count(Passed) != len(scenarios) || done != len(scenarios) {
		t.Errorf("%v; ok %v, %d of %d passed", err, r.OK, r.Count(Passed), len(scenarios))
	}
	for _, s := range r.Scenarios {
		if s.Verdict != Passed || s.Detail != "" || s.Steps != nil {
			t.Errorf("%s: %s %s %v", s.Name, s.Verdict, s.Detail, s.Steps)
		}
	}
}

// Each scenario finds fault with a ledger that says one wrong thing.
func TestEveryScenarioCanFail(t *testing.T) {
	wrong := map[string][]string{
		"failures-race":        {`^notify .* -> lost failed => won failed`},
		"competing-ends":       {`^notify .* -> lost .* => lost canceled`},
		"already-completed":    {`^notify .* -> lost completed => lost failed`},
		"killed-in-notify":     {`^balance .* -> ok 56 0 => ok 49 0`},
		"unknown-job":          {`^notify .* -> refused.* => lost failed`},
		"unknown-owner":        {`^create .* -> refused.* => ok`},
		"missing-balance":      {`^notify .* -> refused.* => won failed`},
		"stray-refund":         {`^notify .* -> refused.* => lost failed`},
		"two-creates":          {`^balance .* -> ok 205 .* => ok 410 0`},
		"overspend":            {`^create .* -> refused.* => ok`},
		"two-completions":      {`^balance .* -> ok 205 0 => ok 205 205`, `^notify job-a.* => lost completed`},
		"own-hold":             {`^balance .* -> ok 0 205 => ok 0 0`},
		"own-credits":          {`^balance .* -> ok 0 0 => ok 205 0`},
		"repeated-failure":     {`^notify .* -> lost failed => won failed`},
		"failed-then-canceled": {`^notify .* canceled -> lost failed => won canceled`},
		"two-jobs":             {`^balance .* -> ok 20 0 => ok 27 0`},
		"spend-returned":       {`^create .* 2 .* -> refused.* => ok`},
		"create-twice":         {`^balance .* -> ok 100 0 => ok 93 0`},
		"grant-twice":          {`^balance .* -> ok 7 0 => ok 14 0`},
		"killed-in-create":     {`^balance .* -> ok 56 0 => ok 49 0`, `^notify .* -> won failed => lost failed`},
		"restart":              {`^notify .* -> lost failed => won failed`},
		"stale-attempt":        {`^notify .* 1 -> refused.* => won failed`},
		"expired-credits":      {`^balance .* -> ok 5 0 => ok 105 0`},
		"late-success":         {`^notify .* -> lost timed_out => won completed`},
		"sweep-race":           {`^notify .* -> lost .* => lost failed`},
	}
	for _, sc := range scenarios {
		if wrong[sc.name] == nil {
			t.Errorf("%s: no ledger fails it", sc.name)
		}
		for _, tampering := range wrong[sc.name] {
			t.Setenv(falsified, tampering)
			checkFails(t, sc.name)
		}
	}
}

func checkFails(t *testing.T, scenario string) {
	t.Helper()
	r, err := Run(t.Context(), selfOptions(t, "adapter", 8, scenario))
	if ledger.CodeOf(err) != ledger.Inconsistent || err.Error() != "1 of 1 scenarios failed: "+scenario ||
		r.OK || len(r.Scenarios) != 1 {
		t.Errorf("%s: %v", scenario, err)
		return
	}
	got := r.Scenarios[0]
	if got.Verdict != Failed || !strings.Contains(got.Detail, "expected") || len(got.Steps) == 0 {
		t.Errorf("%s: %+v", scenario, got)
	}
}

// The guards that the sloppy ledger leaves out, and the scenarios that must notice.
func TestSloppyLedgers(t *testing.T) {
	for fault, scenarios := range map[string]string{
		"keys":       "grant-twice",
		"attempts":   "stale-attempt",
		"ended":      "expired-credits own-credits",
		"any-lot":    "own-credits",
		"late":       "late-success sweep-race",
		"sweeps":     "sweep-race",
		"nowhere":    "missing-balance",
		"stray":      "stray-refund",
		"pays-first": "killed-in-create",
		"replaces":   "create-twice",
		"burns":      "unknown-owner",
		"trusts":     "unknown-job unknown-owner",
		"price":      "two-jobs two-completions",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Setenv(sloppyFault, fault)
			o := selfOptions(t, "sloppy", RoundsDefault, strings.Fields(scenarios)...)
			checkVerdicts(t, o, allAbilities, Failed)
		})
	}
	t.Run("none", func(t *testing.T) {
		o := selfOptions(t, "sloppy", 4)
		for _, sc := range scenarios {
			o.Only = append(o.Only, sc.name)
		}
		checkVerdicts(t, o, allAbilities, Passed)
	})
}

var allAbilities = strings.Fields("charge hold canceled keys attempts deadline expiry lose stray")

// failing is what each example must fail, and no other scenario.
var failing = map[string]string{
	"ledger_correct.py":      "",
	"ledger_two_commits.py":  "killed-in-notify",
	"ledger_process_flag.py": "failures-race competing-ends",
	"ledger_refund_always.py": "failures-race competing-ends already-completed killed-in-notify own-hold " +
		"repeated-failure failed-then-canceled create-twice restart",
	"ledger_lost_update.py": "two-creates overspend",
	"ledger_any_hold.py":    "competing-ends own-hold",
}

// Each example fails what it must with the rounds that a user gets, and nothing else.
func TestExamples(t *testing.T) {
	python := python(t)
	files, err := filepath.Glob("../../../examples/ledger_*.py")
	if err != nil || len(files) != len(failing) {
		t.Fatalf("%d examples, %v; want %d", len(files), err, len(failing))
	}
	for _, file := range files {
		must, known := failing[filepath.Base(file)]
		if !known || python == nil {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			o := Options{Command: append(slices.Clone(python), file), Timeout: time.Minute}
			if o.Only = strings.Fields(must); len(o.Only) > 0 {
				checkVerdicts(t, o, offered, Failed)
			}
			o.Only, o.Rounds = nil, 6
			for _, sc := range scenarios {
				if !slices.Contains(strings.Fields(must), sc.name) && len(sc.missing(offered)) == 0 {
					o.Only = append(o.Only, sc.name)
				}
			}
			checkVerdicts(t, o, offered, Passed)
		})
	}
}

// A broken example is the correct one but for a few lines, one of which is marked.
func TestExamplesDifferInTheirFault(t *testing.T) {
	const folder, marked, linesMax = "../../../examples/", "# the fault", 12
	correct, err := os.ReadFile(folder + "ledger_correct.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, must := range failing {
		text, err := os.ReadFile(folder + name)
		if err != nil {
			t.Fatal(err)
		}
		own := 0
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(string(correct), line) {
				own++
			}
		}
		if broken := must != ""; own > linesMax || strings.Contains(string(text), marked) != broken ||
			strings.HasPrefix(string(text), `"""BROKEN: `) != broken {
			t.Errorf("%s: %d lines of its own, or the fault is not marked", name, own)
		}
	}
}

// offered is what the examples can do.
var offered = []string{"charge", "hold", "canceled"}

// checkVerdicts wants the same of all scenarios.
func checkVerdicts(t *testing.T, o Options, offered []string, want Verdict) {
	t.Helper()
	r, err := Run(t.Context(), o)
	if len(r.Scenarios) != len(o.Only) || !slices.Equal(r.Abilities, offered) || r.OK != (err == nil) {
		t.Errorf("%d of %d scenarios, abilities %s, %v", len(r.Scenarios), len(o.Only), r.Abilities, err)
	}
	for _, s := range r.Scenarios {
		if s.Verdict != want {
			t.Errorf("%s: %s, want %s; %s", s.Name, s.Verdict, want, s.Detail)
		}
	}
}

// python finds an interpreter; where there is none it says so, and where CI=true it fails. Without site
// packages it starts several times faster.
func python(t *testing.T) []string {
	t.Helper()
	program, err := exec.Command("python3", "-c", "import sqlite3, sys; print(sys.executable)").Output()
	switch {
	case err == nil:
		return []string{strings.TrimSpace(string(program)), "-S"}
	case os.Getenv("CI") == "true":
		t.Fatalf("the examples need python3: %v", err)
	default:
		t.Logf("python3: not run: %v", err)
	}
	return nil
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*Options)
	}{
		{"command", func(o *Options) { o.Command = nil }},
		{"command", func(o *Options) { o.Command = []string{""} }},
		{"rounds", func(o *Options) { o.Rounds = -1 }},
		{"rounds", func(o *Options) { o.Rounds = RoundsMax + 1 }},
		{"timeout", func(o *Options) { o.Timeout = -time.Second }},
		{"timeout", func(o *Options) { o.Timeout = TimeoutMax + 1 }},
		{"only", func(o *Options) { o.Only = []string{"restart", "race"} }},
		{"only", func(o *Options) {
			o.Only, o.Command = []string{"stale-attempt"}, shell("read request; echo ok hold")
		}},
	} {
		o := selfOptions(t, "adapter", 1)
		c.change(&o)
		r, err := Run(t.Context(), o)
		if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.Invalid || e.Field != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
		if r.OK && len(r.Scenarios) == 0 {
			t.Errorf("%s: a report %+v", c.field, r)
		}
	}
}

// The document names every scenario and ability with the words of the code.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, s := range scenarios {
		needs := "-"
		if s.needs != nil {
			needs = strings.Join(s.needs, ", ")
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", s.name, s.shows, needs))
	}
	for _, a := range Abilities {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", a.Name, a.Means))
	}
	for _, row := range rows {
		if !strings.Contains(string(text), "\n"+row+"\n") {
			t.Errorf("no row %s", row)
		}
	}
}
