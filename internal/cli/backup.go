package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

const noAudit = "no-audit"

func backupCommand() *cli.Command {
	return &cli.Command{
		Name:      "backup",
		UsageText: "jobledger backup nightly.db",
		ArgsUsage: "FILE",
		Usage:     "copy the database file, also while it is in use",
		Description: "FILE is then a ledger as it was at one moment, with everything in it, that only you can " +
			"read. It is audited before it gets its name; until then, and if anything goes wrong, nothing is at " +
			"FILE that was not there before. Copying a live database with cp loses what is in its -wal file.\n\n" +
			"If the ledger does not hold together there is no backup, and exit status 8: look at it with audit, and " +
			"keep the backups that you have; --no-audit makes one all the same. A backup that was killed " +
			"leaves a file .jobledger-new-* that can be deleted.\n\n" +
			"A PostgreSQL database is backed up with pg_dump; copy brings its ledger into a file.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "replace FILE, if it is a ledger that no program has open"},
			&cli.BoolFlag{Name: noAudit, Usage: "check the pages of the copy only, not what the ledger says"},
		},
		Action: func(c *cli.Context) error {
			return copyFile(c, "backed up", dbName(c), c.Args().First(), c.Bool("force"))
		},
	}
}

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		UsageText: "jobledger restore nightly.db --db ledger.db",
		ArgsUsage: "FILE",
		Usage:     "make the database from a backup",
		Description: "The database that --db names is made, and must not be there: move the old one away, with " +
			"its -wal and -shm files, once no program has it open. FILE stays as it is. What comes of it is audited " +
			"before it gets its name; if anything goes wrong, there is nothing.\n\n" +
			"What was recorded after the backup is not in it. A job that ended since is open again: ask its " +
			"provider, and report the outcome with notify, before you let anybody cancel it. Reports that arrive " +
			"again settle it once, as ever. Credits that were granted since are granted again with the same key.\n\n" +
			"An export is brought back with import, which can also go to PostgreSQL.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: noAudit, Usage: "check the pages of the copy only, not what the ledger says"},
		},
		Action: func(c *cli.Context) error {
			return copyFile(c, "restored", c.Args().First(), dbName(c), false)
		},
	}
}

// fileCopied is the answer of backup and restore.
type fileCopied struct {
	From          string       `json:"from"`
	To            string       `json:"to"`
	Bytes         int64        `json:"bytes"`
	SchemaVersion int          `json:"schema_version"`
	AsOf          *ledger.Time `json:"as_of"`
	OpenJobs      int64        `json:"open_jobs"`
	Audited       bool         `json:"audited"`
}

// copyFile is backup and restore: which of the two files is the database is all that differs.
func copyFile(c *cli.Context, did, from, to string, replace bool) error {
	tell, clear := progress(c.App.ErrWriter, "copying")
	p := ledger.FileParams{Replace: replace, NoAudit: c.Bool(noAudit), Progress: tell}
	r, err := ledger.CopyFile(c.Context, from, to, ledger.Options{}, p)
	clear()
	if err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	answer := fileCopied{from, to, info.Size(), r.SchemaVersion, r.AsOf, r.OpenJobs, r.Audited}
	return show(c, answer, func(w io.Writer) { printFileCopied(w, did, &answer) })
}

func printFileCopied(w io.Writer, did string, a *fileCopied) {
	fmt.Fprintf(w, "%s %s to %s, %d bytes: ", did, printable(a.From), printable(a.To), a.Bytes)
	switch {
	case a.SchemaVersion != ledger.SchemaVersion():
		fmt.Fprintf(w, "not audited: its schema version is %d, and this program works with %d\n",
			a.SchemaVersion, ledger.SchemaVersion())
	case !a.Audited:
		fmt.Fprintf(w, "not audited\n")
	default:
		last := "there is no entry yet"
		if a.AsOf != nil {
			last = "the last entry is of " + clock(a.AsOf, "")
		}
		fmt.Fprintf(w, "the audit is clean; %s, %s open\n", last, plural(int(a.OpenJobs), "job"))
	}
}
