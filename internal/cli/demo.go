package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/internal/demo"
	"jobledger/ledger"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:      "demo",
		UsageText: "jobledger demo\njobledger demo --jobs 2000 --seed 1",
		Usage:     "play a server, a provider that calls back badly, forgers and an app, and check all",
		Description: "Starts the server and a scripted provider on this machine, and runs jobs of three owners " +
			"through real HTTP: callbacks come twice, in the wrong order, too early, too late, or never, some say " +
			"the opposite, some are forged; a poller runs beside them, and an app receives the events. In the end " +
			"what everybody was told is compared with the ledger; exits with 8 if anything is not as it must be.\n\n" +
			"The ledger is a scratch file that is deleted; --keep leaves it for a look.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "jobs", Value: "200", Usage: "`N` jobs"},
			&cli.StringFlag{Name: "seed", Usage: "a `NUMBER` that decides what befalls each job; else a new one"},
			&cli.BoolFlag{Name: "keep", Usage: "leave the ledger, the files of the server and its log"},
		},
		Action: runDemo,
	}
}

func runDemo(c *cli.Context) (err error) {
	o, err := demoOptions(c)
	if err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp("", programName+"-demo-"); err != nil {
		return fmt.Errorf("scratch directory: %w", err)
	}
	if !c.Bool("keep") {
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	var clear func()
	o.Progress, clear = progress(c.App.ErrWriter, "jobs")
	r, played := demo.Run(c.Context, o)
	clear()
	if played != nil {
		return played
	}
	if !c.Bool("keep") {
		r.Database = ""
	}
	if err := show(c, r, func(w io.Writer) { printDemo(w, &r) }); err != nil {
		return err
	}
	if n := len(r.Broken); n > 0 {
		return &ledger.Error{
			Code:    ledger.Inconsistent,
			Message: fmt.Sprintf("demo: not as it must be: %d, the first: %s", n, r.Broken[0]),
		}
	}
	return nil
}

func demoOptions(c *cli.Context) (demo.Options, error) {
	jobs, err := count(c, "jobs", 1, demo.JobsMax)
	seed := time.Now().UnixNano() % 1_000_000
	if c.IsSet("seed") {
		var wrong error
		seed, wrong = count(c, "seed", 0, ledger.AmountMax)
		err = checks(err, wrong)
	}
	return demo.Options{Jobs: int(jobs), Seed: uint64(seed)}, err
}

// printDemo shows a class what befell the jobs, who was told what, and where the credits are.
func printDemo(w io.Writer, r *demo.Result) {
	fmt.Fprintf(w, "%s of %s, seed %d, in %.1f s.\n\n", plural(r.Jobs, "job"), plural(len(r.Balances), "owner"),
		r.Seed, r.Seconds)
	stories := newTable("callbacks", "#jobs")
	for _, s := range slices.Sorted(maps.Keys(r.Stories)) {
		stories.AppendRow([]any{s, r.Stories[s]})
	}
	printTable(w, stories)
	verdicts := newTable("reports", "#count")
	for _, v := range []ledger.Verdict{
		ledger.Won, ledger.Duplicate, ledger.Conflict, ledger.Stale, ledger.Refused,
	} {
		if n := r.Verdicts[v]; n > 0 {
			verdicts.AppendRow([]any{v, n})
		}
	}
	fmt.Fprintln(w)
	printTable(w, verdicts)
	fmt.Fprintln(w)
	printBalances(w, r.Balances)
	fmt.Fprintf(w, "\n%s, %s found out by the poller.\n", plural(r.Callbacks, "genuine callback"),
		plural(r.Polled, "job"))
	fmt.Fprintf(w, "%s, %d refused.\n", plural(r.Forged, "forged callback"), r.Refused)
	fmt.Fprintf(w, "%s written, %d received, %d sent again.\n",
		plural(r.Events, "event"), r.Received, r.Repeated)
	audit := "clean"
	if !r.Audit.OK {
		audit = "BROKEN"
	}
	fmt.Fprintf(w, "Audit: %s, %s.\n", audit, plural(len(r.Audit.Checks), "check"))
	for _, line := range r.Broken {
		fmt.Fprintf(w, "BROKEN: %s\n", printable(line))
	}
	if len(r.Broken) == 0 {
		fmt.Fprint(w, "\nEvery job settled exactly once, and every event arrived.\n")
	}
	if r.Database != "" {
		fmt.Fprintf(w, "The ledger: %s --db %s job explain job-00001\n", programName, r.Database)
	}
}
