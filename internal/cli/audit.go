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
		Name: "audit",
		UsageText: "jobledger audit\njobledger audit --quiescent\n" +
			"jobledger audit --checkpoint monday.jsonl\njobledger audit --since monday.jsonl",
		Usage: "check every invariant, changing nothing",
		Description: "Exits with 8 if one is broken, and names each broken row.\n\n" +
			"An audit that found nothing writes with --checkpoint how far each owner's journal was read. With " +
			"--since, a later one reads the journals from there on, proves that they still lead through it and " +
			"end at the balances, and leaves out the checks that it names: what was damaged in rows that had been " +
			"audited before is found by a whole audit only.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quiescent", Usage: "work has stopped: nothing may be held, no job may be open"},
			&cli.StringFlag{Name: "checkpoint", Usage: "write into `FILE` how far the journals were audited"},
			&cli.StringFlag{Name: "since", Usage: "audit only what came after the checkpoint in `FILE`"},
		},
		Action: runAudit,
	}
}

func runAudit(c *cli.Context) error {
	p := ledger.AuditParams{Quiescent: c.Bool("quiescent")}
	var marks checkpointWriter
	var err error
	if c.IsSet("since") {
		p.Since, err = readCheckpoint("since", c.String("since"))
	}
	if c.IsSet("checkpoint") {
		p.Mark = marks.add
		err = checks(err, checkCheckpoint(c.String("checkpoint")))
	}
	if err != nil {
		return err
	}
	r, err := with(c, func(ctx context.Context, l *ledger.Ledger) (ledger.AuditReport, error) {
		return l.Audit(ctx, p)
	})
	if err != nil {
		return err
	}
	if p.Mark != nil && r.OK {
		if err := marks.replace(c.String("checkpoint")); err != nil {
			return err
		}
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
	if len(r.NotChecked) > 0 {
		left := strings.Join(r.NotChecked, ", ")
		fmt.Fprintf(w, "%s\n", wrap("not checked: entries up to the checkpoint, and "+left))
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
