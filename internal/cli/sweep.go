package cli

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func sweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		UsageText: "jobledger sweep",
		Usage:     "expire lots that are due, time out jobs that nobody submitted",
		Description: "Run it from time to time. A job past its deadline that was submitted is left as it is, " +
			"because a provider may be at work on it: it is listed instead.",
		Action: runSweep,
	}
}

func runSweep(c *cli.Context) error {
	total, err := with(c, ledger.SweepAll)
	if err != nil {
		return err
	}
	if err := show(c, total, func(w io.Writer) { printSweep(w, &total) }); err != nil {
		return err
	}
	if n := len(total.Inconsistent); n > 0 {
		return &ledger.Error{
			Code:    ledger.Inconsistent,
			Message: fmt.Sprintf("sweep: contradictions left alone: %d, the first: %s", n, total.Inconsistent[0]),
		}
	}
	return nil
}

func printSweep(w io.Writer, r *ledger.SweepResult) {
	fmt.Fprintf(w, "expired lots: %d, jobs timed out: %d, jobs that need reconciliation: %d\n",
		r.ExpiredLots, r.TimedOut, len(r.NeedsReconciliation))
	for _, what := range r.Inconsistent {
		fmt.Fprintf(w, "left alone: %s\n", printable(what))
	}
	t := newTable("job", "owner", "#cost", "submission", "deadline")
	for i := range r.NeedsReconciliation {
		j := &r.NeedsReconciliation[i]
		t.AppendRow([]any{j.ID, j.Owner, j.Cost, j.Submission, clock(j.Deadline, "")})
	}
	printTable(w, t)
}
