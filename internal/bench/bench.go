// Package bench measures a ledger on the machine that it is on: how long its operations take, by how
// many callers, beside the time that the disk takes for one sync, and what a settlement writes.
//
// It works in a scratch ledger, or in one of its own: one that holds no owners but those whose names
// begin with bench-. What it writes stays in the journal for ever, so it does not touch other ledgers.
package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jobledger/ledger"
)

// The upper bounds of the options of the same names.
const (
	WorkersMax   = 256
	ProcessesMax = 64
	CallersMax   = 1024 // workers in all processes together
	JobsMax      = 1_000_000
	OwnersMax    = 1_000_000
	LotsMax      = 100_000
	PreloadMax   = 100_000_000
	ShardsMax    = 64
)

// cost is what each job costs.
const cost = 7

// Options say what to measure. Numbers have no defaults but where it is said.
type Options struct {
	DSN       string      // a ledger of its own, made if there is none; empty: a scratch file
	Workers   []int       // one run each; per process, 1 to WorkersMax
	Jobs      int         // created and settled in each run, 1 to JobsMax
	Mode      ledger.Mode // of each job
	Processes int         // 1 to ProcessesMax; with 1 the workers are in this process
	Preload   []int       // settled jobs that are there before the runs, rising; 0 to PreloadMax
	Owners    int         // of the jobs, 1 to OwnersMax; 0: a hundred, or all that were preloaded
	Lots      int         // of each owner that is not preloaded, 1 to LotsMax
	Shards    int         // files over which the owners are spread, 1 to ShardsMax

	// RiskPowerLoss does not wait for the disk, for comparison: see [ledger.Options].
	RiskPowerLoss bool

	// Child is the command line of a process that calls [Child]; default: this program's own file
	// with the argument bench-child.
	Child []string `json:"-"`

	// Progress, if set, hears how many operations are done, out of how many. Calls do not overlap.
	Progress func(done, total int) `json:"-"`
}

// Report is what was measured. Its JSON form is a contract.
type Report struct {
	Runs       []Run       `json:"runs"`
	Fdatasync  float64     `json:"fdatasync_micros"` // median, beside the file; 0 where there is no file
	Engine     string      `json:"engine"`
	Durability string      `json:"durability"` // full, or normal: a power loss takes commits back
	Mode       ledger.Mode `json:"mode"`
	Processes  int         `json:"processes"`
	Shards     int         `json:"shards"`
	Owners     int         `json:"owners"` // of the jobs of a run
	Lots       int         `json:"lots"`
	IdleRSS    int64       `json:"idle_rss_bytes"` // of this process with the ledger open; 0: not known
	Loads      []Load      `json:"loads"`          // one for each size that was preloaded
	Audit      float64     `json:"audit_seconds"`  // of the whole ledger, at the end
}

// Load is what it took to bring the ledger to a size. Bytes are those of the files.
type Load struct {
	Jobs    int     `json:"jobs"`
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"`
	Audit   float64 `json:"audit_seconds"`
}

// Run is one number of workers at one size of the ledger.
type Run struct {
	Preloaded  int         `json:"preloaded"`
	Workers    int         `json:"workers"` // per process
	Jobs       int         `json:"jobs"`
	PerSecond  float64     `json:"settles_per_second"`
	P50        int64       `json:"p50_micros"` // of a settlement
	P99        int64       `json:"p99_micros"`
	P999       int64       `json:"p999_micros"`
	Max        int64       `json:"max_micros"`
	Ratio      float64     `json:"p50_per_fdatasync"` // 0 where there is no file
	Operations []Operation `json:"operations"`
	Settlement Settlement  `json:"per_settlement"`
	RSS        int64       `json:"rss_bytes"` // the most of any process of the run; 0: not known
}

// Settlement is what one settlement costs, on average over many.
type Settlement struct {
	Statements float64 `json:"statements"` // sent to the engine, with its share of BEGIN and COMMIT
	Syncs      float64 `json:"syncs"`      // by commits, one each, or 0 if none waits; not those of checkpoints
	Pages      float64 `json:"pages"`      // written to the WAL; 0 on PostgreSQL
	WAL        float64 `json:"wal_bytes"`
}

