package ledger_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"jobledger/ledger"
)

// n draws a number from low to high.
func (d *drive) n(what string, low, high int64) int64 {
	return rapid.Int64Range(low, high).Draw(d.T, what)
}

func (d *drive) chance(what string, oneIn int64) bool { return d.n(what, 1, oneIn) == 1 }

func (d *drive) owner() string {
	return d.prefix + rapid.SampledFrom([]string{"a", "b"}).Draw(d.T, "owner")
}

// name draws a new name or, one time in four, one that was used before.
func (d *drive) name(used []string) (name string, old bool) {
	slices.Sort(used)
	if len(used) > 0 && d.chance("old name", 4) {
		return rapid.SampledFrom(used).Draw(d.T, "name"), true
	}
	return fmt.Sprintf("%s%03d", d.prefix, len(used)), false
}

// moment draws a time near now, a span, or neither.
func (d *drive) moment(what string, low, high int64) moment {
	kind := rapid.SampledFrom([]string{"", "time", "span"}).Draw(d.T, what)
	switch kind {
	case "time":
		return moment{kind, d.m.now + d.n(what, low, high)*1e6}
	case "span":
		return moment{kind, d.n(what, max(low, 0), high) * 1e6}
	}
	return moment{}
}

func (w moment) when() ledger.When {
	switch w.kind {
	case "time":
		return on(time.Duration(w.value) * time.Microsecond)
	case "span":
		return ledger.After(time.Duration(w.value) * time.Microsecond)
	}
	return ledger.When{}
}

// agree compares the answers of an operation that can be replayed.
func (d *drive) agree(err error, replayed, wantReplayed bool, fields []string, code ledger.Code) bool {
	d.Helper()
	if err == nil && code == "" {
		if replayed != wantReplayed {
			d.Fatalf("replayed is %t, want %t", replayed, wantReplayed)
		}
		return true
	}
	e, _ := errors.AsType[*ledger.Error](err)
	if err == nil || e.Code != code || !slices.Equal(e.Fields, fields) {
		d.Fatalf("got %v, want %s %v", err, code, fields)
	}
	return false
}

// shows checks the balance in an answer.
func (d *drive) shows(a ledger.Balance) {
	d.Helper()
	if want := d.m.balance(d.m.owners[a.Owner]); buckets(a) != want {
		d.Fatalf("the answer says that %s has %s, want %s", a.Owner, buckets(a), want)
	}
}

func (d *drive) grant() {
	key, old := d.name(slices.Collect(maps.Keys(d.m.grants)))
	g := d.m.grants[key]
	change := d.n("change", 0, 6)
	if !old || change == 1 {
		g.owner = d.owner()
	}
	if !old || change == 2 {
		g.amount = d.n("amount", 1, 12)
	}
	if !old || change == 3 {
		g.priority = d.n("priority", 0, 2)
	}
	if !old || change == 4 {
		g.effective = d.moment("effective", -2, 5)
	}
	if !old || change == 5 {
		g.expires = d.moment("expires", -1, 15)
	}
	if old && change == 6 {
		g.reason = "another"
	}
	r, err := d.b.Grant(d.ctx(), ledger.GrantParams{Owner: g.owner, Amount: g.amount, Key: key,
		Priority: g.priority, Effective: g.effective.when(), Expires: g.expires.when(), Reason: g.reason})
	replayed, fields, code := d.m.grant(key, g)
	if d.agree(err, r.Replayed, replayed, fields, code) {
		d.shows(r.Balance)
	}
}

func (d *drive) create() {
	id, old := d.name(slices.Collect(maps.Keys(d.m.jobs)))
	var j modelJob
	if old {
		j = *d.m.jobs[id]
	}
	j.id = id
	change := d.n("change", 0, 4)
	if !old || change == 1 {
		j.owner = d.owner()
	}
	if !old || change == 2 {
		j.cost = d.n("cost", 1, 15)
	}
	if !old || change == 3 {
		j.mode = rapid.SampledFrom([]ledger.Mode{ledger.ModeHold, ledger.ModeCharge}).Draw(d.T, "mode")
	}
	if !old || change == 4 {
		j.deadline = d.moment("deadline", 0, 10)
	}
	r, err := d.b.CreateJob(d.ctx(), ledger.JobParams{ID: id, Owner: j.owner, Cost: j.cost, Mode: j.mode,
		Deadline: j.deadline.when()})
	replayed, fields, code := d.m.create(j)
	if d.agree(err, r.Replayed, replayed, fields, code) {
		d.shows(r.Balance)
	}
}

