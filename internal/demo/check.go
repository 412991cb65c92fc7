package demo

import (
	"context"
	"maps"
	"slices"

	"jobledger/ledger"
)

// check compares what was planned and what everybody was told with what the ledger says.
func (d *director) check(ctx context.Context) error {
	counted := map[ledger.Verdict]int64{} // of callbacks, in the ledger
	err := d.each(ctx, func(ctx context.Context, p *plan) error {
		var s ledger.Story
		if err := d.app.get(ctx, "/v1/jobs/"+p.id+"/explain", &s); err != nil {
			return err
		}
		d.checkJob(p, &s, counted)
		return nil
	}, stories...)
	if err != nil {
		return err
	}
	if !maps.Equal(counted, d.verdicts) {
		d.broke("callbacks were answered with the verdicts %v, and the ledger has %v", d.verdicts, counted)
	}
	for _, step := range []func(context.Context) error{d.checkEvents, d.checkBalances, d.checkAudit} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkJob checks one job's story: it ended once, as it did at the provider.
func (d *director) checkJob(p *plan, s *ledger.Story, counted map[ledger.Verdict]int64) {
	wins := int64(0)
	d.mutex.Lock()
	d.result.Stories[p.story]++
	for _, r := range s.Reports {
		d.result.Verdicts[r.Verdict] += int(r.Count)
		if r.Source == ledger.Callback {
			counted[r.Verdict] += r.Count
		}
		if r.Verdict == ledger.Won {
			wins += r.Count
			if r.Source == ledger.Poll {
				d.result.Polled++
			}
		}
	}
	d.mutex.Unlock()
	settlements := 0
	for i := range s.Events {
		if s.Events[i].Type != "job.conflict" {
			settlements++
		}
	}
	if wins != 1 || settlements != 1 || s.Job.Status != ledger.Status(p.outcome) {
		d.broke("job %s (%s) is %s, with %d wins and %d events of its end; at the provider it is %s",
			p.id, p.story, s.Job.Status, wins, settlements, p.outcome)
	}
	if contradictions := len(s.Events) - settlements; contradictions != p.contradictions() {
		d.broke("job %s (%s) has %d events of a contradiction, not %d",
			p.id, p.story, contradictions, p.contradictions())
	}
}

// contradictions is how many reports contradict the end of a job.
func (p *plan) contradictions() int {
	if p.story == Contradicted {
		return 1
	}
	return 0
}

// checkEvents checks that the receiver has every event of the ledger under one id, and none beside them.
func (d *director) checkEvents(ctx context.Context) error {
	events, err := all[ledger.Event](ctx, d.app, "/v1/events")
	if err != nil {
		return err
	}
	want := map[told]int{}
	for i := range events {
		var e told
		e.ID, e.Type, e.Data.Job = events[i].ID, events[i].Type, events[i].Job
		want[e]++
	}
	r := d.receiver
	r.mutex.Lock()
	defer r.mutex.Unlock()
	got := map[told]int{}
	for _, e := range r.taken {
		got[e]++
	}
	d.result.Received, d.result.Repeated = len(r.taken), r.repeated
	for _, line := range r.broken {
		d.broke("%s", line)
	}
	if len(events) != d.result.Events || len(r.taken) != len(events) || !maps.Equal(got, want) {
		d.broke("the ledger has %d events, and the receiver %d", len(events), len(r.taken))
	}
	return nil
}

// checkBalances checks that each owner paid for what was completed, and for nothing else.
func (d *director) checkBalances(ctx context.Context) error {
	balances, err := all[ledger.Balance](ctx, d.app, "/v1/owners")
	if err != nil {
		return err
	}
	used := map[string]int64{}
	for i := range d.plans {
		if p := &d.plans[i]; p.outcome == ledger.Completed {
			used[p.owner] += p.cost
		}
	}
	for _, b := range balances {
		want := ledger.Balance{Owner: b.Owner, Available: d.granted() - used[b.Owner], Used: used[b.Owner]}
		if b.Available != want.Available || b.Used != want.Used || b.Held != 0 || b.Expired != 0 {
			d.broke("%s has %+v, and should have %+v", b.Owner, b, want)
		}
	}
	if len(balances) != len(owners) {
		d.broke("there are %d owners", len(balances))
	}
	d.result.Balances = append(d.result.Balances, balances...)
	return nil
}

func (d *director) checkAudit(ctx context.Context) error {
	if err := d.app.get(ctx, "/v1/audit?quiescent=true", &d.result.Audit); err != nil {
		return err
	}
	for _, c := range d.result.Audit.Checks {
		if !c.OK {
			d.broke("audit: %s: %v", c.Name, c.Violations)
		}
	}
	slices.Sort(d.result.Broken)
	return nil
}