// Measure makes all runs, one after the other. The ledger is audited in the end.
//
// Errors: INVALID, naming the option, also for a ledger that is not its own; INCONSISTENT if the audit
// finds something; what an operation met, such as BUSY; that of ctx. No process and no scratch ledger
// outlives the call.
func Measure(ctx context.Context, o Options) (r Report, err error) {
	if err := o.check(); err != nil {
		return Report{}, err
	}
	p, err := o.place(ctx)
	if err != nil {
		return Report{}, err
	}
	defer func() {
		if removed := p.remove(); err == nil {
			err = removed
		}
	}()
	b := &bench{Options: o, place: p, session: strings.ToLower(rand.Text()[:6])}
	return b.measure(ctx)
}

func (o *Options) check() error {
	type bound struct {
		field           string
		value, low, max int
	}
	bounds := []bound{
		{"jobs", o.Jobs, 1, JobsMax}, {"processes", o.Processes, 1, ProcessesMax}, {"lots", o.Lots, 1, LotsMax},
		{"owners", o.Owners, 0, OwnersMax}, {"shards", o.Shards, 1, ShardsMax},
		{"workers", len(o.Workers), 1, WorkersMax},
	}
	for _, n := range o.Workers {
		bounds = append(bounds, bound{"workers", n, 1, min(WorkersMax, CallersMax/max(1, o.Processes))})
	}
	low := 0
	for _, n := range o.Preload {
		bounds = append(bounds, bound{"preload", n, low, PreloadMax})
		low = n + 1
	}
	for _, b := range bounds {
		if b.value < b.low || b.value > b.max {
			return ledger.InvalidField(b.field, "%d is out of range; it takes %d to %d here", b.value, b.low, b.max)
		}
	}
	if o.Mode != ledger.ModeCharge && o.Mode != ledger.ModeHold {
		return ledger.InvalidField("mode", "%q is not one of hold, charge", o.Mode)
	}
	return nil
}

// bench is one measurement under way.
type bench struct {
	Options
	place   place
	session string // begins the names of what is new
	meter   meter
	syncs   []time.Duration // of the disk, alone

	done  atomic.Int64
	total int
	one   sync.Mutex // calls Progress
}

func (b *bench) measure(ctx context.Context) (r Report, err error) {
	r = Report{
		Durability: "full", Mode: b.Mode, Processes: b.Processes, Shards: b.Shards, Lots: b.Lots, Loads: []Load{},
	}
	if b.RiskPowerLoss {
		r.Durability = "normal"
	}
	f, err := openFleet(ctx, b.place.dsns, ledger.Options{RiskPowerLoss: b.RiskPowerLoss})
	if err != nil {
		return r, err
	}
	defer f.close()
	if err := f.own(ctx); err != nil {
		return r, err
	}
	if b.meter, err = newMeter(b.place); err != nil {
		return r, err
	}
	defer b.meter.close()
	r.Engine, r.IdleRSS = f[0].Engine(), residentBytes()
	sizes := b.Preload
	if len(sizes) == 0 {
		sizes = []int{0}
	}
	b.total = sizes[len(sizes)-1] + len(sizes)*len(b.Workers)*(4*b.Jobs+2*meteredJobs)
	for _, size := range sizes {
		if size > 0 {
			l, err := b.load(ctx, f, size)
			if err != nil {
				return r, err
			}
			r.Loads = append(r.Loads, l)
		}
		if err := b.runs(ctx, f, size, &r); err != nil {
			return r, err
		}
	}
	r.Fdatasync = micros(median(b.syncs))
	for i := range r.Runs {
		if r.Fdatasync > 0 {
			r.Runs[i].Ratio = float64(r.Runs[i].P50) / r.Fdatasync
		}
	}
	r.Audit, err = f.audit(ctx)
	return r, err
}

// runs makes one run for each number of workers, at the ledger's present size.
func (b *bench) runs(ctx context.Context, f fleet, size int, r *Report) error {
	for i, workers := range b.Workers {
		p := plan{
			DSNs: b.place.dsns, RiskPowerLoss: b.RiskPowerLoss, Mode: b.Mode, Callers: workers,
			Processes: b.Processes, Session: fmt.Sprintf("%s%d-%d", b.session, i, size),
		}
		p.spread(b.Owners, size, b.Jobs)
		r.Owners = p.Owners
		run, err := b.run(ctx, f, p)
		run.Preloaded = size
		if err != nil {
			return err
		}
		r.Runs = append(r.Runs, run)
	}
	return nil
}

// step tells Progress of an operation that is done; it never waits for it.
func (b *bench) step(n int) {
	done := int(b.done.Add(int64(n)))
	if b.Progress != nil && b.one.TryLock() {
		b.Progress(min(done, b.total), b.total)
		b.one.Unlock()
	}
}
