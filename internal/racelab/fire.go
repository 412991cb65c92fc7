package racelab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"jobledger/internal/crew"
	"jobledger/ledger"
)

const (
	creatorsMax = 64 // jobs that are created at the same time
	triesMax    = 5  // calls of Settle for one notification while the answer is BUSY
)

// plan is one race: everything that follows from it is fixed but who wins.
type plan struct {
	Options
	Owner   string // of the jobs; also the key of its grant and the start of the jobs' ids
	Process int    // from 1: which process reads this plan
}

// shot is a notification that was answered. When it began is a time of the machine's clock, which the
// processes share, in microseconds; when it met BUSY is counted from there.
type shot struct {
	Observer
	Returned int64   `json:"returned"`
	Consumed int64   `json:"consumed"`
	Began    int64   `json:"began"`
	Busy     []int64 `json:"busy,omitempty"`
}

func (s *shot) end() int64 { return s.Began + s.Micros }

func (p *plan) total() int { return p.Jobs * p.Notifications }

// worker is the place of a worker, from 0, in its process among all workers of the race.
func (p *plan) worker(w int) int { return (p.Process-1)*p.Workers + w }

// share is how many notifications fall to one process.
func (p *plan) share() (n int) {
	for w := range p.Workers {
		stride := p.Workers * p.Processes
		n += (p.total() - p.worker(w) + stride - 1) / stride
	}
	return n
}

func (p *plan) jobID(j int) string {
	return fmt.Sprintf("%s-%0*d", p.Owner, len(fmt.Sprint(p.Jobs)), j+1)
}

// report is notification n, from 0, of job j. Callback and poll take turns; in a mix so do completed
// and failed, starting with another one at each job.
func (p *plan) report(j, n int) ledger.Report {
	r := ledger.Report{Job: p.jobID(j), Outcome: ledger.Failed, Source: ledger.Callback}
	if n%2 == 1 {
		r.Source = ledger.Poll
	}
	if p.Mix && (n+j)%2 == 0 {
		r.Outcome = ledger.Completed
	}
	return r
}

func (p *plan) grant() ledger.GrantParams {
	return ledger.GrantParams{Owner: p.Owner, Amount: p.Cost * int64(p.Jobs), Key: p.Owner}
}

// setUp grants what the jobs cost, creates them, and gives the owner's balance then.
func (p *plan) setUp(ctx context.Context, l *ledger.Ledger, created func()) (ledger.Balance, error) {
	if _, err := l.Grant(ctx, p.grant()); err != nil {
		return ledger.Balance{}, err
	}
	creators := min(p.Jobs, creatorsMax)
	var one sync.Mutex
	err := crew.Together(ctx, creators, crew.AtOnce, func(ctx context.Context, i int, wait func() error) error {
		err := wait()
		for j := i; j < p.Jobs && err == nil; j += creators {
			job := ledger.JobParams{ID: p.jobID(j), Owner: p.Owner, Cost: p.Cost, Mode: p.Mode}
			if _, err = l.CreateJob(ctx, job); err == nil {
				one.Lock()
				created()
				one.Unlock()
			}
		}
		return err
	})
	if err != nil {
		return ledger.Balance{}, err
	}
	return l.Balance(ctx, ledger.BalanceParams{Owner: p.Owner})
}

// fire runs this process's workers. Each opens the ledger for itself; when all are ready, release is
// called, and when that returns they all fire. Calls of keep do not overlap.
func (p *plan) fire(ctx context.Context, release func() error, keep func(shot) error) error {
	var one sync.Mutex
	return crew.Together(ctx, p.Workers, release, func(ctx context.Context, w int, wait func() error) error {
		l, err := p.open(ctx)
		if err != nil {
			return err
		}
		defer l.Close()
		if err := wait(); err != nil {
			return err
		}
		// Notifications are dealt out one by one, so that those of one job go to different workers
		// at about the same time.
		for i := p.worker(w); i < p.total(); i += p.Workers * p.Processes {
			s, err := p.notify(ctx, l, w, i)
			if err != nil {
				return err
			}
			one.Lock()
			err = keep(s)
			one.Unlock()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// open gives a worker its own ledger. Repeating the grant, which changes nothing, opens the
// connection that writes: that must not happen in the race.
func (p *plan) open(ctx context.Context) (*ledger.Ledger, error) {
	l, err := ledger.Open(ctx, p.DSN, ledger.Options{})
	if err != nil {
		return nil, err
	}
	_, err = retry(ctx, func() error {
		_, err := l.Grant(ctx, p.grant())
		return err
	})
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// notify sends notification i of the race and times its answer.
func (p *plan) notify(ctx context.Context, l *ledger.Ledger, w, i int) (shot, error) {
	r := p.report(i/p.Notifications, i%p.Notifications)
	began := time.Now()
	var s ledger.Settlement
	busy, err := retry(ctx, func() (err error) {
		s, err = l.Settle(ctx, r)
		return err
	})
	if err != nil {
		return shot{}, err
	}
	return shot{
		Observer: Observer{
			Process:  p.Process,
			Worker:   w + 1,
			Job:      r.Job,
			Won:      s.Won,
			Reported: s.Reported,
			Outcome:  ledger.Outcome(s.Job.Status),
			Micros:   time.Since(began).Microseconds(),
		},
		Returned: s.Returned,
		Consumed: s.Consumed,
		Began:    began.UnixMicro(),
		Busy:     busy,
	}, nil
}

// retry calls do again while its answer is BUSY, triesMax times at most, and notes when those answers
// came, in microseconds from the first call on.
func retry(ctx context.Context, do func() error) (busy []int64, err error) {
	began := time.Now()
	for range triesMax {
		if err = do(); ledger.CodeOf(err) != ledger.Busy || ctx.Err() != nil {
			return busy, err
		}
		busy = append(busy, time.Since(began).Microseconds())
	}
	return busy, err
}
