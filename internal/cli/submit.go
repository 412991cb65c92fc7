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

func jobSubmitCommand() *cli.Command {
	return &cli.Command{
		Name:      "submit",
		ArgsUsage: "ID",
		UsageText: "jobledger job submit j1 --provider acme",
		Usage:     "mark a job's next attempt, before its provider is called",
		Description: "Call the provider only after this command has succeeded, once, and record its answer " +
			"with job accepted, job rejected or job uncertain. While an attempt has no answer, or an " +
			"uncertain one, its job is not submitted again and nothing is returned.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "provider", Required: true, Usage: "the `PROVIDER` that will be called"},
		},
		Action: runJobSubmit,
	}
}

func runJobSubmit(c *cli.Context) error {
	id, provider := c.Args().First(), c.String("provider")
	if err := checks(ledger.CheckID("id", id), ledger.CheckID("provider", provider)); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.SubmitResult, error) {
		return l.Submit(ctx, id, provider)
	}, func(w io.Writer, r *ledger.SubmitResult) {
		fmt.Fprintf(w, "marked attempt %d of job %s at %s, %s: now call %s once, "+
			"then record its answer with job accepted, job rejected or job uncertain\n",
			r.Attempt, r.Job.ID, provider, stay(&r.Job), provider)
	})
}

// stay says that the credits of an open job are where they were.
func stay(j *ledger.Job) string {
	if j.Mode == ledger.ModeCharge {
		return fmt.Sprintf("%d stay used", j.Cost)
	}
	return fmt.Sprintf("%d stay held", j.Cost)
}

func jobAcceptedCommand() *cli.Command {
	return &cli.Command{
		Name:        "accepted",
		ArgsUsage:   "ID",
		UsageText:   "jobledger job accepted j1 --attempt 1 --upstream-id gen-7f3",
		Usage:       "record that the provider took an attempt",
		Description: "If a report came first and settled the job, the answer says how.",
		Flags: []cli.Flag{
			attemptFlag(),
			&cli.StringFlag{Name: "upstream-id", Required: true, Usage: "the provider's `ID` of the attempt"},
		},
		Action: func(c *cli.Context) error {
			upstream := c.String("upstream-id")
			return runAnswer(c, ledger.CheckID("upstream-id", upstream),
				func(ctx context.Context, l *ledger.Ledger, job string, attempt int64) (ledger.AnswerResult, error) {
					return l.Accepted(ctx, job, attempt, upstream)
				})
		},
	}
}

func jobRejectedCommand() *cli.Command {
	return &cli.Command{
		Name:      "rejected",
		ArgsUsage: "ID",
		UsageText: "jobledger job rejected j1 --attempt 1 --evidence 'status 422: no such model'\n" +
			"jobledger job rejected j2 --attempt 1 --evidence 'status 503: no capacity' --retry",
		Usage: "record that the provider refused an attempt",
		Description: "Settles the job as failed and returns its credits; with --retry the job stays open, " +
			"for another attempt under the same hold.",
		Flags: []cli.Flag{
			attemptFlag(),
			&cli.StringFlag{Name: "evidence", Required: true, Usage: "the `TEXT` of the refusal"},
			&cli.BoolFlag{Name: "retry", Usage: "leave the job open for another attempt"},
		},
		Action: func(c *cli.Context) error {
			evidence := c.String("evidence")
			return runAnswer(c, ledger.CheckEvidence("evidence", evidence),
				func(ctx context.Context, l *ledger.Ledger, job string, attempt int64) (ledger.AnswerResult, error) {
					return l.Rejected(ctx, job, attempt, evidence, c.Bool("retry"))
				})
		},
	}
}

func jobUncertainCommand() *cli.Command {
	return &cli.Command{
		Name:      "uncertain",
		ArgsUsage: "ID",
		UsageText: "jobledger job uncertain j1 --attempt 1 --reason 'connection reset after the request'",
		Usage:     "record that nobody knows whether the provider took an attempt",
		Description: "For a connection that broke, a timeout, an answer that makes no sense. Nothing is " +
			"returned, and nothing is submitted again, until a report or a reconciliation tells.",
		Flags: []cli.Flag{
			attemptFlag(),
			&cli.StringFlag{Name: "reason", Required: true, Usage: "a `TEXT` that says what went wrong"},
		},
		Action: func(c *cli.Context) error {
			reason := c.String("reason")
			return runAnswer(c, ledger.CheckEvidence("reason", reason),
				func(ctx context.Context, l *ledger.Ledger, job string, attempt int64) (ledger.AnswerResult, error) {
					return l.Uncertain(ctx, job, attempt, reason)
				})
		},
	}
}

func attemptFlag() cli.Flag {
	return &cli.StringFlag{Name: "attempt", Required: true, Usage: "which attempt it is about, from 1 (`N`)"}
}

// printAttempts writes a line per attempt, with who said so if that was not the provider itself.
func printAttempts(w io.Writer, list []ledger.Attempt) {
	t := newTable("#attempt", "provider", "upstream id", "submission", "operator", "evidence")
	for i := range list {
		a := &list[i]
		upstream := ""
		if a.UpstreamID != nil {
			upstream = *a.UpstreamID
		}
		t.AppendRow(table.Row{a.Attempt, a.Provider, upstream, a.Submission, a.Operator, printable(a.Evidence)})
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 1, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 6, WidthMax: 30, WidthMaxEnforcer: text.WrapSoft},
	})
	printTable(w, t)
}

// runAnswer records a provider's answer to one attempt; wrong is what is wrong with the answer itself.
func runAnswer(
	c *cli.Context, wrong error,
	record func(ctx context.Context, l *ledger.Ledger, job string, attempt int64) (ledger.AnswerResult, error),
) error {
	id := c.Args().First()
	attempt, err := count(c, "attempt", 1, ledger.AmountMax)
	if err := checks(ledger.CheckID("id", id), err, wrong); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.AnswerResult, error) {
		return record(ctx, l, id, attempt)
	}, func(w io.Writer, r *ledger.AnswerResult) { printAnswer(w, attempt, c.Command.Name, r) })
}

// printAnswer says what is known of an attempt now, where the credits are, and what comes next.
func printAnswer(w io.Writer, attempt int64, known string, r *ledger.AnswerResult) {
	j, s := &r.Job, r.Settlement
	fmt.Fprintf(w, "%sattempt %d of job %s is %s", again(r.Replayed), attempt, j.ID, known)
	switch {
	case s != nil && known == string(ledger.SubmissionRejected):
		fmt.Fprint(w, "; ")
		printSettlement(w, s)
	case s != nil:
		fmt.Fprintf(w, "; nothing moved, %s: %s\n", settledBy(s), standing(&s.Balance))
	default:
		fmt.Fprintf(w, ", %s: %s\n", stay(j), nextStep(j, attempt))
	}
}

// nextStep says what to do with an open job after it was told of one of its attempts.
func nextStep(j *ledger.Job, attempt int64) string {
	switch {
	case attempt != j.Attempt:
		return fmt.Sprintf("the job is at attempt %d by now, which is %s", j.Attempt, j.Submission)
	case j.Submission == ledger.SubmissionAccepted:
		return fmt.Sprintf("its report will settle the job (notify %s OUTCOME --attempt %d)", j.ID, j.Attempt)
	case j.Submission == ledger.SubmissionRejected:
		return fmt.Sprintf("try again with job submit %s, or end it with job cancel %s", j.ID, j.ID)
	}
	return fmt.Sprintf("do not call the provider again; ask it, then reconcile accept %s or reconcile reject %s",
		j.ID, j.ID)
}
