package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func copyCommand() *cli.Command {
	return &cli.Command{
		Name: "copy",
		UsageText: "jobledger copy --from ledger.db --to postgres://app@localhost/credits\n" +
			"jobledger copy --from postgres://app@localhost/credits --to ledger.db",
		Usage: "move a whole ledger to another database, of either engine",
		Description: "Entries, hashes, ids and times arrive unchanged: an export of both gives the same bytes. " +
			"The target is created if it is not there, and must hold nothing. All of the ledger arrives, " +
			"audited, or nothing does; after a copy that was cut off the target is empty, and the same " +
			"command can be given again.\n\n" +
			"The source is copied as it is at one moment, and stays as it is. What is written to it later is " +
			"not in the copy: stop the programs that write before you move for good.\n\n" +
			"If it ends with OUTCOME_UNKNOWN (exit 9), the connection broke at the very end. Audit the target: " +
			"if it holds owners, the copy is there; if not, give the same command again.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "the `DATABASE` to copy: a file or postgres://..."},
			&cli.StringFlag{Name: "to", Usage: "the `DATABASE` to fill: a file or postgres://..."},
		},
		Action: runCopy,
	}
}

// copied is the answer of copy.
type copied struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Engine string `json:"engine"` // of the target
	Rows   int64  `json:"rows"`
	Owners int64  `json:"owners"`
	Jobs   int64  `json:"jobs"`
	Audit  struct {
		OK bool `json:"ok"`
	} `json:"audit"`
}

func runCopy(c *cli.Context) error {
	from, to := c.String("from"), c.String("to")
	switch {
	case c.IsSet("db"):
		return usage("db", "db: copy takes its databases from --from and --to")
	case from == "":
		return usage("from", "from: say which ledger to copy")
	case to == "":
		return usage("to", "to: say where to copy it")
	case from == to:
		return usage("to", "to: is the ledger to copy itself")
	}
	source, err := ledger.Open(c.Context, from, ledger.Options{})
	if err != nil {
		return err
	}
	answer, err := copyInto(c, source, to)
	if err := errors.Join(err, source.Close()); err != nil {
		return err
	}
	answer.From = ledger.Name(from)
	return show(c, answer, func(w io.Writer) {
		fmt.Fprintf(w, "copied %s to %s: %s, %s, %s in all; the audit is clean\n", printable(answer.From),
			printable(answer.To), plural(int(answer.Owners), "owner"), plural(int(answer.Jobs), "job"),
			plural(int(answer.Rows), "row"))
	})
}

// copyInto creates the target and fills it.
func copyInto(c *cli.Context, source *ledger.Ledger, to string) (answer copied, err error) {
	if _, err := ledger.Create(c.Context, to, ledger.Options{}); err != nil {
		return answer, err
	}
	target, err := ledger.Open(c.Context, to, ledger.Options{})
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	tell, clear := progress(c.App.ErrWriter, "copying")
	defer clear()
	p := ledger.ImportParams{}
	if tell != nil {
		total, err := source.CopySize(c.Context)
		if err != nil {
			return answer, err
		}
		p.Progress = func(rows int64) { tell(int(rows), int(max(total, rows))) }
	}
	r, err := target.CopyFrom(c.Context, source, p)
	if err != nil {
		return answer, err
	}
	answer = copied{
		To: ledger.Name(to), Engine: target.Engine(), Rows: r.Imported, Owners: r.Owners, Jobs: r.Jobs,
	}
	answer.Audit.OK = true // or nothing would have been kept
	return answer, nil
}
