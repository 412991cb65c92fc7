package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"jobledger/internal/fakeprovider"
	"jobledger/ledger"
)

// drive creates and submits every job, and lets happen what befalls its callbacks.
func (d *director) drive(ctx context.Context) error { return d.each(ctx, d.driveJob, stories...) }

func (d *director) driveJob(ctx context.Context, p *plan) error {
	id, err := d.submit(ctx, p)
	if err != nil {
		return err
	}
	switch p.story {
	case Lost, Late:
		return nil // until the poller has found out
	case Duplicated:
		err = d.sendAtOnce(ctx, id, p.outcome, 3)
	case Contradicted:
		if err = d.send(ctx, id, string(p.outcome)); err == nil {
			err = d.send(ctx, id, string(opposite(p.outcome)))
		}
	case Reordered:
		if err = d.send(ctx, id, string(p.outcome)); err == nil {
			err = d.send(ctx, id, fakeprovider.Running)
		}
	case OnTime:
		err = d.send(ctx, id, string(p.outcome))
	}
	if err == nil {
		d.progress(1)
	}
	return err
}

// submit creates a job, has the provider take it, and records that. Of an early job the callback comes
// between the two.
func (d *director) submit(ctx context.Context, p *plan) (id string, err error) {
	var made ledger.JobResult
	if err := d.app.post(ctx, "/v1/jobs", map[string]any{
		"id": p.id, "owner": p.owner, "cost": p.cost, "mode": p.mode,
	}, &made); err != nil {
		return "", err
	}
	var marked ledger.SubmitResult
	path := "/v1/jobs/" + p.id + "/attempts"
	if err := d.app.post(ctx, path, map[string]any{"provider": provider}, &marked); err != nil {
		return "", err
	}
	order := fakeprovider.Order{Job: p.id, Attempt: marked.Attempt, Callback: d.callback()}
	answer := d.orders.Create(ctx, order)
	if answer.UpstreamID == "" {
		return "", fmt.Errorf("the provider did not take the job: %+v", answer)
	}
	d.provider.End(answer.UpstreamID, string(p.outcome))
	p.upstream = answer.UpstreamID
	if err := d.tryForgery(ctx, p, &order, answer.UpstreamID); err != nil {
		return "", err
	}
	if p.story == Early {
		if err := d.send(ctx, answer.UpstreamID, string(p.outcome)); err != nil {
			return "", err
		}
	}
	var accepted ledger.AnswerResult
	path = fmt.Sprintf("%s/%d/accepted", path, marked.Attempt)
	err = d.app.post(ctx, path, map[string]any{"upstream_id": answer.UpstreamID}, &accepted)
	return answer.UpstreamID, err
}

// tryForgery lets somebody else call back, if the plan has that. It must be refused.
func (d *director) tryForgery(ctx context.Context, p *plan, o *fakeprovider.Order, id string) error {
	if p.forgery == "" {
		return nil
	}
	status, err := d.forge(ctx, p, fakeprovider.Notice{
		Job: o.Job, Attempt: o.Attempt, ID: id, Outcome: string(p.outcome),
	})
	if err != nil {
		return err
	}
	d.mutex.Lock()
	d.result.Forged++
	if status == http.StatusUnauthorized {
		d.result.Refused++
	}
	d.mutex.Unlock()
	if status != http.StatusUnauthorized {
		d.broke("job %s: a forged callback (%s) was answered with %d", p.id, p.forgery, status)
	}
	return nil
}

// send has the provider report, again while the server cannot take it, and notes the verdict.
func (d *director) send(ctx context.Context, id, word string) error {
	for try := 1; ; try++ {
		reply, err := d.provider.Send(ctx, id, word)
		if err != nil {
			return err
		}
		if reply.Status == http.StatusOK {
			return d.hear(reply.Body)
		}
		if reply.Status != http.StatusServiceUnavailable || try == triesMax {
			return fmt.Errorf("a callback was answered with %d %s", reply.Status, reply.Body)
		}
		if err := pause(ctx, tryPause); err != nil {
			return err
		}
	}
}

func (d *director) hear(body []byte) error {
	var said struct{ Verdict ledger.Verdict }
	if err := json.Unmarshal(body, &said); err != nil {
		return fmt.Errorf("the answer to a callback: %w", err)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.result.Callbacks++
	if said.Verdict != "" {
		d.verdicts[said.Verdict]++
	}
	return nil
}

// sendAtOnce sends the same report several times at the same moment.
func (d *director) sendAtOnce(ctx context.Context, id string, outcome ledger.Outcome, times int) error {
	errs := make([]error, times)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = d.send(ctx, id, string(outcome)) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// waitMax bounds each wait for what the server does by itself.
const waitMax = 5 * time.Minute

// until waits until done, and says what it waited for if that does not come.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitMax, fmt.Errorf("%s did not come within %v", what, waitMax))
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := pause(ctx, tryPause); err != nil {
			return context.Cause(ctx)
		}
	}
}

// settled waits until the poller has found out how those jobs ended whose callback is lost or late.
func (d *director) settled(ctx context.Context) error {
	open := len(d.plans) - d.done
	return until(ctx, "the end of every job", func() (bool, error) {
		jobs, err := all[ledger.Job](ctx, d.app, "/v1/jobs")
		if err != nil {
			return false, err
		}
		jobs = slices.DeleteFunc(jobs, func(j ledger.Job) bool { return !j.Status.Open() })
		d.progress(open - len(jobs))
		open = len(jobs)
		return open == 0, nil
	})
}

// late has the provider report what the poller has found out long before.
func (d *director) late(ctx context.Context) error {
	return d.each(ctx, func(ctx context.Context, p *plan) error {
		return d.send(ctx, p.upstream, string(p.outcome))
	}, Late)
}

// delivered waits until the receiver has as many events as the ledger.
func (d *director) delivered(ctx context.Context) error {
	events, err := all[ledger.Event](ctx, d.app, "/v1/events")
	if err != nil {
		return err
	}
	d.result.Events = len(events)
	return until(ctx, "every event", func() (bool, error) { return d.receiver.count() >= len(events), nil })
}
