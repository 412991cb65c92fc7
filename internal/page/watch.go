package page

import (
	"context"
	"sync"
	"time"

	"jobledger/ledger"
)

const (
	surveyEvery = 2 * time.Second // at least, between the end of a survey and the next
	surveyShare = 20              // a survey takes at most one part in so many of the time
	auditShare  = 100             // and an audit
	surveyRows  = 10              // of each of its lists
	lookedAt    = 30 * time.Second
)

// watch is what is known from looks at everything, and when they were taken.
type watch struct {
	mutex      sync.Mutex
	survey     *ledger.Survey // nil: none yet
	surveyTook time.Duration
	surveyErr  error // of the last try
	audit      *auditResult
	asked      time.Time     // when somebody last wanted to know
	wake       chan struct{} // says that somebody wants to know
}

// auditResult is what an audit found.
type auditResult struct {
	Report ledger.AuditReport
	At     ledger.Time
	Took   time.Duration
	Broken int // checks that do not hold
	Err    string
}

// Run looks at everything now and then, until ctx ends: it counts at once and then while somebody looks at
// the pages, and audits at once and then at most once in Options.AuditEvery. Neither takes more than a
// small share of the time. When ctx ends, streams and the lab's run end too.
func (p *Page) Run(ctx context.Context) {
	defer p.stop()
	var both sync.WaitGroup
	both.Go(func() { p.survey(ctx) })
	both.Go(func() { p.audit(ctx) })
	both.Wait()
	p.stop()
	p.lab.wait()
}

// survey counts again and again while somebody wants to know.
func (p *Page) survey(ctx context.Context) {
	for {
		pause := max(surveyEvery, p.surveyOnce(ctx)*(surveyShare-1))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		p.watch.mutex.Lock()
		idle := time.Since(p.watch.asked) > lookedAt
		p.watch.mutex.Unlock()
		if !idle {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-p.watch.wake:
		}
	}
}

// surveyOnce counts, and tells how long that took.
func (p *Page) surveyOnce(ctx context.Context) time.Duration {
	began := time.Now()
	s, err := p.ledger.Survey(ctx, surveyRows)
	took := time.Since(began)
	if err != nil && ctx.Err() == nil {
		p.options.Log.Warn("page: survey", "error", err)
	}
	p.watch.mutex.Lock()
	defer p.watch.mutex.Unlock()
	p.watch.surveyErr = err
	if err == nil {
		p.watch.survey, p.watch.surveyTook = &s, took
	}
	return took
}

// audit audits now and then.
func (p *Page) audit(ctx context.Context) {
	for {
		pause := max(p.options.AuditEvery, p.auditOnce(ctx)*(auditShare-1))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// auditOnce audits, and tells how long that took.
func (p *Page) auditOnce(ctx context.Context) time.Duration {
	began := time.Now()
	report, err := p.ledger.Audit(ctx, ledger.AuditParams{})
	took := time.Since(began)
	if ctx.Err() != nil {
		return took
	}
	a := &auditResult{Report: report, At: ledger.At(began), Took: took}
	for _, c := range report.Checks {
		if !c.OK {
			a.Broken++
		}
	}
	if err != nil {
		a.Err = err.Error()
		p.options.Log.Error("page: audit", "error", err)
	}
	p.watch.mutex.Lock()
	defer p.watch.mutex.Unlock()
	p.watch.audit = a
	return took
}

// known gives what is known, and notes that somebody wants to know.
func (w *watch) known() watched {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.asked = time.Now()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return watched{Survey: w.survey, Took: w.surveyTook, Failed: w.surveyErr != nil, Audit: w.audit}
}

// watched is what a page shows of it.
type watched struct {
	Survey *ledger.Survey
	Took   time.Duration
	Failed bool // the last try to count did not succeed
	Audit  *auditResult
}
