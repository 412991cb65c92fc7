package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"jobledger/internal/racelab"
	"jobledger/ledger"
)

func raceCommand() *cli.Command {
	return &cli.Command{
		Name:      "race",
		UsageText: "jobledger race\njobledger race --processes 4 --workers 8 --notifications 64 --jobs 20 --mix",
		Usage:     "fire racing notifications at jobs and show that each settles once",
		Description: "Every worker opens the database for itself; all wait for each other, then fire together.\n" +
			"The race checks its own result, and exits with 8 if an invariant is broken.\n\n" +
			"It works on a scratch database that it deletes. Only --db, not $" + dbVariable + ",\n" +
			"makes it race on a ledger that exists: there it leaves a new owner, race-ID, with the\n" +
			"jobs and the journal.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "workers", Value: "8", Usage: "`N` workers in each process"},
			&cli.StringFlag{Name: "notifications", Value: "16", Usage: "`N` for each job, from all workers together"},
			&cli.StringFlag{Name: "processes", Value: "1", Usage: "`N` processes"},
			&cli.StringFlag{Name: "jobs", Value: "1", Usage: "`N` jobs"},
			&cli.StringFlag{Name: "cost", Value: "7", Usage: "the `AMOUNT` that each job costs"},
			&cli.StringFlag{Name: "mode", Value: string(ledger.ModeCharge), Usage: "`MODE`: charge or hold"},
			&cli.BoolFlag{Name: "mix", Usage: "half of the notifications say completed; else all say failed"},
		}, pictureFlags()...),
		Action: runRace,
	}
}

// raceChildCommand is what race starts as its other processes.
func raceChildCommand() *cli.Command {
	return &cli.Command{
		Name:   "race-child",
		Hidden: true,
		Usage:  "one process of a race; race starts it",
		Action: func(c *cli.Context) error { return racelab.Child(c.Context, os.Stdin, c.App.Writer) },
	}
}

func runRace(c *cli.Context) error {
	o, err := raceOptions(c)
	if err = checks(err, checkPictures(c)); err != nil {
		return err
	}
	var clear func()
	o.Progress, clear = progress(c.App.ErrWriter, "racing")
	r, raced := racelab.Run(c.Context, o)
	clear()
	if r.Jobs == 0 {
		return raced
	}
	shown := show(c, r, func(w io.Writer) { printRace(w, &o, &r) })
	if !pictured(c) {
		return checks(shown, raced)
	}
	drawn := draw(c, r.Timeline(o.Title(), raceCaption(c)))
	return checks(shown, raced, drawn)
}

// raceCaption is the command that was given, but for the database, whose name may hold a password.
func raceCaption(c *cli.Context) string {
	caption := programName + " race"
	for _, flag := range []string{"workers", "notifications", "processes", "jobs", "cost", "mode"} {
		if c.IsSet(flag) {
			caption += " --" + flag + " " + c.String(flag)
		}
	}
	if c.Bool("mix") {
		caption += " --mix"
	}
	return caption
}

func raceOptions(c *cli.Context) (racelab.Options, error) {
	o := racelab.Options{DSN: c.String("db"), Mode: ledger.Mode(c.String("mode")), Mix: c.Bool("mix")}
	for _, n := range []struct {
		flag string
		max  int64
		into *int
	}{
		{"workers", racelab.WorkersMax, &o.Workers},
		{"notifications", racelab.NotificationsMax, &o.Notifications},
		{"processes", racelab.ProcessesMax, &o.Processes},
		{"jobs", racelab.JobsMax, &o.Jobs},
	} {
		value, err := count(c, n.flag, 1, n.max)
		if err != nil {
			return o, err
		}
		*n.into = int(value)
	}
	var err error
	o.Cost, err = ledger.ParseAmount("cost", c.String("cost"))
	return o, checks(err, oneOf("mode", o.Mode, ledger.ModeCharge, ledger.ModeHold))
}

