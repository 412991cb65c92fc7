package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"jobledger/internal/crew"
	"jobledger/ledger"
)

// meteredJobs are settled to see what a settlement writes: so few that the WAL does not start anew.
const meteredJobs = 128

// run is one run: every operation for each of its jobs, then some jobs more to see what is written.
func (b *bench) run(ctx context.Context, f fleet, p plan) (r Run, err error) {
	r = Run{Workers: p.Callers, Jobs: b.Jobs}
	if !p.Loaded {
		if err := b.grant(ctx, f, &p); err != nil {
			return r, err
		}
	}
	p.Jobs = b.Jobs
	for _, phase := range []string{"create", "settle", "duplicate", "balance"} {
		if err := b.sync(); err != nil {
			return r, err
		}
		seen, err := b.phase(ctx, p, phase)
		if err != nil {
			return r, err
		}
		r.RSS = max(r.RSS, seen.RSS)
		all := r.note(phase, append(seen.Took[0], seen.Took[1]...), seen.Ended-seen.Began)
		if phase == "settle" {
			r.PerSecond, r.P50, r.P99, r.P999, r.Max = all.PerSecond, all.P50, all.P99, all.P999, all.Max
			r.Settlement.Statements = float64(seen.Statements) / float64(all.Count)
			if !b.RiskPowerLoss { // then no commit waits
				r.Settlement.Syncs = float64(seen.Commits) / float64(all.Count)
			}
			r.note(string(outcomes[0]), seen.Took[0], 0)
			r.note(string(outcomes[1]), seen.Took[1], 0)
		}
	}
	p.First, p.Jobs = b.Jobs, meteredJobs
	if _, err := b.phase(ctx, p, "create"); err != nil {
		return r, err
	}
	pages, bytes, err := b.meter.during(ctx, func() error {
		_, err := b.phase(ctx, p, "settle")
		return err
	})
	r.Settlement.Pages, r.Settlement.WAL = pages/meteredJobs, bytes/meteredJobs
	return r, err
}

// phase does one operation for each of a plan's jobs.
func (b *bench) phase(ctx context.Context, p plan, name string) (all result, err error) {
	p.Phase, p.Process = name, 1
	if p.Processes == 1 {
		return p.fire(ctx, crew.AtOnce, func() { b.step(1) })
	}
	const silence = time.Hour // a process answers once, at its end; what hangs in it ends with BUSY
	c := crew.Crew[plan, result]{
		Name:     "measurement",
		Argument: "bench-child",
		Command:  b.Child,
		Silence:  silence,
		Plan: func(process int) plan {
			own := p
			own.Process = process
			return own
		},
		Parts: func(plan) int { return 1 },
		Keep:  func(r result) error { all.add(r); return nil },
	}
	err = c.Run(ctx, p.Processes, crew.AtOnce)
	b.step(p.Jobs)
	return all, err
}

// add adds what another process saw at the same time.
func (r *result) add(other result) {
	if r.Began == 0 || other.Began < r.Began {
		r.Began = other.Began
	}
	r.Ended, r.RSS = max(r.Ended, other.Ended), max(r.RSS, other.RSS)
	r.Commits, r.Statements = r.Commits+other.Commits, r.Statements+other.Statements
	for i := range r.Took {
		r.Took[i] = append(r.Took[i], other.Took[i]...)
	}
}

// grant gives each new owner lots that pay for its jobs.
func (b *bench) grant(ctx context.Context, f fleet, p *plan) error {
	jobs := (b.Jobs + meteredJobs + p.Owners - 1) / p.Owners
	amount := cost * int64((jobs+b.Lots-1)/b.Lots)
	return inParallel(p.Owners*b.Lots, func(i int) error {
		owner := p.owner(i / b.Lots)
		g := ledger.GrantParams{Owner: owner, Amount: amount, Key: fmt.Sprintf("%s-%d", owner, i%b.Lots)}
		_, err := f.of(owner).Grant(ctx, g)
		return err
	})
}

// load brings the ledger to a number of jobs, settled ones, and audits it.
func (b *bench) load(ctx context.Context, f fleet, jobs int) (Load, error) {
	began := time.Now()
	owners := loadedOwners(jobs)
	err := inParallel(owners, func(i int) error {
		const spare = 1_000_000_000
		owner := loadedOwner(i)
		_, err := f.of(owner).Preload(ctx, ledger.PreloadParams{
			Owner: owner, Jobs: ownerJobs, Cost: cost, Mode: b.Mode, Spare: spare,
		})
		b.step(ownerJobs)
		return err
	})
	l := Load{Jobs: owners * ownerJobs, Seconds: time.Since(began).Seconds(), Bytes: b.place.bytes()}
	if err == nil {
		l.Audit, err = f.audit(ctx)
	}
	return l, err
}

// ownerJobs is how many jobs a preloaded owner has.
const ownerJobs = 100

func loadedOwners(jobs int) int { return (jobs + ownerJobs - 1) / ownerJobs }

func loadedOwner(i int) string { return fmt.Sprintf("%sload-%07d", ownPrefix, i) }

// inParallel calls do with 0 to n-1, several at a time, until one fails.
func inParallel(n int, do func(i int) error) error {
	const atATime = 32
	var (
		mutex sync.Mutex
		next  int
		first error
		wait  sync.WaitGroup
	)
	take := func() (i int, more bool) {
		mutex.Lock()
		defer mutex.Unlock()
		next++
		return next - 1, next <= n && first == nil
	}
	for range min(n, atATime) {
		wait.Go(func() {
			for i, more := take(); more; i, more = take() {
				if err := do(i); err != nil {
					mutex.Lock()
					first = err
					mutex.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return first
}
