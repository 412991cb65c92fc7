// Package kit checks somebody else's credit ledger: it starts the program, speaks a protocol of lines
// with it, and plays the scenarios in which such ledgers lose money: races between processes, kills,
// restarts, repeated and contradicting reports.
//
// The protocol is described in docs/conformance.md. [Run] is the only way in; what the scenarios are is
// data, see [Scenarios].
package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
)

// The defaults and upper bounds of the options of the same names.
const (
	RoundsDefault  = 48
	RoundsMax      = 10_000
	TimeoutDefault = 10 * time.Second
	TimeoutMax     = time.Hour
)

// Options say what to check.
type Options struct {
	Command []string      // the program and its arguments
	Only    []string      // names of the scenarios to play; none: all
	Rounds  int           // races and kills per scenario, 1 to RoundsMax; 0: RoundsDefault
	Timeout time.Duration // for one answer, up to TimeoutMax; 0: TimeoutDefault

	// Progress, if set, hears of each scenario that is done, out of how many. Calls do not overlap.
	Progress func(done, total int)
}

// Verdict is what became of a scenario.
type Verdict string

// The verdicts. A scenario that needs an ability which the program does not name is not offered.
const (
	Passed     Verdict = "passed"
	Failed     Verdict = "failed"
	NotOffered Verdict = "not_offered"
)

// Step is one request and its answer.
type Step struct {
	Process  int    `json:"process"` // from 1, in the order in which they were started
	Sent     string `json:"sent"`
	Answered string `json:"answered"` // empty: nothing came back
}

// Result is the verdict on one scenario. Its JSON form is a contract.
type Result struct {
	Name    string  `json:"name"`
	Shows   string  `json:"shows"` // what must hold
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"`          // failed: what was wrong; not offered: what it needs
	Steps   []Step  `json:"steps,omitempty"` // failed: the last that was said, of one round
}

// Report is the verdict on a program. Its JSON form is a contract.
type Report struct {
	OK        bool     `json:"ok"` // no scenario failed
	Command   []string `json:"command"`
	Abilities []string `json:"abilities"` // as the program names them
	Scenarios []Result `json:"scenarios"`
}

// Count is how many scenarios have a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for i := range r.Scenarios {
		if r.Scenarios[i].Verdict == v {
			n++
		}
	}
	return n
}

// Run plays the scenarios, each in a directory and with processes of its own.
//
// Errors: INVALID, naming the option, also if no scenario could be played because the program does not
// offer what Only names; INTERNAL if the program cannot be started or does not answer hello as it
// should; INCONSISTENT, with the report, if a scenario failed; that of ctx if it ended. No process that
// Run started and no directory that it made outlives the call.
func Run(ctx context.Context, o Options) (Report, error) {
	list, err := o.check()
	if err != nil {
		return Report{}, err
	}
	dir, err := os.MkdirTemp("", "jobledger-check-")
	if err != nil {
		return Report{}, fmt.Errorf("check: scratch directory: %w", err)
	}
	defer os.RemoveAll(dir)
	c := checker{Options: o, dir: dir}
	r, err := c.run(ctx, list)
	if ctx.Err() != nil {
		return Report{}, fmt.Errorf("the check was stopped before its end: %w", ctx.Err())
	}
	return r, err
}

// check fills in the defaults and gives the scenarios to play.
func (o *Options) check() ([]scenario, error) {
	if o.Rounds == 0 {
		o.Rounds = RoundsDefault
	}
	if o.Timeout == 0 {
		o.Timeout = TimeoutDefault
	}
	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		return nil, ledger.InvalidField("command", "there is none")
	case o.Rounds < 1 || o.Rounds > RoundsMax:
		return nil, ledger.InvalidField("rounds", "%d is out of range; it takes 1 to %d", o.Rounds, RoundsMax)
	case o.Timeout < 0 || o.Timeout > TimeoutMax:
		return nil, ledger.InvalidField("timeout", "%s is out of range; it takes up to %s", o.Timeout, TimeoutMax)
	case len(o.Only) == 0:
		return scenarios, nil
	}
	var list []scenario
	for _, name := range o.Only {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, ledger.InvalidField("only", "there is no scenario %q", name)
		}
		list = append(list, scenarios[i])
	}
	return list, nil
}

// checker is one run.
type checker struct {
	Options
	dir       string
	abilities []string
}

func (c *checker) run(ctx context.Context, list []scenario) (Report, error) {
	var err error
	if c.abilities, err = c.probe(ctx); err != nil {
		message := "the command cannot be checked: " + err.Error()
		return Report{}, &ledger.Error{Code: ledger.Internal, Message: message}
	}
	r := Report{OK: true, Command: c.Command, Abilities: c.abilities}
	for i := range list {
		result, err := c.judge(ctx, &list[i])
		if err != nil {
			return Report{}, err
		}
		r.Scenarios = append(r.Scenarios, result)
		r.OK = r.OK && result.Verdict != Failed
		if c.Progress != nil {
			c.Progress(i+1, len(list))
		}
	}
	return r, r.err()
}

// probe starts the program once and learns what it offers.
func (c *checker) probe(ctx context.Context) ([]string, error) {
	s, err := c.newStage(ctx, "hello")
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.enter(1); err != nil {
		return nil, err
	}
	return s.cast[0].abilities, nil
}

// judge plays a scenario in each mode that the program offers and the scenario is about.
func (c *checker) judge(ctx context.Context, sc *scenario) (Result, error) {
	r := Result{Name: sc.name, Shows: sc.shows, Verdict: Passed}
	if missing := sc.missing(c.abilities); len(missing) > 0 {
		r.Verdict, r.Detail = NotOffered, "needs "+strings.Join(missing, ", ")
		return r, nil
	}
	s, err := c.newStage(ctx, sc.name)
	if err != nil {
		return r, err
	}
	defer s.close()
	modes := sc.modes(c.abilities)
	s.rounds = (c.Rounds + len(modes) - 1) / len(modes)
	for _, mode := range modes {
		s.mode = mode
		err := sc.playOn(s)
		if f, ok := errors.AsType[*fault](err); ok {
			r.Verdict, r.Detail, r.Steps = Failed, f.text, s.lastSteps()
			break
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// err is INCONSISTENT if a scenario failed, INVALID if none was played, or nil.
func (r *Report) err() error {
	var failed, missing []string
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		switch s.Verdict {
		case Failed:
			failed = append(failed, s.Name)
		case NotOffered:
			missing = append(missing, s.Name+" "+s.Detail)
		}
	}
	switch {
	case len(failed) > 0:
		return &ledger.Error{Code: ledger.Inconsistent, Message: fmt.Sprintf("%d of %d scenarios failed: %s",
			len(failed), len(r.Scenarios)-len(missing), strings.Join(failed, ", "))}
	case len(missing) == len(r.Scenarios):
		return ledger.InvalidField("only", "nothing was checked: %s, which the command does not offer",
			strings.Join(missing, "; "))
	}
	return nil
}
