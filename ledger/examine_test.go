package ledger_test

import (
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// finding checks the level of one finding as of a time, and a part of its message. To look changes nothing.
func (b *workbench) finding(
	at time.Duration, name string, level ledger.Level, text string, providers ...string,
) {
	b.Helper()
	b.at(at)
	clock := func() time.Time { return start.Add(at) }
	b.unchanged(func() {
		e, err := ledger.Examine(b.Context(), b.dsn, ledger.Options{Clock: clock}, providers...)
		b.ok(err)
		for _, f := range e.Findings {
			if f.Name == name && f.Level == level && strings.Contains(f.Message, text) {
				return
			}
		}
		b.Errorf("after %v %+v, want %s %s: %s", at, e, name, level, text)
	})
}

// What waits for somebody is found once it has waited too long, and no more once it is done.
func TestExamine(t *testing.T) {
	const day = 24 * time.Hour
	eachWorkbench(t, func(b *workbench) {
		b.give("lasting", 100)
		b.give("short", 30, until(time.Hour))
		p := ledger.JobParams{ID: "due", Owner: "demo", Cost: 7, Deadline: on(time.Hour)}
		_, err := b.CreateJob(b.Context(), p)
		b.ok(err)
		for _, id := range []string{"forgotten", "lost"} {
			b.ok(b.create(id, 7, ledger.ModeHold))
		}
		_, err = b.Submit(b.Context(), "lost", "acme")
		b.ok(err)
		b.finding(9*time.Minute, "reconciliation", ledger.Fine, "no job")
		b.finding(11*time.Minute, "reconciliation", ledger.Warning, "more than 10 minutes: 1")
		b.finding(day, "sweep", ledger.Fine, "nothing")
		b.finding(day+time.Hour, "sweep", ledger.Warning, "lots to expire: 1, jobs to time out: 1")
		b.finding(7*day-1, "open-jobs", ledger.Fine, "none")
		b.finding(7*day, "open-jobs", ledger.Warning, "have no deadline: 2, the oldest forgotten")

		_, err = b.Sweep(b.Context(), 10)
		b.ok(err)
		_, err = b.report("lost", ledger.Completed)
		b.ok(err)
		_, err = b.report("forgotten", ledger.Failed)
		b.ok(err)
		for _, name := range []string{"reconciliation", "sweep", "open-jobs"} {
			b.finding(8*day, name, ledger.Fine, "")
		}
	})
}

// Deliveries that were given up, or wait for long, are found, and what an endpoint that is off misses.
func TestExamineDeliveries(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.finding(0, "deliveries", ledger.Fine, "no endpoint")
		e := b.endpoint("https://a.example")
		b.finding(0, "deliveries", ledger.Fine, "none was given up")
		b.ok(b.create("j", 1, ledger.ModeHold))
		b.settle("won failed 1 0", "j", ledger.Failed)
		b.finding(time.Hour, "deliveries", ledger.Fine, "none was given up")
		b.finding(time.Hour+time.Second, "deliveries", ledger.Warning, "for more than 60 minutes: 1")
		b.answer(b.claim(1, "settled:j to https://a.example")[0], 500)
		b.finding(2*time.Hour, "deliveries", ledger.Warning, "given up: 1")
		_, err := b.ReplayEvent(b.Context(), "settled:j", "")
		b.ok(err)
		b.answer(b.claim(1, "settled:j to https://a.example")[0], 200)
		b.finding(2*time.Hour, "deliveries", ledger.Fine, "none was given up")
		_, err = b.DisableEndpoint(b.Context(), e.ID, "HTTP 410")
		b.ok(err)
		b.finding(2*time.Hour, "deliveries", ledger.Warning, "endpoints that are disabled: 1")
	})
}

// Accepted jobs at providers that nobody knows are found where it is said which are known, until they end.
func TestExamineProviders(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		for job, provider := range map[string]string{"a": "acme", "b": "acne", "c": "acne", "d": "z\"eta"} {
			b.taken(job, provider)
		}
		b.ok(b.create("e", 1, ledger.ModeHold))
		_, err := b.Submit(b.Context(), "e", "marked") // nobody knows whether it was accepted
		b.ok(err)
		b.finding(0, "providers", ledger.Warning, `name: 2 at "acne", 1 at "z\"eta"`, "acme", "other")
		b.finding(0, "providers", ledger.Fine, "every", "acme", "acne", "z\"eta")
		b.settle("won failed 1 0", "b", ledger.Failed)
		_, err = b.Cancel(b.Context(), "d", "")
		b.ok(err)
		b.finding(0, "providers", ledger.Warning, `name: 1 at "acne"`, "acme")
		e, err := ledger.Examine(b.Context(), b.dsn, ledger.Options{})
		b.ok(err)
		for _, f := range e.Findings {
			if f.Name == "providers" {
				b.Errorf("without a list of the known: %+v", f)
			}
		}
	})
}

// A clock that was set back is found, and what an audit finds is.
func TestExamineLooksAtTheJournal(t *testing.T) {
	eachBrokenWorkbench(t, func(b *workbench) {
		b.finding(0, "last-entry", ledger.Fine, "no entry")
		b.give("lasting", 100)
		b.finding(-2*time.Second, "last-entry", ledger.Fine, "2030-01-01T00:00:00.000000Z")
		b.finding(-3*time.Second, "last-entry", ledger.Warning,
			"the last entry was made at 2030-01-01T00:00:00.000000Z")
		b.finding(0, "audit", ledger.Fine, "clean, 28 checks")
		b.exec(`UPDATE balances SET available = 101`)
		b.finding(0, "audit", ledger.Problem, "violations: 2 of 28: balances-journal, balances-lots")
	})
}
