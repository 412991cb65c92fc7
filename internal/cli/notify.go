package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func notifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "notify",
		ArgsUsage: "ID OUTCOME",
		UsageText: "jobledger notify j1 failed --source callback --reason 'no GPU'\n" +
			"jobledger notify j2 completed --cost 5",
		Usage: "report how a job ended",
		Description: "The first report settles the job and moves its credits; every later one is told who did " +
			"and moves nothing, which is no error. The outcome is one of " + join(ledger.Outcomes) + ".",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "source", Value: string(ledger.Operator), Usage: "`WHO` reports: " + join(sources)},
			&cli.StringFlag{Name: "attempt", Usage: "which attempt it is about, from 1 (`N`)"},
			&cli.StringFlag{Name: "upstream-id", Usage: "the provider's `ID` of the attempt"},
			&cli.StringFlag{Name: "cost", Usage: "the actual `AMOUNT` of a completed job, 0 to its cost"},
			&cli.StringFlag{Name: "reason", Usage: "a `TEXT` for the journal"},
		},
		Action: runNotify,
	}
}

var sources = []ledger.Source{ledger.Callback, ledger.Poll, ledger.Operator}

func runNotify(c *cli.Context) error {
	r, err := report(c)
	if err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.Settlement, error) {
		return l.Settle(ctx, r)
	}, func(w io.Writer, s *ledger.Settlement) { printSettlement(w, s) })
}

// report reads a report from the arguments.
func report(c *cli.Context) (ledger.Report, error) {
	r := ledger.Report{
		Job:        c.Args().Get(0),
		Outcome:    ledger.Outcome(c.Args().Get(1)),
		Source:     ledger.Source(c.String("source")),
		UpstreamID: c.String("upstream-id"),
		Reason:     c.String("reason"),
	}
	var errs [2]error
	if c.IsSet("attempt") {
		r.Attempt, errs[0] = count(c, "attempt", 1, ledger.AmountMax)
	}
	r.Cost, errs[1] = actualCost(c)
	return r, checks(ledger.CheckID("id", r.Job), oneOf("outcome", r.Outcome, ledger.Outcomes...),
		oneOf("source", r.Source, sources...), errs[0], givenID(c, "upstream-id"), errs[1])
}

// actualCost reads --cost: an amount, or 0 for a job that cost nothing in the end.
func actualCost(c *cli.Context) (*int64, error) {
	if !c.IsSet("cost") {
		return nil, nil
	}
	if c.Args().Get(1) != string(ledger.Completed) {
		return nil, usage("cost", "cost: only a completed job has an actual cost")
	}
	if c.String("cost") == "0" {
		return new(int64), nil
	}
	n, err := ledger.ParseAmount("cost", c.String("cost"))
	return &n, err
}

// printSettlement says what a report did or, if it came too late, who had settled the job.
func printSettlement(w io.Writer, s *ledger.Settlement) {
	j := &s.Job
	if s.Won {
		fmt.Fprintf(w, "%s for job %s on %s (%s)", moved(s), j.ID, j.Owner, j.Status)
	} else {
		fmt.Fprintf(w, "nothing moved: %s; this report, %s, is a %s", settledBy(s), s.Reported, s.Verdict)
	}
	fmt.Fprintf(w, ": %s\n", standing(&s.Balance))
}

// settledBy says who settled a job, how and when.
func settledBy(s *ledger.Settlement) string {
	j := &s.Job
	if j.SettledSource == nil {
		return fmt.Sprintf("job %s is %s", j.ID, j.Status)
	}
	return fmt.Sprintf("%s settled job %s as %s at %s (%s)",
		*j.SettledSource, j.ID, j.Status, clock(j.SettledAt, ""), moved(s))
}

// moved says what became of the cost of a settled job.
func moved(s *ledger.Settlement) string {
	switch {
	case s.Returned == 0:
		return fmt.Sprintf("used %d", s.Consumed)
	case s.Consumed == 0:
		return fmt.Sprintf("returned %d", s.Returned)
	}
	return fmt.Sprintf("used %d, returned %d", s.Consumed, s.Returned)
}
