package bench

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"jobledger/internal/crew"
	"jobledger/ledger"
)

// plan is what one process does in one phase of a run.
type plan struct {
	DSNs          []string
	RiskPowerLoss bool
	Mode          ledger.Mode
	Session       string // begins the names of what is new
	Callers       int    // in this process
	Processes     int
	Process       int // from 1: which one reads this plan

	Owners int  // of the jobs
	Loaded bool // the owners are preloaded ones, Stride from each other
	Stride int

	Phase string // a key of operations
	First int    // of the jobs
	Jobs  int
}

// operations are the phases of a run: what is done with job j.
var operations = map[string]func(ctx context.Context, l *ledger.Ledger, p *plan, j int) error{
	"create": func(ctx context.Context, l *ledger.Ledger, p *plan, j int) error {
		r, err := l.CreateJob(ctx, ledger.JobParams{ID: p.job(j), Owner: p.owner(j), Cost: cost, Mode: p.Mode})
		return unless(err, !r.Replayed, "job %s was there", p.job(j))
	},
	"settle": func(ctx context.Context, l *ledger.Ledger, p *plan, j int) error {
		s, err := l.Settle(ctx, ledger.Report{Job: p.job(j), Outcome: outcomes[j%2], Source: ledger.Callback})
		return unless(err, s.Won, "job %s was settled before", p.job(j))
	},
	"duplicate": func(ctx context.Context, l *ledger.Ledger, p *plan, j int) error {
		s, err := l.Settle(ctx, ledger.Report{Job: p.job(j), Outcome: outcomes[j%2], Source: ledger.Poll})
		return unless(err, s.Verdict == ledger.Duplicate, "a second report of job %s is %s", p.job(j), s.Verdict)
	},
	"balance": func(ctx context.Context, l *ledger.Ledger, p *plan, j int) error {
		_, err := l.Balance(ctx, ledger.BalanceParams{Owner: p.owner(j)})
		return err
	},
}

// outcomes take turns.
var outcomes = [2]ledger.Outcome{ledger.Completed, ledger.Failed}

// unless gives err, or an error in the given words if what was done is not what was asked for.
func unless(err error, right bool, format string, args ...any) error {
	if err == nil && !right {
		return &ledger.Error{Code: ledger.Inconsistent, Message: fmt.Sprintf(format, args...)}
	}
	return err
}

// spread chooses the owners: as many as are asked for, or a hundred; of a preloaded ledger as many as
// there are, at even distances, so that the pages that the jobs touch are spread over the whole.
func (p *plan) spread(owners, size, jobs int) {
	all := loadedOwners(size)
	if p.Loaded = all > 0; !p.Loaded {
		const usual = 100
		if p.Owners = owners; owners == 0 {
			p.Owners = usual
		}
		return
	}
	if p.Owners = min(owners, all); owners == 0 {
		p.Owners = min(all, jobs)
	}
	p.Stride = all / p.Owners
}

// owner is the owner of job j.
func (p *plan) owner(j int) string {
	if p.Loaded {
		return loadedOwner(j % p.Owners * p.Stride)
	}
	return fmt.Sprintf("%s%s-%d", ownPrefix, p.Session, j%p.Owners)
}

// job is the id of job j: in the order of ids, it stands beside its owner's others.
func (p *plan) job(j int) string { return fmt.Sprintf("%s-%s-%d", p.owner(j), p.Session, j) }

// result is what one process saw in one phase: what each operation took, those of even jobs first, and
// when it began and ended by the machine's clock. Numbers are nanoseconds.
type result struct {
	Took         [2][]int64
	Began, Ended int64
	Commits      int64
	Statements   int64
	RSS          int64
}

// Child is one process of a run, on the stdin and stdout that [Measure] gave it.
func Child(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	return crew.Serve(ctx, stdin, stdout,
		func(ctx context.Context, p plan, ready func() error, keep func(result) error) error {
			if operations[p.Phase] == nil || p.Callers < 1 || p.Owners < 1 || len(p.DSNs) == 0 {
				return ledger.InvalidField("stdin", "has no plan; this command is for bench itself")
			}
			r, err := p.fire(ctx, ready, func() {})
			if err != nil {
				return err
			}
			return keep(r)
		})
}

// fire is this process's share of a phase. Its callers share one ledger, as those of a server do.
func (p *plan) fire(ctx context.Context, release func() error, done func()) (r result, err error) {
	o := ledger.Options{RiskPowerLoss: p.RiskPowerLoss}
	var statements, commits atomic.Int64
	count(&o.Intercept, &statements, &commits)
	f, err := openFleet(ctx, p.DSNs, o)
	if err != nil {
		return r, err
	}
	defer f.close()
	for _, l := range f { // the connection that writes must not be opened in the race
		_, err := l.Settle(ctx, ledger.Report{Job: "none", Outcome: ledger.Failed, Source: ledger.Poll})
		if ledger.CodeOf(err) != ledger.NotFound {
			return r, unless(err, false, "there is a job none")
		}
	}
	took := make([][2][]int64, p.Callers)
	err = crew.Together(ctx, p.Callers, func() error {
		err := release()
		r.Statements, r.Commits, r.Began = -statements.Load(), -commits.Load(), time.Now().UnixNano()
		return err
	}, func(ctx context.Context, i int, wait func() error) error {
		err := wait()
		first, stride := p.First+(p.Process-1)*p.Callers+i, p.Callers*p.Processes
		for j := first; j < p.First+p.Jobs && err == nil; j += stride {
			began := time.Now()
			err = operations[p.Phase](ctx, f.of(p.owner(j)), p, j)
			took[i][j%2] = append(took[i][j%2], int64(time.Since(began)))
			done()
		}
		return err
	})
	r.Ended = time.Now().UnixNano()
	r.Statements, r.Commits, r.RSS = r.Statements+statements.Load(), r.Commits+commits.Load(), residentBytes()
	for _, t := range took {
		r.Took[0], r.Took[1] = append(r.Took[0], t[0]...), append(r.Took[1], t[1]...)
	}
	return r, err
}

// count sets an interceptor that counts the statements of writes, and the commits among them. When is the
// side of the statement; its zero value is before it.
func count[When comparable](set *func(When, string) error, statements, commits *atomic.Int64) {
	*set = func(when When, query string) error {
		var before When
		if when == before {
			statements.Add(1)
			if query == "COMMIT" {
				commits.Add(1)
			}
		}
		return nil
	}
}