// someJob draws a job, or an id that is none.
func (d *drive) someJob() string {
	ids := append(slices.Sorted(maps.Keys(d.m.jobs)), d.prefix+"no such job")
	return rapid.SampledFrom(ids).Draw(d.T, "job")
}

func (d *drive) settle() {
	sources := []ledger.Source{ledger.Callback, ledger.Poll, ledger.Operator}
	r := ledger.Report{
		Job:     d.someJob(),
		Outcome: rapid.SampledFrom(ledger.Outcomes).Draw(d.T, "outcome"),
		Source:  rapid.SampledFrom(sources).Draw(d.T, "source"),
	}
	if d.chance("attempt", 8) {
		r.Attempt = 1
	}
	if d.chance("cost", 2) && (r.Outcome == ledger.Completed || d.chance("cost all the same", 8)) {
		cost := d.n("cost", -1, 16)
		r.Cost = &cost
	}
	s, err := d.b.Settle(d.ctx(), r)
	verdict, code := d.m.settle(r, false)
	d.settled(s, err, r, verdict, code)
}

func (d *drive) cancel() {
	r := ledger.Report{Job: d.someJob(), Outcome: ledger.Canceled, Source: ledger.Operator}
	s, err := d.b.Cancel(d.ctx(), r.Job, "")
	verdict, code := d.m.settle(r, true)
	d.settled(s, err, r, verdict, code)
}

// settled compares what an observer is told.
func (d *drive) settled(
	s ledger.Settlement, err error, r ledger.Report, verdict ledger.Verdict, code ledger.Code,
) {
	d.Helper()
	if !d.agree(err, false, false, nil, code) {
		return
	}
	j := d.m.jobs[r.Job]
	if s.Verdict != verdict || s.Won != (verdict == ledger.Won) || s.Reported != r.Outcome ||
		string(s.Job.Status) != j.status || s.Consumed != j.settled || s.Returned != j.cost-j.settled {
		d.Fatalf("told %+v, want %s and %+v", s, verdict, j)
	}
	d.shows(s.Balance)
}

func (d *drive) sweep() {
	r, err := d.b.Sweep(d.ctx(), ledger.PageMax)
	d.ok(err)
	expired, timedOut := d.m.sweep()
	if r.ExpiredLots != expired || r.TimedOut != timedOut || r.More || len(r.NeedsReconciliation) > 0 {
		d.Fatalf("sweep: %+v, want %d lots and %d jobs", r, expired, timedOut)
	}
}

func (d *drive) revoke() {
	key, old := d.name(slices.Collect(maps.Keys(d.m.revokes)))
	r := d.m.revokes[key]
	change := d.n("change", 0, 4)
	if !old || change == 1 {
		r.owner = d.owner()
	}
	if !old || change == 2 {
		r.amount = d.n("amount", 1, 15)
	}
	if !old || change == 3 {
		r.reason = rapid.SampledFrom([]string{"mistake", "fraud"}).Draw(d.T, "reason")
	}
	if (!old && d.chance("one lot", 2)) || change == 4 {
		r.lot = d.someLot()
	}
	var target *modelLot
	if i := slices.IndexFunc(d.seen[r.owner], func(l ledger.Lot) bool { return l.ID == r.lot }); i >= 0 {
		target = d.m.owners[r.owner].ordered()[i]
	}
	got, err := d.b.Revoke(d.ctx(), ledger.RevokeParams{Owner: r.owner, Amount: r.amount, Key: key,
		Reason: r.reason, Lot: r.lot})
	replayed, fields, code := d.m.revoke(key, r, target)
	if d.agree(err, got.Replayed, replayed, fields, code) {
		d.shows(got.Balance)
	}
}

// someLot draws a lot of any owner, or an id that is none.
func (d *drive) someLot() string {
	ids := []string{"no such lot"}
	for _, owner := range slices.Sorted(maps.Keys(d.seen)) {
		for _, l := range d.seen[owner] {
			ids = append(ids, l.ID)
		}
	}
	return ids[d.n("lot", 0, int64(len(ids)-1))]
}

// moveClock jumps forwards, or a little backwards; now and then the ledger is opened anew.
func (d *drive) moveClock() {
	jump := d.n("seconds", -1, 6)
	if jump < 0 {
		d.past = nil
	}
	d.m.now += jump * 1e6
	d.b.micro.Store(d.m.now)
	d.highest = max(d.highest, d.m.now)
	if d.chance("reopen", 12) {
		d.ok(d.b.Close())
		d.b.Ledger = d.b.open(ledger.Options{})
	}
}
