package racelab

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"jobledger/ledger"
)

// evidence is what is known after a race: what the observers were told, and what the ledger holds.
type evidence struct {
	shots   []shot
	jobs    []ledger.Job
	entries map[ledger.Kind]tally
	moves   []move
	balance ledger.Balance
	audit   ledger.AuditReport
}

// tally is how many entries of a kind there are, and the sum of their amounts.
type tally struct {
	count  int
	amount int64
}

// move is an entry about a job: what the owner had available after it.
type move struct {
	job       string
	available int64
}

// gather reads what the ledger holds, and sorts the shots as a result shows them.
func (p *plan) gather(ctx context.Context, l *ledger.Ledger, shots []shot) (e evidence, err error) {
	e = evidence{shots: shots, entries: make(map[ledger.Kind]tally)}
	slices.SortStableFunc(e.shots, func(a, b shot) int {
		if a.Job == b.Job && a.Won != b.Won {
			return map[bool]int{true: -1, false: 1}[a.Won]
		}
		return cmp.Compare(a.Job, b.Job)
	})
	err = pages(func(after string) (last string, err error) {
		list, err := l.Entries(ctx, ledger.EntryFilter{Owner: p.Owner, After: after, Limit: ledger.PageMax})
		for i := range list {
			t := e.entries[list[i].Kind]
			e.entries[list[i].Kind] = tally{t.count + 1, t.amount + list[i].Amount}
			e.note(&list[i])
			last = list[i].ID
		}
		return last, err
	})
	if err != nil {
		return e, err
	}
	err = pages(func(after string) (last string, err error) {
		list, err := l.Jobs(ctx, ledger.JobFilter{Owner: p.Owner, After: after, Limit: ledger.PageMax})
		if len(list) > 0 {
			last = list[len(list)-1].ID
		}
		e.jobs = append(e.jobs, list...)
		return last, err
	})
	if err != nil {
		return e, err
	}
	if e.balance, err = l.Balance(ctx, ledger.BalanceParams{Owner: p.Owner}); err != nil {
		return e, err
	}
	e.audit, err = l.Audit(ctx, ledger.AuditParams{})
	return e, err
}

// note keeps the entries by which jobs were settled.
func (e *evidence) note(entry *ledger.Entry) {
	switch entry.Kind {
	case ledger.KindRefund, ledger.KindRelease, ledger.KindConsume:
		e.moves = append(e.moves, move{*entry.Job, entry.AvailableAfter})
	}
}

// pages calls page with the last id of the page before, until a page has none.
func pages(page func(after string) (last string, err error)) error {
	for after := ""; ; {
		last, err := page(after)
		if err != nil || last == "" {
			return err
		}
		after = last
	}
}

// result sums up the evidence and names every invariant that it breaks.
func (p *plan) result(e evidence) Result {
	r := Result{
		Jobs:          p.Jobs,
		Notifications: len(e.shots),
		RefundEntries: e.entries[ledger.KindRefund].count,
		Balance:       e.balance,
		Observers:     make([]Observer, len(e.shots)),
		Audit:         Audit{OK: e.audit.OK},
		Owner:         p.Owner,
		Checks:        len(e.audit.Checks),
		Broken:        p.broken(e),
		shots:         e.shots,
		moves:         e.moves,
	}
	for i := range e.jobs {
		if e.jobs[i].Status == ledger.Status(ledger.Failed) {
			r.want += p.Cost
		}
	}
	for i, s := range e.shots {
		r.Observers[i] = s.Observer
		r.Busy += len(s.Busy)
		if s.Won {
			r.Wins++
			r.Returned += s.Returned
			r.Consumed += s.Consumed
		}
	}
	return r
}

// broken gives a sentence for each invariant that the evidence breaks.
func (p *plan) broken(e evidence) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if len(e.shots) != p.total() {
		say("%d notifications were answered, want %d", len(e.shots), p.total())
	}
	told := make(map[string][]shot, p.Jobs)
	for _, s := range e.shots {
		told[s.Job] = append(told[s.Job], s)
	}
	if len(e.jobs) != p.Jobs || len(told) != p.Jobs {
		say("%d jobs are stored and %d were told of, want %d", len(e.jobs), len(told), p.Jobs)
	}
	ends := make(map[ledger.Outcome]int64)
	for i := range e.jobs {
		ends[ledger.Outcome(e.jobs[i].Status)]++
		p.brokenJob(&e.jobs[i], told[e.jobs[i].ID], say)
	}
	p.brokenCredits(e, ends[ledger.Completed], ends[ledger.Failed], say)
	if !e.audit.OK {
		say("the audit is not clean")
	}
	for _, c := range e.audit.Checks {
		if !c.OK {
			say("the audit's check %s has %d violations", c.Name, len(c.Violations))
		}
	}
	return lines
}

// brokenJob compares a job as it is stored with what its observers were told.
func (p *plan) brokenJob(job *ledger.Job, told []shot, say func(string, ...any)) {
	wins := 0
	for _, s := range told {
		if string(s.Outcome) != string(job.Status) {
			say("job %s ended %s, and worker %d of process %d was told %s",
				job.ID, job.Status, s.Worker, s.Process, s.Outcome)
		}
		if !s.Won {
			continue
		}
		wins++
		returned, consumed := p.Cost, int64(0)
		if s.Reported == ledger.Completed {
			returned, consumed = consumed, returned
		}
		if s.Reported != s.Outcome || s.Returned != returned || s.Consumed != consumed {
			say("job %s was won by %s, and its winner was told %s, %d returned, %d consumed; want %d and %d",
				job.ID, s.Reported, s.Outcome, s.Returned, s.Consumed, returned, consumed)
		}
	}
	if wins != 1 {
		say("job %s was won %d times, want once", job.ID, wins)
	}
}

// brokenCredits compares the entries and the balance with what the jobs' ends imply.
func (p *plan) brokenCredits(e evidence, completed, failed int64, say func(string, ...any)) {
	want := map[ledger.Kind]int64{ledger.KindCharge: int64(p.Jobs), ledger.KindRefund: failed}
	if p.Mode == ledger.ModeHold {
		want = map[ledger.Kind]int64{
			ledger.KindHold: int64(p.Jobs), ledger.KindConsume: completed, ledger.KindRelease: failed,
		}
	}
	for _, kind := range []ledger.Kind{
		ledger.KindCharge, ledger.KindRefund, ledger.KindHold, ledger.KindConsume, ledger.KindRelease,
		ledger.KindExpire, ledger.KindRevoke,
	} {
		got := e.entries[kind]
		if n := want[kind]; int64(got.count) != n || got.amount != n*p.Cost {
			say("there are %d %s entries of %d credits, want %d of %d", got.count, kind, got.amount, n, n*p.Cost)
		}
	}
	got := e.balance
	if got.Available != failed*p.Cost || got.Used != completed*p.Cost || got.Held != 0 || got.Expired != 0 {
		say("the balance is %d available, %d held, %d used, %d expired; want %d, 0, %d, 0",
			got.Available, got.Held, got.Used, got.Expired, failed*p.Cost, completed*p.Cost)
	}
}
