package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func auditCommand() *cli.Command {
	return &cli.Command{
		Name:        "audit",
		UsageText:   "jobledger audit\njobledger audit --quiescent",
		Usage:       "check every invariant, changing nothing",
		Description: "Exits with 8 if one is broken, and names each broken row.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quiescent", Usage: "work has stopped: nothing may be held, no job may be open"},
		},
		Action: runAudit,
	}
}

func runAudit(c *cli.Context) error {
	r, err := with(c, func(ctx context.Context, l *ledger.Ledger) (ledger.AuditReport, error) {
		return l.Audit(ctx, ledger.AuditParams{Quiescent: c.Bool("quiescent")})
	})
	if err != nil {
		return err
	}
	if err := show(c, r, func(w io.Writer) { printAudit(w, &r) }); err != nil {
		return err
	}
	return broken(&r)
}

// broken is the error of an audit that found something, or nil.
func broken(r *ledger.AuditReport) error {
	if r.OK {
		return nil
	}
	var names []string
	for _, check := range r.Checks {
		if !check.OK {
			names = append(names, check.Name)
		}
	}
	return &ledger.Error{
		Code: ledger.Inconsistent,
		Message: fmt.Sprintf("audit: %d of %d checks found violations: %s",
			len(names), len(r.Checks), strings.Join(names, ", ")),
	}
}

// printAudit writes a line for each check, and under a broken one a line for each broken row.
func printAudit(w io.Writer, r *ledger.AuditReport) {
	for _, check := range r.Checks {
		if check.OK {
			fmt.Fprintf(w, "ok      %s\n", check.Name)
			continue
		}
		fmt.Fprintf(w, "BROKEN  %s\n", check.Name)
		for _, v := range check.Violations {
			fmt.Fprintf(w, "          %s\n", violation(v))
		}
	}
}

// violation names a broken row and says what is wrong with it.
func violation(v ledger.Violation) string {
	var parts []string
	for name, value := range v {
		if name != "problem" {
			parts = append(parts, fmt.Sprintf("%s %v", name, value))
		}
	}
	problem := fmt.Sprint(v["problem"])
	if len(parts) > 0 {
		slices.Sort(parts)
		problem = strings.Join(parts, ", ") + ": " + problem
	}
	return printable(problem)
}
