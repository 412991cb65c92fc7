// Package demo plays a whole system on this machine: the server with its poller and its sender of events, a
// provider that calls back in all the ways in which providers do, forgers, and an app that submits jobs and
// receives events. Everything goes through real HTTP on loopback addresses.
//
// [Run] directs it; plan.go says what befalls each job, drive.go lets it happen, forge.go are the forgers,
// receiver.go is the app's side of the events, and check.go compares what everybody was told with what the
// ledger says in the end.
package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"jobledger/internal/fakeprovider"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

// JobsMax is the largest number of jobs.
const JobsMax = 100_000

// Options say what is played.
type Options struct {
	Dir  string // an existing directory, in which the ledger and the files of the server are made
	Jobs int    // 1 to JobsMax
	Seed uint64 // the same seed plays the same stories

	// Progress, if set, is called as jobs end.
	Progress func(done, total int)
}

// Result is how it went.
type Result struct {
	Database  string                 `json:"db"`
	Jobs      int                    `json:"jobs"`
	Seed      uint64                 `json:"seed"`
	Stories   map[Story]int          `json:"stories"`  // jobs, by what befell their callbacks
	Verdicts  map[ledger.Verdict]int `json:"verdicts"` // on all reports
	Callbacks int                    `json:"callbacks"`
	Polled    int                    `json:"polled"` // jobs that the poller settled
	Forged    int                    `json:"forged"`
	Refused   int                    `json:"refused"`  // of the forged callbacks
	Events    int                    `json:"events"`   // that the ledger wrote
	Received  int                    `json:"received"` // by their ids
	Repeated  int                    `json:"repeated"` // sent again under an id that had been received
	Balances  []ledger.Balance       `json:"balances"`
	Audit     ledger.AuditReport     `json:"audit"`
	Broken    []string               `json:"broken"` // what is not as it must be; empty: all is well
	Seconds   float64                `json:"seconds"`
}

// provider is the provider's name in the ledger.
const provider = "demo"

// director has all that takes part.
type director struct {
	options  Options
	plans    []plan
	app      *client
	provider *fakeprovider.Provider
	orders   *fakeprovider.Client
	key      webhook.Key // that the provider signs with
	receiver *receiver

	mutex    sync.Mutex
	done     int
	result   Result
	verdicts map[ledger.Verdict]int64 // that callbacks were answered with
}

func newDirector(o Options) *director {
	return &director{
		options: o, plans: plans(o.Jobs, o.Seed), verdicts: map[ledger.Verdict]int64{},
		result: Result{
			Database: filepath.Join(o.Dir, "demo.db"), Jobs: o.Jobs, Seed: o.Seed, Stories: map[Story]int{},
			Verdicts: map[ledger.Verdict]int{}, Balances: []ledger.Balance{}, Broken: []string{},
		},
	}
}

// Run plays the demo. The error is that it could not be played to the end; what is not as it must be is in
// the result.
func Run(ctx context.Context, o Options) (r Result, err error) {
	d := newDirector(o)
	began := time.Now()
	stop, err := d.setUp(ctx)
	if err == nil {
		err = d.play(ctx)
	}
	err = errors.Join(err, stop())
	d.result.Seconds = time.Since(began).Seconds()
	return d.result, err
}

// play grants credits, drives all jobs, waits for the rest, and checks.
func (d *director) play(ctx context.Context) error {
	for _, owner := range owners {
		var granted ledger.GrantResult
		err := d.app.post(ctx, "/v1/grants", map[string]any{
			"owner": owner, "amount": d.granted(), "key": "demo-" + owner,
		}, &granted)
		if err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{d.drive, d.settled, d.late, d.delivered, d.check} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// granted is what each owner gets: enough for all jobs.
func (d *director) granted() int64 { return int64(d.options.Jobs) * costMax }

// workers is how many jobs are driven at once.
const workers = 12

// each does something for every job of some stories, several at once, until one fails.
func (d *director) each(ctx context.Context, do func(context.Context, *plan) error, of ...Story) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wanted := map[Story]bool{}
	for _, s := range of {
		wanted[s] = true
	}
	work := make(chan *plan)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for p := range work {
				if err := do(ctx, p); err != nil {
					cancel(fmt.Errorf("%s: %w", p.id, err))
				}
			}
		})
	}
	for i := range d.plans {
		if wanted[d.plans[i].story] && ctx.Err() == nil {
			work <- &d.plans[i]
		}
	}
	close(work)
	group.Wait()
	return context.Cause(ctx)
}

// progress notes that a job has ended.
func (d *director) progress(jobs int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.done += jobs
	if d.options.Progress != nil {
		d.options.Progress(d.done, d.options.Jobs)
	}
}

// broke notes something that is not as it must be.
func (d *director) broke(format string, args ...any) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.result.Broken = append(d.result.Broken, fmt.Sprintf(format, args...))
}

// callback is where the provider reports.
func (d *director) callback() string { return d.app.url + "/v1/callbacks/" + provider }

// newClient makes a client that keeps its connections.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * workers}, Timeout: time.Minute}
}
