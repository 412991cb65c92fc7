package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/internal/bench"
	"jobledger/ledger"
)

// The durabilities by their words; the second is for comparison.
const (
	durable    = "full"
	notDurable = "normal"
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name: "bench",
		UsageText: "jobledger bench\njobledger bench --workers 64 --jobs 10000 --mode charge\n" +
			"jobledger bench --db big.db --preload 10000,1000000 --svg growth.svg",
		Usage: "measure what operations take here, beside what the disk takes",
		Description: "Each run creates jobs, settles them (every other one completed, the others failed), " +
			"reports each of them again, and reads balances; then it settles some more to see what a settlement " +
			"writes. Syncs are those of commits; what checkpoints sync is not in them. The time of one fdatasync " +
			"is taken from the same file system in the same run. In the end the ledger is audited, and " +
			"the exit status is 8 if anything is wrong.\n\n" +
			"It works on a scratch file in $TMPDIR that it deletes. Only --db, not $" + dbVariable + ", names " +
			"another place: a file or a PostgreSQL database that has no ledger yet, or one that bench made. That " +
			"stays, and what was preloaded there is used again. A ledger that holds anybody else's credits is " +
			"refused: what is measured can never be deleted from its journal.\n\n" +
			"--durability " + notDurable + " does not wait for the disk. It LOSES acknowledged commits when the " +
			"power fails, and no other command knows it: it shows what the waiting costs.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "workers", Value: "1,16,64",
				Usage: "`N,...` callers at once in each process, a run for each"},
			&cli.StringFlag{Name: "jobs", Value: "2000", Usage: "`N` jobs in each run"},
			&cli.StringFlag{Name: "mode", Value: string(ledger.ModeHold), Usage: "`MODE`: hold or charge"},
			&cli.StringFlag{Name: "processes", Value: "1", Usage: "`N` processes"},
			&cli.StringFlag{Name: "owners", Value: "0",
				Usage: "`N` owners of a run's jobs; 0: 100, or as many as are preloaded"},
			&cli.StringFlag{Name: "lots-each", Value: "1", Usage: "`N` lots of each owner that is not preloaded"},
			&cli.StringFlag{Name: "preload", Value: "0",
				Usage: "`N,...` settled jobs that are there already; the runs are made at each size"},
			&cli.StringFlag{Name: "shards", Value: "1", Usage: "`N` files, each with its share of the owners"},
			&cli.StringFlag{Name: "durability", Value: durable, Usage: "`HOW`: " + durable + " or " + notDurable},
			&cli.StringFlag{Name: "svg", Usage: "also draw the times of the settlements into `FILE`"},
		},
		Action: runBench,
	}
}

// benchChildCommand is what bench starts as its other processes.
func benchChildCommand() *cli.Command {
	return &cli.Command{
		Name:   "bench-child",
		Hidden: true,
		Usage:  "one process of a measurement; bench starts it",
		Action: func(c *cli.Context) error { return bench.Child(c.Context, os.Stdin, c.App.Writer) },
	}
}

func runBench(c *cli.Context) error {
	o, err := benchOptions(c)
	if err = checks(err, checkPictures(c)); err != nil {
		return err
	}
	if o.RiskPowerLoss {
		fmt.Fprintln(c.App.ErrWriter, "WARNING: --durability "+notDurable+" does not wait for the disk: commits "+
			"that were acknowledged are LOST when the power fails. No other command has these figures.")
	}
	var clear func()
	o.Progress, clear = progress(c.App.ErrWriter, "measuring")
	r, err := bench.Measure(c.Context, o)
	clear()
	if err != nil {
		return err
	}
	if err := show(c, r, func(w io.Writer) { printBench(w, &r) }); err != nil || !c.IsSet("svg") {
		return err
	}
	if err := replace(c.String("svg"), []byte(r.SVG()), pictureMode); err != nil {
		return usage("svg", "svg: %v", err)
	}
	return nil
}

