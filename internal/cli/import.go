package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"jobledger/internal/books"
	"jobledger/ledger"
)

func importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		ArgsUsage: "FILE",
		UsageText: "jobledger import books.jsonl --dry-run\njobledger import old.db --map seed1\n" +
			"jobledger import backup.jsonl",
		Usage: "bring in the books of another system, or an export",
		Description: "FILE has one row per line, as jsonl or as csv with a header; - is the standard input. The " +
			"field type says what a row is:\n\n" +
			"balance: owner, available\n\n" +
			"lot: owner, ref, available, held, used, expired, priority, effective_at, expires_at\n\n" +
			"job: id, owner, cost, mode, status, settled_cost, submission, provider, upstream_id, evidence, " +
			"reason, created_at\n\n" +
			"refund: ref, job, owner, amount\n\n" +
			"With --map, FILE is a SQLite database with the tables of a known schema, or a folder with one csv " +
			"per table. An export of a ledger is recognised by its first line.\n\n" +
			"All of a file is imported, or nothing: a row that cannot be keeps it out, and every such row is " +
			"named. The same file again changes nothing.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "the `FORMAT`: jsonl or csv; without it, by the file's name"},
			&cli.StringFlag{Name: "map", Usage: "the `SCHEMA` of FILE's tables: seed1, seed2 or seed3"},
			&cli.BoolFlag{Name: "dry-run", Usage: "do all of it, report, and undo it"},
		},
		Action: runImport,
	}
}

// imported is the answer of import.
type imported struct {
	File       string `json:"file"`
	DryRun     bool   `json:"dry_run"`
	Rows       int64  `json:"rows"`
	Duplicates int64  `json:"duplicates"`
	ledger.ImportReport
}

func runImport(c *cli.Context) error {
	file := c.Args().First()
	o := books.Options{Format: c.String("format"), Map: c.String("map")}
	if err := checks(givenOneOf(c, "format", books.Formats), givenOneOf(c, "map", books.Maps)); err != nil {
		return err
	}
	switch {
	case c.IsSet("format") && c.IsSet("map"):
		return usage("format", "format: the tables of --map have their own")
	case c.IsSet("map") && file == books.Stdin:
		return usage("file", "file: the tables of --map cannot come through the standard input")
	}
	var refused error
	r, err := with(c, func(ctx context.Context, l *ledger.Ledger) (r imported, err error) {
		r, refused, err = importFile(ctx, l, c, file, o)
		return r, err
	})
	if err != nil {
		return err
	}
	return checks(show(c, r, func(w io.Writer) { printImported(w, c.App.ErrWriter, &r) }), refused)
}

func givenOneOf(c *cli.Context, flag string, allowed []string) error {
	if !c.IsSet(flag) {
		return nil
	}
	return oneOf(flag, c.String(flag), allowed...)
}

// importFile reads the file and imports it. refused is the error of a file with rows that cannot be
// imported; the answer names them.
func importFile(
	ctx context.Context, l *ledger.Ledger, c *cli.Context, file string, o books.Options,
) (r imported, refused, err error) {
	tell, clear := progress(c.App.ErrWriter, "reading")
	o.Progress = inBar(tell)
	s, err := books.Open(ctx, file, os.Stdin, o)
	clear()
	if err != nil {
		return r, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r = imported{File: file, DryRun: c.Bool("dry-run"), Rows: s.Rows, Duplicates: s.Duplicates}
	p := ledger.ImportParams{DryRun: r.DryRun || s.Refused.Err() != nil}
	tell, clear = progress(c.App.ErrWriter, "importing")
	defer clear()
	if tell != nil {
		p.Progress = func(rows int64) { tell(int(rows), int(max(s.Rows, 1))) }
	}
	if open, ok := s.Export(); ok {
		p.Progress = nil // nobody has counted its rows
		r.ImportReport, err = l.Restore(ctx, open, p)
		r.Rows = r.Imported + r.Replayed
	} else {
		r.ImportReport, err = l.Import(ctx, s.Books(), p)
	}
	r.ImportReport.Add(&s.Refused)
	if refused = r.Err(); refused != nil && ledger.CodeOf(err) == ledger.Invalid {
		err = nil
	}
	return r, refused, err
}

// inBar fits a progress in bytes to a bar; nil stays nil.
func inBar(tell func(done, total int)) func(done, total int64) {
	if tell == nil {
		return nil
	}
	return func(done, total int64) { tell(int(done), int(max(total, done))) }
}

// printImported says what was imported, and on errors every row that stands in the way.
func printImported(w, errors io.Writer, r *imported) {
	for _, f := range r.Refused {
		fmt.Fprintf(errors, "refused: %s: %s\n", f.Place, printable(f.Reason))
	}
	if r.RefusedMore > 0 {
		fmt.Fprintf(errors, "refused: and %s more\n", plural(int(r.RefusedMore), "row"))
	}
	for _, u := range r.Unmatched {
		fmt.Fprintf(errors, "not counted: %s: refund %s: %s\n", u.Place, printable(u.Ref), printable(u.Reason))
	}
	if r.UnmatchedMore > 0 {
		fmt.Fprintf(errors, "not counted: and %s more\n", plural(int(r.UnmatchedMore), "refund"))
	}
	if r.Err() != nil {
		return
	}
	did := "imported"
	if r.DryRun {
		did = "dry run, nothing was written: would import"
	}
	fmt.Fprintf(w, "%s %s of %s: %s, %s, %s, %s granted\n", did, plural(int(r.Imported), "row"),
		printable(r.File), plural(int(r.Owners), "owner"), plural(int(r.Jobs), "job"),
		plural(int(r.Refunds), "refund"), plural(int(r.Credits), "credit"))
	if r.Replayed > 0 {
		fmt.Fprintf(w, "already there, nothing changed: %s\n", plural(int(r.Replayed), "row"))
	}
	if r.Duplicates > 0 {
		fmt.Fprintf(w, "said twice in the file: %s\n", plural(int(r.Duplicates), "row"))
	}
}
