// Package racelab shows that a job settles exactly once. It fires racing notifications at jobs, from
// many workers in one process or several, each with its own connections to the same database, and
// then checks what every observer was told, what moved, and the audit.
package racelab

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobledger/ledger"
)

// The upper bounds of the options of the same names.
const (
	WorkersMax       = 256
	ProcessesMax     = 64
	JobsMax          = 100_000
	NotificationsMax = 10_000
	ObserversMax     = 1024      // workers in all processes together: each holds open files
	TotalMax         = 1_000_000 // notifications at all jobs together: each is kept in the result
)

// Options say what to race. Numbers have no defaults: 0 is refused.
type Options struct {
	DSN           string      // an existing ledger; empty: a scratch ledger, deleted afterwards
	Workers       int         // per process, 1 to WorkersMax
	Notifications int         // per job, from all workers together, 1 to NotificationsMax
	Processes     int         // 1 to ProcessesMax; with 1 the workers run in this process
	Jobs          int         // 1 to JobsMax
	Cost          int64       // of each job
	Mode          ledger.Mode // of each job
	Mix           bool        // half of the notifications say completed; else all say failed

	// Child is the command line of a process that calls [Child]; default: this program's own file
	// with the argument race-child.
	Child []string `json:"-"`

	// Silence bounds how long a child process may say nothing; default crew.SilenceDefault.
	Silence time.Duration `json:"-"`

	// Progress, if set, hears of each job created and each notification answered, out of how many.
	// Calls do not overlap.
	Progress func(done, total int) `json:"-"`
}

// Observer is what one notification said and what its sender was told.
type Observer struct {
	Process  int            `json:"process"` // from 1
	Worker   int            `json:"worker"`  // from 1, within its process
	Job      string         `json:"job"`
	Won      bool           `json:"won"`
	Reported ledger.Outcome `json:"reported"` // what this notification said
	Outcome  ledger.Outcome `json:"outcome"`  // how the job ended, as the observer was told
	Micros   int64          `json:"micros"`   // how long the answer took
}

// Audit is the short form of the audit's report.
type Audit struct {
	OK bool `json:"ok"`
}

// Result is what a race showed. Its JSON form is a contract; the other fields are for people.
type Result struct {
	Jobs          int            `json:"jobs"`
	Notifications int            `json:"notifications"` // fired at all jobs together
	Wins          int            `json:"wins"`
	RefundEntries int            `json:"refund_entries"`
	Returned      int64          `json:"returned"` // by the winners, as they were told
	Consumed      int64          `json:"consumed"`
	Balance       ledger.Balance `json:"balance"`   // after the race
	Observers     []Observer     `json:"observers"` // by job; the winner first, the others as answers came
	Audit         Audit          `json:"audit"`

	Owner   string         `json:"-"`
	Before  ledger.Balance `json:"-"` // when the jobs were created and no notification was fired
	Checks  int            `json:"-"` // how many the audit made
	Busy    int            `json:"-"` // answers BUSY, each tried again
	Elapsed time.Duration  `json:"-"` // from the release to the last answer
	Broken  []string       `json:"-"` // a sentence for each broken invariant

	shots []shot // what Observers and Timeline show
	moves []move
	want  int64 // the credits that the owner must have at the end, by how the jobs ended
}

// Run creates the jobs, races the notifications and checks the outcome.
//
// Errors: INVALID, naming the option; INCONSISTENT, with the result, if an invariant is broken; what
// a worker met, such as BUSY after its retries; INTERNAL if a child process died or fell silent; that
// of ctx if it ended. No child process and no scratch ledger outlives the call.
func Run(ctx context.Context, o Options) (r Result, err error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	if o.DSN == "" {
		dir, err := os.MkdirTemp("", "jobledger-race-")
		if err != nil {
			return Result{}, fmt.Errorf("race: scratch directory: %w", err)
		}
		defer os.RemoveAll(dir)
		o.DSN = filepath.Join(dir, "race.db")
		if _, err := ledger.Create(ctx, o.DSN, ledger.Options{}); err != nil {
			return Result{}, ended(ctx, err)
		}
	}
	l, err := ledger.Open(ctx, o.DSN, ledger.Options{})
	if err != nil {
		return Result{}, ended(ctx, err)
	}
	defer l.Close()
	p := plan{Options: o, Owner: "race-" + strings.ToLower(rand.Text()[:10])}
	r, err = p.run(ctx, l)
	return r, ended(ctx, err)
}

// ended prefers the end of ctx to what it caused.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the race was stopped before its end: %w", ctx.Err())
	}
	return err
}

func (o *Options) check() error {
	for _, n := range []struct {
		field      string
		value, max int
	}{
		{"workers", o.Workers, WorkersMax},
		{"processes", o.Processes, ProcessesMax},
		{"jobs", o.Jobs, JobsMax},
		{"notifications", o.Notifications, NotificationsMax},
	} {
		if n.value < 1 || n.value > n.max {
			return ledger.InvalidField(n.field, "%d is out of range; it takes 1 to %d", n.value, n.max)
		}
	}
	switch {
	case o.Workers*o.Processes > ObserversMax:
		return ledger.InvalidField("workers", "%d in each of %d processes are more than %d",
			o.Workers, o.Processes, ObserversMax)
	case o.Jobs*o.Notifications > TotalMax:
		return ledger.InvalidField("notifications", "%d for each of %d jobs are more than %d",
			o.Notifications, o.Jobs, TotalMax)
	case o.Cost < 1 || o.Cost > ledger.AmountMax/int64(o.Jobs):
		return ledger.InvalidField("cost", "%d is out of range; it takes 1 to %d for %d jobs",
			o.Cost, ledger.AmountMax/int64(o.Jobs), o.Jobs)
	case o.Mode != ledger.ModeCharge && o.Mode != ledger.ModeHold:
		return ledger.InvalidField("mode", "%q is not one of hold, charge", o.Mode)
	}
	return nil
}

// run is a race at an open ledger.
func (p *plan) run(ctx context.Context, l *ledger.Ledger) (Result, error) {
	steps := p.counter()
	before, err := p.setUp(ctx, l, steps)
	if err != nil {
		return Result{}, err
	}
	began := time.Time{}
	release := func() error { began = time.Now(); return nil }
	var shots []shot
	keep := func(s shot) error {
		shots = append(shots, s)
		steps()
		return nil
	}
	if p.Processes == 1 {
		p.Process = 1
		err = p.fire(ctx, release, keep)
	} else {
		err = p.spread(ctx, release, keep)
	}
	if err != nil {
		return Result{}, err
	}
	elapsed := time.Since(began)
	e, err := p.gather(ctx, l, shots)
	if err != nil {
		return Result{}, err
	}
	r := p.result(e)
	r.Before, r.Elapsed = before, elapsed
	return r, r.verdict()
}

// verdict is INCONSISTENT, naming the broken invariants or the first of many, or nil.
func (r *Result) verdict() error {
	const namedMax = 20
	n := len(r.Broken)
	if n == 0 {
		return nil
	}
	message := fmt.Sprintf("invariants that the race broke: %d: %s", n,
		strings.Join(r.Broken[:min(n, namedMax)], "; "))
	if n > namedMax {
		message += "; and more"
	}
	return &ledger.Error{Code: ledger.Inconsistent, Message: message}
}

// counter gives a function that counts one step of the race, for Progress.
func (p *plan) counter() func() {
	done, total := 0, p.Jobs+p.total()
	return func() {
		done++
		if p.Progress != nil {
			p.Progress(done, total)
		}
	}
}
