package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"jobledger/internal/racelab/kit"
	"jobledger/ledger"
)

func labCheckCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		ArgsUsage: "COMMAND...",
		UsageText: "jobledger lab check -- python3 my_ledger.py\n" +
			"jobledger lab check --only failures-race,restart -- python3 my_ledger.py",
		Usage: "check somebody else's ledger",
		Description: "COMMAND is a program that keeps a ledger of its own and answers requests, one line each, " +
			"on stdin and stdout: docs/conformance.md has the protocol. Every scenario starts it several times on " +
			"a directory of its own, named by $" + kit.DirVariable + "; some race its processes, some kill them. " +
			"Exits with 8 if a scenario fails, with 1 if the command cannot be run.\n\n" +
			"Scenarios: " + strings.Join(scenarioNames(), ", ") + ".",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "only", Usage: "play these `SCENARIOS`, separated by commas; else all"},
			&cli.StringFlag{
				Name: "rounds", Value: fmt.Sprint(kit.RoundsDefault), Usage: "`N` races, or kills, per scenario",
			},
			&cli.StringFlag{
				Name: "timeout", Value: kit.TimeoutDefault.String(), Usage: "the longest `TIME` that an answer may take",
			},
		},
		Action: runLabCheck,
	}
}

func scenarioNames() (names []string) {
	for _, s := range kit.Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

func runLabCheck(c *cli.Context) error {
	o, err := checkOptions(c)
	if err != nil {
		return err
	}
	var clear func()
	o.Progress, clear = progress(c.App.ErrWriter, "checking")
	r, checked := kit.Run(c.Context, o)
	clear()
	if len(r.Scenarios) == 0 {
		return checked
	}
	return checks(show(c, r, func(w io.Writer) { printReport(w, &r) }), checked)
}

func checkOptions(c *cli.Context) (kit.Options, error) {
	o := kit.Options{Command: c.Args().Slice()}
	rounds, err := count(c, "rounds", 1, kit.RoundsMax)
	if err != nil {
		return o, err
	}
	o.Rounds = int(rounds)
	if o.Timeout, err = ledger.ParseSpan(c.String("timeout")); err != nil || o.Timeout <= 0 {
		return o, usage("timeout", "timeout: %q is not a time such as 10s or 500ms", c.String("timeout"))
	}
	if c.IsSet("only") {
		o.Only = strings.Split(c.String("only"), ",")
	}
	for _, name := range o.Only {
		if !slices.Contains(scenarioNames(), name) {
			return o, usage("only", "only: there is no scenario %q%s", name, didYouMean(name, scenarioNames()))
		}
	}
	return o, nil
}

var verdictWords = map[kit.Verdict]string{
	kit.Passed: "passed", kit.Failed: "FAILED", kit.NotOffered: "not offered",
}

// printReport writes a line for each scenario, then what was said where one failed.
func printReport(w io.Writer, r *kit.Report) {
	command := printable(strings.Join(r.Command, " "))
	fmt.Fprintf(w, "%s\n\n", wrap(command+" offers: "+strings.Join(r.Abilities, ", ")+"."))
	t := newTable("scenario", "verdict", "what must hold")
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: 45, WidthMaxEnforcer: text.WrapSoft}})
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		about := s.Shows
		if s.Verdict == kit.NotOffered {
			about = s.Detail
		}
		t.AppendRow([]any{s.Name, verdictWords[s.Verdict], about})
	}
	printTable(w, t)
	for i := range r.Scenarios {
		if r.Scenarios[i].Verdict == kit.Failed {
			printFailure(w, &r.Scenarios[i])
		}
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d not offered.\n",
		r.Count(kit.Passed), r.Count(kit.Failed), r.Count(kit.NotOffered))
}

// printFailure tells what was wrong, and the conversation that led to it.
func printFailure(w io.Writer, s *kit.Result) {
	fmt.Fprintf(w, "\n%s\n\n", wrap("FAILED "+s.Name+": "+printable(s.Detail)))
	t := newTable("#process", "sent", "answered")
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 1, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 3, WidthMax: 34, WidthMaxEnforcer: text.WrapText},
	})
	for _, step := range s.Steps {
		answered := "nothing"
		if step.Answered != "" {
			answered = printable(step.Answered)
		}
		t.AppendRow([]any{step.Process, step.Sent, answered})
	}
	printTable(w, t)
}
