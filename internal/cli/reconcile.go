package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func reconcileCommand() *cli.Command {
	return family("reconcile", "jobledger reconcile list",
		"find out what became of submissions without a known outcome",
		reconcileListCommand(),
		reconcileAcceptCommand(),
		reconcileRejectCommand(),
	)
}

func reconcileListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		UsageText: "jobledger reconcile list",
		Usage:     "list the jobs that wait for somebody to ask their provider",
		Description: "Those that may be at a provider without a known answer, and those that were submitted " +
			"and are past their deadline. Each is decided on its own, with reconcile accept or reconcile reject.",
		Flags:  pageFlags("job with this `ID`"),
		Action: runReconcileList,
	}
}

func runReconcileList(c *cli.Context) error {
	most, err := limit(c)
	if err := checks(err, givenID(c, "after")); err != nil {
		return err
	}
	return listing[ledger.Unresolved]{
		read: func(ctx context.Context, l *ledger.Ledger) ([]ledger.Unresolved, error) {
			return l.UnresolvedJobs(ctx, c.String("after"), most)
		},
		most: most, after: func(u *ledger.Unresolved) string { return u.Job },
		none: "no job waits for reconciliation",
		text: printUnresolved,
	}.show(c)
}

// printUnresolved writes a line per job. What the provider said, or did not, takes the room that the
// other columns leave of 80.
func printUnresolved(w io.Writer, list []ledger.Unresolved) {
	t := newTable("job", "age", "submission", "#attempt", "provider/id", "#held", "reason")
	widths := []int{len("total"), 3, 10, 7, 11, 4}
	var held int64
	for i := range list {
		u := &list[i]
		handles := u.Provider
		if u.UpstreamID != nil {
			handles += "/" + *u.UpstreamID
		}
		row := table.Row{u.Job, age(u.AgeSeconds), u.Submission, u.Attempt, handles, u.Held}
		for k, cell := range row {
			widths[k] = max(widths[k], len(fmt.Sprint(cell)))
		}
		t.AppendRow(append(row, printable(u.Reason)))
		held += u.Held
	}
	if len(list) > 1 {
		t.AppendFooter(table.Row{"total", "", "", "", "", held, ""})
	}
	rest := 80
	for _, width := range widths {
		rest -= width + 2
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 4, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 6, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight},
		{Number: 7, WidthMax: max(rest, 12), WidthMaxEnforcer: text.WrapSoft},
	})
	printTable(w, t)
}

// age shows a span in its largest unit, rounded down.
func age(seconds int64) string {
	const minute, hour, day = 60, 3600, 86400
	switch {
	case seconds < minute:
		return fmt.Sprintf("%ds", max(seconds, 0))
	case seconds < hour:
		return fmt.Sprintf("%dm", seconds/minute)
	case seconds < day:
		return fmt.Sprintf("%dh", seconds/hour)
	}
	return fmt.Sprintf("%dd", seconds/day)
}

func reconcileAcceptCommand() *cli.Command {
	return &cli.Command{
		Name:      "accept",
		ArgsUsage: "ID",
		UsageText: "jobledger reconcile accept j1 --upstream-id gen-7f3 \\\n" +
			"  --evidence 'seen in the console at 14:05'",
		Usage: "record evidence that the provider took the job",
		Description: "The job stays open, and its report settles it. The same command again changes nothing; " +
			"with other content it is refused.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "upstream-id", Required: true, Usage: "the provider's `ID` of the attempt"},
			&cli.StringFlag{Name: "provider", Usage: "the `PROVIDER`, if none is on file"},
			evidenceFlag(),
			operatorFlag(),
		},
		Action: func(c *cli.Context) error {
			return runReconcile(c, ledger.CheckID("upstream-id", c.String("upstream-id")),
				(*ledger.Ledger).ReconcileAccept)
		},
	}
}

func reconcileRejectCommand() *cli.Command {
	return &cli.Command{
		Name:      "reject",
		ArgsUsage: "ID",
		UsageText: "jobledger reconcile reject j1 --evidence 'ticket 4711: no such job' --operator sue",
		Usage:     "record evidence that the provider has no such job, or will not finish it",
		Description: "Settles the job as failed and returns its credits. The same command again changes " +
			"nothing; with other content it is refused.",
		Flags:  []cli.Flag{evidenceFlag(), operatorFlag()},
		Action: func(c *cli.Context) error { return runReconcile(c, nil, (*ledger.Ledger).ReconcileReject) },
	}
}

func evidenceFlag() cli.Flag {
	return &cli.StringFlag{Name: "evidence", Required: true, Usage: "a `TEXT`: what was seen, and where"}
}

func operatorFlag() cli.Flag {
	return &cli.StringFlag{Name: "operator", Usage: "the `NAME` of who looked; without it the system's user"}
}

func runReconcile(
	c *cli.Context, wrong error,
	record func(*ledger.Ledger, context.Context, ledger.Reconciliation) (ledger.AnswerResult, error),
) error {
	r := ledger.Reconciliation{
		Job:        c.Args().First(),
		Provider:   c.String("provider"),
		UpstreamID: c.String("upstream-id"),
		Evidence:   c.String("evidence"),
	}
	var err error
	r.Operator, err = operator(c)
	if err := checks(ledger.CheckID("id", r.Job), wrong, givenID(c, "provider"),
		ledger.CheckEvidence("evidence", r.Evidence), err); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.AnswerResult, error) {
		return record(l, ctx, r)
	}, func(w io.Writer, result *ledger.AnswerResult) {
		printAnswer(w, result.Job.Attempt, string(result.Job.Submission), result)
	})
}

// operator names who reconciles: --operator, else the user as the system knows it.
func operator(c *cli.Context) (string, error) {
	if c.IsSet("operator") {
		return c.String("operator"), ledger.CheckID("operator", c.String("operator"))
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username, ledger.CheckID("operator", u.Username)
	}
	if name := os.Getenv("USER"); name != "" {
		return name, ledger.CheckID("operator", name)
	}
	return "", usage("operator", "operator: the system does not say who you are: name yourself with --operator")
}
