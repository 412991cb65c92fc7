package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func jobCommand() *cli.Command {
	return family("job", "jobledger job create j1 --owner alice --cost 7",
		"create, submit, look at and cancel jobs",
		jobCreateCommand(),
		jobSubmitCommand(),
		jobAcceptedCommand(),
		jobRejectedCommand(),
		jobUncertainCommand(),
		jobShowCommand(),
		jobListCommand(),
		jobExplainCommand(),
		jobCancelCommand(),
		jobSettleCommand(),
	)
}

func jobCreateCommand() *cli.Command {
	return &cli.Command{
		Name:      "create",
		ArgsUsage: "ID",
		UsageText: "jobledger job create j1 --owner alice --cost 7\n" +
			"jobledger job create j2 --owner alice --cost 7 --mode charge --deadline 24h",
		Usage: "make a job and take its cost from the owner's credits",
		Description: "In mode hold the cost is held now, and used or released when the job ends. In mode " +
			"charge it is used now, and refunded if the job fails. The same command again takes nothing more.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "owner", Required: true, Usage: "the `OWNER` who pays"},
			&cli.StringFlag{Name: "cost", Required: true, Usage: "the `AMOUNT` that the job costs"},
			&cli.StringFlag{Name: "mode", Value: string(ledger.ModeHold), Usage: "the `MODE`: hold or charge"},
			&cli.StringFlag{Name: "deadline", Usage: "time out at this `TIME` (or 24h), unless submitted"},
			&cli.StringFlag{Name: "metadata", Usage: "a `JSON` object to keep with the job"},
		},
		Action: runJobCreate,
	}
}

func runJobCreate(c *cli.Context) error {
	p := ledger.JobParams{
		ID:    c.Args().First(),
		Owner: c.String("owner"),
		Mode:  ledger.Mode(c.String("mode")),
	}
	var errs [3]error
	p.Cost, errs[0] = ledger.ParseAmount("cost", c.String("cost"))
	p.Deadline, errs[1] = when(c, "deadline")
	p.Metadata, errs[2] = metadata(c)
	if err := checks(ledger.CheckID("id", p.ID), ledger.CheckID("owner", p.Owner), errs[0],
		oneOf("mode", p.Mode, ledger.ModeHold, ledger.ModeCharge), errs[1], errs[2]); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.JobResult, error) {
		return l.CreateJob(ctx, p)
	}, func(w io.Writer, r *ledger.JobResult) {
		did := "held"
		if r.Job.Mode == ledger.ModeCharge {
			did = "charged"
		}
		if r.Replayed {
			fmt.Fprintf(w, "job %s was created before (%s %d on %s) and is %s now: %s\n",
				r.Job.ID, did, r.Job.Cost, r.Job.Owner, r.Job.Status, standing(&r.Balance))
			return
		}
		fmt.Fprintf(w, "%s %d for job %s on %s: %s\n",
			did, r.Job.Cost, r.Job.ID, r.Job.Owner, standing(&r.Balance))
	})
}

func jobShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		ArgsUsage: "ID",
		UsageText: "jobledger job show j1",
		Usage:     "show one job and its attempts",
		Action:    runJobShow,
	}
}

func runJobShow(c *cli.Context) error {
	story, err := storyOf(c)
	if err != nil {
		return err
	}
	answer := struct {
		Job ledger.Job `json:"job"`
	}{story.Job}
	return show(c, answer, func(w io.Writer) {
		printJob(w, &story.Job)
		if len(story.Attempts) > 0 {
			fmt.Fprintln(w)
			printAttempts(w, story.Attempts)
		}
	})
}

// storyOf reads all that the ledger knows of the job that the command names.
func storyOf(c *cli.Context) (ledger.Story, error) {
	id := c.Args().First()
	if err := ledger.CheckID("id", id); err != nil {
		return ledger.Story{}, err
	}
	return with(c, func(ctx context.Context, l *ledger.Ledger) (ledger.Story, error) {
		return l.Explain(ctx, id)
	})
}

// printJob writes the fields of a job that have a value.
func printJob(w io.Writer, j *ledger.Job) {
	t := newTable("", "")
	t.ResetHeaders()
	add := func(name string, value any) { t.AppendRow([]any{name, value}) }
	add("job", j.ID)
	add("owner", j.Owner)
	add("status", j.Status)
	add("mode", j.Mode)
	add("cost", j.Cost)
	add("attempt", j.Attempt)
	add("submission", j.Submission)
	if j.SettledCost != nil {
		add("settled cost", *j.SettledCost)
		add("settled by", *j.SettledSource)
		add("settled at", clock(j.SettledAt, ""))
	}
	if j.Reason != "" {
		add("reason", printable(j.Reason))
	}
	add("deadline", clock(j.Deadline, "none"))
	add("created at", clock(&j.CreatedAt, ""))
	if j.Metadata != "{}" {
		add("metadata", printable(string(j.Metadata)))
	}
	printTable(w, t)
}

func jobListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		UsageText: "jobledger job list --owner alice --status pending",
		Usage:     "list jobs in the order of their ids",
		Flags: pageFlags("job with this `ID`",
			&cli.StringFlag{Name: "owner", Usage: "only this `OWNER`'s"},
			&cli.StringFlag{Name: "status", Usage: "only in this `STATUS`, such as pending or failed"},
		),
		Action: runJobList,
	}
}

func statuses() []ledger.Status {
	list := []ledger.Status{ledger.Pending, ledger.Processing}
	for _, o := range ledger.Outcomes {
		list = append(list, ledger.Status(o))
	}
	return list
}

func runJobList(c *cli.Context) error {
	f := ledger.JobFilter{
		Owner:  c.String("owner"),
		Status: ledger.Status(c.String("status")),
		After:  c.String("after"),
	}
	var err error
	f.Limit, err = limit(c)
	if err := checks(givenID(c, "owner"), givenStatus(c), givenID(c, "after"), err); err != nil {
		return err
	}
	return listing[ledger.Job]{
		read: func(ctx context.Context, l *ledger.Ledger) ([]ledger.Job, error) {
			return l.Jobs(ctx, f)
		},
		most: f.Limit, after: func(j *ledger.Job) string { return j.ID },
		text: printJobs,
	}.show(c)
}

func givenStatus(c *cli.Context) error {
	if !c.IsSet("status") {
		return nil
	}
	return oneOf("status", ledger.Status(c.String("status")), statuses()...)
}

func printJobs(w io.Writer, list []ledger.Job) {
	t := newTable("job", "owner", "status", "mode", "#cost", "#settled")
	var cost, settled int64
	for i := range list {
		j := &list[i]
		var end any = ""
		if j.SettledCost != nil {
			settled += *j.SettledCost
			end = *j.SettledCost
		}
		cost += j.Cost
		t.AppendRow([]any{j.ID, j.Owner, j.Status, j.Mode, j.Cost, end})
	}
	if len(list) > 1 {
		t.AppendFooter([]any{"total", "", "", "", cost, settled})
	}
	printTable(w, t)
}

func jobCancelCommand() *cli.Command {
	return &cli.Command{
		Name:      "cancel",
		ArgsUsage: "ID",
		UsageText: "jobledger job cancel j1 --reason 'no longer wanted'",
		Usage:     "end a job and return its credits",
		Description: "Refused while nobody knows whether a provider took the job. A job that has ended " +
			"stays as it is, and the answer says how it ended.",
		Flags:  []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "a `TEXT` for the journal"}},
		Action: runJobCancel,
	}
}

func runJobCancel(c *cli.Context) error {
	id := c.Args().First()
	if err := ledger.CheckID("id", id); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.Settlement, error) {
		return l.Cancel(ctx, id, c.String("reason"))
	}, func(w io.Writer, s *ledger.Settlement) { printSettlement(w, s) })
}

func jobExplainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		ArgsUsage: "ID",
		UsageText: "jobledger job explain j1",
		Usage:     "tell the whole story of a job",
		Action:    runJobExplain,
	}
}

func runJobExplain(c *cli.Context) error {
	story, err := storyOf(c)
	if err != nil {
		return err
	}
	return show(c, story, func(w io.Writer) { printStory(w, &story) })
}

// printStory writes the job, what happened to it in order, and the journal lines of its credits.
func printStory(w io.Writer, s *ledger.Story) {
	printJob(w, &s.Job)
	heading := func(name string, rows int) bool {
		if rows > 0 {
			fmt.Fprintf(w, "\n%s\n", name)
		}
		return rows > 0
	}
	if heading("What happened:", len(s.Timeline)) {
		t := newTable("", "")
		t.ResetHeaders()
		t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: 56, WidthMaxEnforcer: text.WrapSoft}})
		for i := range s.Timeline {
			t.AppendRow([]any{"  " + clock(&s.Timeline[i].At, ""), printable(s.Timeline[i].Text)})
		}
		printTable(w, t)
	}
	if heading("What is open:", len(s.Open)) {
		for _, sentence := range s.Open {
			fmt.Fprintln(w, indent(wrap(printable(sentence))))
		}
	}
	if heading("Its entries:", len(s.Entries)) {
		printJournal(w, s.Entries)
	}
	if heading("Its lots:", len(s.Lots)) {
		printLots(w, s.Lots)
	}
}
