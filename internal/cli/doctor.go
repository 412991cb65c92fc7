package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/internal/providers"
	"jobledger/ledger"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:      "doctor",
		UsageText: "jobledger doctor\njobledger doctor --providers providers.json",
		Usage:     "look at the database and at what it stands on, changing nothing",
		Description: "Says what is wrong and what to do about it. A warning: it works, but is weaker than it " +
			"should be or waits for somebody. A problem: nothing can be written, or the data is damaged or a " +
			"crash may damage it. Exits with 8 if there is a problem. For up to ten seconds it audits, too; the " +
			"rows that audit finds broken it names itself.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "providers", Usage: "look for accepted jobs at providers that this `FILE` lacks"},
		},
		Action: runDoctor,
	}
}

func runDoctor(c *cli.Context) error {
	var known []string
	if c.IsSet("providers") {
		set, err := providers.Load(c.String("providers"))
		if err != nil {
			return err
		}
		known = set.Names()
	}
	e, err := ledger.Examine(c.Context, dbName(c), ledger.Options{}, known...)
	if err != nil {
		return err
	}
	if err := show(c, e, func(w io.Writer) { printFindings(w, e.Findings) }); err != nil || e.OK {
		return err
	}
	names := atLevel(e.Findings, ledger.Problem)
	return &ledger.Error{
		Code:    ledger.Inconsistent,
		Message: fmt.Sprintf("doctor: problems: %d: %s", len(names), strings.Join(names, ", ")),
	}
}

func atLevel(findings []ledger.Finding, level ledger.Level) (names []string) {
	for _, f := range findings {
		if f.Level == level {
			names = append(names, f.Name)
		}
	}
	return names
}

// printFindings writes a line for each finding, and what to do under it; what needs somebody stands out.
func printFindings(w io.Writer, findings []ledger.Finding) {
	for _, f := range findings {
		level := string(f.Level)
		if f.Level != ledger.Fine {
			level = strings.ToUpper(level)
		}
		fmt.Fprintf(w, "%-7s  %s: %s\n", level, f.Name, printable(f.Message))
		if f.Advice != "" {
			fmt.Fprintf(w, "         to do: %s\n", printable(f.Advice))
		}
	}
	fmt.Fprintf(w, "checks: %d, problems: %d, warnings: %d\n", len(findings),
		len(atLevel(findings, ledger.Problem)), len(atLevel(findings, ledger.Warning)))
}
