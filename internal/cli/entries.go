package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func entriesCommand() *cli.Command {
	return &cli.Command{
		Name:      "entries",
		UsageText: "jobledger entries --owner alice\njobledger entries --job j1",
		Usage:     "list the journal",
		Description: "With --owner, each line has the owner's balance after it. " +
			"The --json form has every line's id, key, reason and postings too.\n\n" +
			"Without --owner or --job, --after is for paging through what is there, not for following what comes: " +
			"a line can be committed after another with a higher id. To follow, ask for one owner's.",
		Flags: pageFlags("entry with this `ID`",
			&cli.StringFlag{Name: "owner", Usage: "only this `OWNER`'s"},
			&cli.StringFlag{Name: "job", Usage: "only the `JOB`'s"},
		),
		Action: runEntries,
	}
}

func runEntries(c *cli.Context) error {
	f := ledger.EntryFilter{Owner: c.String("owner"), Job: c.String("job"), After: c.String("after")}
	var err error
	f.Limit, err = limit(c)
	if err := checks(givenID(c, "owner"), givenID(c, "job"), givenID(c, "after"), err); err != nil {
		return err
	}
	return listing[ledger.Entry]{
		read: func(ctx context.Context, l *ledger.Ledger) ([]ledger.Entry, error) {
			return l.Entries(ctx, f)
		},
		most: f.Limit, after: func(e *ledger.Entry) string { return e.ID },
		text: func(w io.Writer, list []ledger.Entry) { printEntries(w, list, f.Owner != "") },
	}.show(c)
}

// note tells a person something on stderr, where it is in no program's way.
func note(c *cli.Context, format string, args ...any) {
	if !c.Bool("json") {
		fmt.Fprintln(c.App.ErrWriter, harmless(fmt.Sprintf(format, args...)))
	}
}

// printEntries writes journal lines: those of one owner with the balance after each.
func printEntries(w io.Writer, list []ledger.Entry, oneOwner bool) {
	if oneOwner {
		printJournal(w, list, "job")
		return
	}
	t := newTable("time", "owner", "#seq", "kind", "#amount", "job")
	for i := range list {
		e := &list[i]
		t.AppendRow([]any{clock(&e.RecordedAt, ""), e.Owner, e.Seq, e.Kind, e.Amount, jobOf(e)})
	}
	printTable(w, t)
}

// printJournal writes one owner's journal lines, and with each its job where more is "job". The lines of
// one job need not repeat its id, which may be long.
func printJournal(w io.Writer, list []ledger.Entry, more ...string) {
	columns := []string{"#seq", "kind", "#amount", "#available", "#held", "#used", "#expired", "time"}
	columns = append(columns, more...)
	t := newTable(columns...)
	for i := range list {
		e := &list[i]
		row := []any{e.Seq, e.Kind, e.Amount, e.AvailableAfter, e.HeldAfter, e.UsedAfter, e.ExpiredAfter,
			clock(&e.RecordedAt, ""), jobOf(e)}
		t.AppendRow(row[:len(columns)])
	}
	printTable(w, t)
}

func jobOf(e *ledger.Entry) string {
	if e.Job == nil {
		return ""
	}
	return *e.Job
}
