package racelab

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
)

// sound is a plan of two jobs, one to complete and one to fail, and the evidence of a race that went
// as it should.
func sound() (plan, evidence) {
	p := plan{Options: shape(2, 2, 1, 2, 7, ledger.ModeCharge, true), Owner: "race-x"}
	e := evidence{
		entries: map[ledger.Kind]tally{
			ledger.KindGrant: {1, 14}, ledger.KindCharge: {2, 14}, ledger.KindRefund: {1, 7},
		},
		balance: ledger.Balance{Available: 7, Used: 7},
		audit:   ledger.AuditReport{OK: true, Checks: []ledger.AuditCheck{{Name: "balances", OK: true}}},
	}
	for j, end := range []ledger.Outcome{ledger.Completed, ledger.Failed} {
		e.jobs = append(e.jobs, ledger.Job{ID: p.jobID(j), Status: ledger.Status(end)})
		for n, said := range []ledger.Outcome{end, ledger.Failed} {
			s := shot{Observer: Observer{Job: p.jobID(j), Won: n == 0, Reported: said, Outcome: end}, Returned: 7}
			if end == ledger.Completed {
				s.Returned, s.Consumed = 0, 7
			}
			e.shots = append(e.shots, s)
		}
	}
	return p, e
}

func TestEveryBrokenInvariantIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, want string
		damage     func(p *plan, e *evidence)
	}{
		{"a lost answer", "3 notifications were answered, want 4",
			func(_ *plan, e *evidence) { e.shots = e.shots[:3] }},
		{"a missing job", "1 jobs are stored and 2 were told of, want 2",
			func(_ *plan, e *evidence) { e.jobs = e.jobs[:1] }},
		{"two wins", "job race-x-1 was won 2 times", func(_ *plan, e *evidence) {
			e.shots[1].Won, e.shots[1].Reported = true, ledger.Completed
		}},
		{"no win", "job race-x-2 was won 0 times", func(_ *plan, e *evidence) { e.shots[2].Won = false }},
		{"a loser told otherwise", "job race-x-1 ended completed, and worker 0 of process 0 was told failed",
			func(_ *plan, e *evidence) { e.shots[1].Outcome = ledger.Failed }},
		{"stored otherwise", "job race-x-2 ended pending",
			func(_ *plan, e *evidence) { e.jobs[1].Status = ledger.Pending }},
		{"a winner of another outcome", "job race-x-1 was won by failed, and its winner was told completed",
			func(_ *plan, e *evidence) {
				e.shots[0].Reported, e.shots[0].Returned, e.shots[0].Consumed = ledger.Failed, 7, 0
			}},
		{"a winner told of too little", "6 returned", func(_ *plan, e *evidence) { e.shots[2].Returned = 6 }},
		{"a winner told of too much", "8 consumed", func(_ *plan, e *evidence) { e.shots[0].Consumed = 8 }},
		{"a second refund", "2 refund entries of 14 credits, want 1 of 7",
			func(_ *plan, e *evidence) { e.entries[ledger.KindRefund] = tally{2, 14} }},
		{"a refund in two entries", "2 refund entries of 7 credits, want 1 of 7",
			func(_ *plan, e *evidence) { e.entries[ledger.KindRefund] = tally{2, 7} }},
		{"a refund of too little", "1 refund entries of 6 credits, want 1 of 7",
			func(_ *plan, e *evidence) { e.entries[ledger.KindRefund] = tally{1, 6} }},
		{"entries of the other mode", "2 charge entries of 14 credits, want 0 of 0",
			func(p *plan, _ *evidence) { p.Mode = ledger.ModeHold }},
		{"available", "8 available", func(_ *plan, e *evidence) { e.balance.Available++ }},
		{"held", "1 held", func(_ *plan, e *evidence) { e.balance.Held++ }},
		{"used", "6 used", func(_ *plan, e *evidence) { e.balance.Used-- }},
		{"the audit", "check balances has 0 violations",
			func(_ *plan, e *evidence) { e.audit.OK, e.audit.Checks[0].OK = false, false }},
		{"nothing", "", func(*plan, *evidence) {}},
	} {
		p, e := sound()
		c.damage(&p, &e)
		r := p.result(e)
		err := r.verdict()
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if ledger.CodeOf(err) != ledger.Inconsistent || !strings.Contains(err.Error(), c.want) ||
			!slices.ContainsFunc(r.Broken, func(line string) bool { return strings.Contains(line, c.want) }) {
			t.Errorf("%s: %q, want %q", c.name, r.Broken, c.want)
		}
	}
}

func TestVerdictStaysShort(t *testing.T) {
	r := Result{Broken: slices.Repeat([]string{"broken"}, 5000)}
	text := r.verdict().Error()
	if len(text) > 300 || !strings.HasPrefix(text, "invariants that the race broke: 5000: ") {
		t.Errorf("%d bytes: %.50s", len(text), text)
	}
}

// Every notification of every job is sent by exactly one worker, and those of one job by different
// ones, as far as there are any.
func TestNotificationsAreDealtOut(t *testing.T) {
	for _, o := range []Options{
		shape(8, 64, 4, 20, 7, ledger.ModeCharge, true), shape(3, 5, 2, 7, 7, ledger.ModeHold, true),
		shape(16, 1, 2, 3, 7, ledger.ModeHold, true),
	} {
		sum := 0
		for process := range o.Processes {
			p := plan{Options: o, Process: process + 1}
			sum += p.share()
		}
		said := map[ledger.Outcome]int{}
		p := plan{Options: o}
		for i := range p.total() {
			said[p.report(i/o.Notifications, i%o.Notifications).Outcome]++
		}
		halves := slices.Sorted(maps.Values(said))
		if sum != p.total() || len(halves) != 2 || halves[1]-halves[0] > 1 {
			t.Errorf("%+v: %d of %d notifications dealt out, saying %v", o, sum, p.total(), said)
		}
	}
}