// progress gives a function that shows how far a piece of work is, as a bar on a terminal, once it
// has taken longer than a moment, and one that clears the bar away.
func progress(w io.Writer, what string) (show func(done, total int), clear func()) {
	const moment = 300 * time.Millisecond
	file, ok := w.(*os.File)
	if !ok {
		return nil, func() {}
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil, func() {}
	}
	began := time.Now()
	var bar *progressbar.ProgressBar
	show = func(done, total int) {
		if bar == nil && time.Since(began) > moment {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(30),
				progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		if bar != nil {
			_ = bar.Set(done) // a terminal that is gone is no reason to stop
		}
	}
	return show, func() {
		if bar != nil {
			_ = bar.Clear()
		}
	}
}

// observersShown is how many observers get a line of their own; jobsShown how many jobs do.
const (
	observersShown = 24
	jobsShown      = 20
)

// printRace shows a race to a class: what was fired, what the observers were told, what moved.
func printRace(w io.Writer, o *racelab.Options, r *racelab.Result) {
	fmt.Fprintf(w, "%s.\n", o.Title())
	if o.Jobs > 1 {
		fmt.Fprintf(w, "Each job gets %d. ", o.Notifications)
	}
	if o.Mix {
		fmt.Fprint(w, "Half say completed, half failed.\n")
	} else {
		fmt.Fprint(w, "All say failed.\n")
	}
	if o.Processes > 1 {
		fmt.Fprintf(w, "%d processes with ", o.Processes)
	}
	fmt.Fprintf(w, "%s, each with its own connections, released at once.\n\n", plural(o.Workers, "worker"))
	if o.Jobs == 1 && len(r.Observers) <= observersShown {
		printObservers(w, r.Observers)
	} else {
		printRacedJobs(w, r)
	}
	t := newTable("balance", "#available", "#held", "#used")
	t.AppendRow([]any{"before the race", r.Before.Available, r.Before.Held, r.Before.Used})
	t.AppendRow([]any{"after the race", r.Balance.Available, r.Balance.Held, r.Balance.Used})
	fmt.Fprintf(w, "\n%s\n\n", t.Render())
	printRaceEnd(w, o, r)
}

// printRaceEnd writes the sums, and whether all of it is as it must be.
func printRaceEnd(w io.Writer, o *racelab.Options, r *racelab.Result) {
	fmt.Fprintf(w, "Returned %d, consumed %d, refund entries %d.\n", r.Returned, r.Consumed, r.RefundEntries)
	if r.Busy > 0 {
		fmt.Fprintf(w, "%s BUSY; each was tried again.\n", plural(r.Busy, "answer"))
	}
	audit := "clean"
	if !r.Audit.OK {
		audit = "BROKEN"
	}
	fmt.Fprintf(w, "Audit: %s, %s.\n", audit, plural(r.Checks, "check"))
	if o.DSN != "" {
		fmt.Fprintf(w, "The owner is %s; its journal: %s entries --owner %s\n", r.Owner, programName, r.Owner)
	}
	for _, line := range r.Broken {
		fmt.Fprintf(w, "BROKEN: %s\n", printable(line))
	}
	if len(r.Broken) == 0 {
		fmt.Fprintf(w, "%s; %s, each told the winner's outcome; %s.\n\nEvery job settled exactly once.\n",
			plural(r.Wins, "win"), plural(r.Notifications-r.Wins, "loser"), took(r.Elapsed))
	}
}

// printObservers writes a line for each observer of one job.
func printObservers(w io.Writer, list []racelab.Observer) {
	t := newTable("#process", "#worker", "said", "was told", "#took")
	for _, o := range list {
		told := "lost: the job had ended " + string(o.Outcome)
		if o.Won {
			told = "WON: it ended the job as " + string(o.Outcome)
		}
		t.AppendRow([]any{o.Process, o.Worker, o.Reported, told, took(time.Duration(o.Micros) * time.Microsecond)})
	}
	printTable(w, t)
}

// printRacedJobs writes a line for each job, or each of the first, and one for all.
func printRacedJobs(w io.Writer, r *racelab.Result) {
	t := newTable("#job", "ended", "winner", "#losers told so", "#conflicts", "#slowest")
	var sum racedJob
	jobs := 0
	for list := r.Observers; len(list) > 0; jobs++ {
		n := slices.IndexFunc(list, func(o racelab.Observer) bool { return o.Job != list[0].Job })
		if n < 0 {
			n = len(list)
		}
		j := sumUp(list[:n])
		list = list[n:]
		sum.told += j.told
		sum.conflicts += j.conflicts
		sum.slowest = max(sum.slowest, j.slowest)
		if jobs < jobsShown {
			winner := fmt.Sprintf("process %d, worker %d", j.winner.Process, j.winner.Worker)
			t.AppendRow([]any{jobs + 1, j.winner.Outcome, winner, j.told, j.conflicts, took(j.slowest)})
		}
	}
	if jobs > jobsShown {
		t.AppendRow([]any{"...", "...", fmt.Sprintf("and %d jobs more", jobs-jobsShown)})
	}
	if jobs > 1 {
		t.AppendFooter([]any{"all", "", plural(r.Wins, "win"), sum.told, sum.conflicts, took(sum.slowest)})
	}
	printTable(w, t)
}

// racedJob is what the observers of one job were told.
type racedJob struct {
	winner    racelab.Observer
	told      int // losers that were told the winner's outcome
	conflicts int // of them, those that had said something else
	slowest   time.Duration
}

// sumUp takes the observers of one job, the winner first.
func sumUp(list []racelab.Observer) racedJob {
	j := racedJob{winner: list[0]}
	for _, o := range list {
		j.slowest = max(j.slowest, time.Duration(o.Micros)*time.Microsecond)
		if !o.Won && o.Outcome == j.winner.Outcome {
			j.told++
			if o.Reported != o.Outcome {
				j.conflicts++
			}
		}
	}
	return j
}

// plural counts things.
func plural(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case thing[len(thing)-1] == 's':
		return fmt.Sprintf("%d %ses", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// took shows a span in milliseconds, or in seconds if there are some.
func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