func benchOptions(c *cli.Context) (bench.Options, error) {
	o := bench.Options{DSN: c.String("db"), Mode: ledger.Mode(c.String("mode"))}
	for _, n := range []struct {
		flag   string
		lowest int64
		max    int64
		into   *int
	}{
		{"jobs", 1, bench.JobsMax, &o.Jobs},
		{"processes", 1, bench.ProcessesMax, &o.Processes},
		{"owners", 0, bench.OwnersMax, &o.Owners},
		{"lots-each", 1, bench.LotsMax, &o.Lots},
		{"shards", 1, bench.ShardsMax, &o.Shards},
	} {
		value, err := count(c, n.flag, n.lowest, n.max)
		if err != nil {
			return o, err
		}
		*n.into = int(value)
	}
	var err1, err2 error
	o.Workers, err1 = counts(c, "workers", 1, bench.WorkersMax)
	o.Preload, err2 = counts(c, "preload", 0, bench.PreloadMax)
	o.RiskPowerLoss = c.String("durability") == notDurable
	return o, checks(err1, err2, oneOf("durability", c.String("durability"), durable, notDurable),
		oneOf("mode", o.Mode, ledger.ModeHold, ledger.ModeCharge))
}

// printBench shows a measurement: what operations took, and what a settlement costs.
func printBench(w io.Writer, r *bench.Report) {
	fmt.Fprintf(w, "%s of mode %s, of %s with %s each, on %s%s.\n\n", plural(r.Runs[0].Jobs, "job"), r.Mode,
		plural(r.Owners, "owner"), plural(r.Lots, "lot"), r.Engine, benchShape(r))
	t := newTable("#there", "#workers", "operation", "#per second", "#p50 ms", "#p99 ms", "#p99.9 ms", "#max ms")
	for i := range r.Runs {
		for k, o := range r.Runs[i].Operations {
			there, workers, rate := any(""), any(""), fmt.Sprintf("%.0f", o.PerSecond)
			if k == 0 {
				there, workers = r.Runs[i].Preloaded, r.Runs[i].Workers
			}
			if o.PerSecond == 0 {
				o.Name, rate = "  "+o.Name, ""
			}
			t.AppendRow([]any{there, workers, o.Name, rate, milli(o.P50), milli(o.P99), milli(o.P999), milli(o.Max)})
		}
	}
	printTable(w, t)
	fmt.Fprintf(w, "\nA settlement costs, on average:\n\n")
	t = newTable("#there", "#workers", "#syncs", "#pages", "#wal bytes", "#statements", "#p50 : sync", "#rss mb")
	for i := range r.Runs {
		run := &r.Runs[i]
		s, none := run.Settlement, "-"
		pages, ratio := none, none
		if s.Pages > 0 {
			pages = fmt.Sprintf("%.2f", s.Pages)
		}
		if run.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", run.Ratio)
		}
		t.AppendRow([]any{run.Preloaded, run.Workers, fmt.Sprintf("%.3f", s.Syncs), pages,
			fmt.Sprintf("%.0f", s.WAL), fmt.Sprintf("%.1f", s.Statements), ratio, run.RSS >> 20})
	}
	printTable(w, t)
	printBenchEnd(w, r)
}

func benchShape(r *bench.Report) string {
	var list []string
	if r.Processes > 1 {
		list = append(list, plural(r.Processes, "process"))
	}
	if r.Shards > 1 {
		list = append(list, plural(r.Shards, "file"))
	}
	if r.Durability != durable {
		list = append(list, "NOT DURABLE")
	}
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// printBenchEnd writes what is known beside the runs.
func printBenchEnd(w io.Writer, r *bench.Report) {
	fmt.Fprintln(w)
	for _, l := range r.Loads {
		fmt.Fprintf(w, "%s loaded in %.1f s, %d MB, audited in %.1f s.\n", plural(l.Jobs, "job"), l.Seconds,
			l.Bytes>>20, l.Audit)
	}
	if r.Fdatasync > 0 {
		fmt.Fprintf(w, "One fdatasync of the same file system: %.3f ms (median).\n", r.Fdatasync/1000)
	}
	fmt.Fprintf(w, "Memory with the ledger open and nothing done: %d MB. Audit: clean, in %.1f s.\n",
		r.IdleRSS>>20, r.Audit)
}

// milli shows microseconds as milliseconds.
func milli(micros int64) string { return fmt.Sprintf("%.2f", float64(micros)/1000) }
