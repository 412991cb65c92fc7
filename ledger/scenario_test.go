package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"jobledger/db"
	"jobledger/ledger"
)

// charged gives demo 7 credits, all of them used by job-a.
func (b *workbench) charged() {
	b.Helper()
	b.give("g", 7)
	b.ok(b.create("job-a", 7, ledger.ModeCharge))
	b.balance("0 0 7 0")
}

// refunded checks that job-a failed with one exact refund.
func (b *workbench) refunded() {
	b.Helper()
	b.balance("7 0 0 0")
	b.lots("0 0 0 0", "7 0 0 0")
	entries := b.journal("grant 7: 7 0 0 0", "charge 7: 0 0 7 0", "refund 7: 7 0 0 0")
	if last := entries[2]; last.EventKey != "job-refund:job-a" || *last.Job != "job-a" {
		b.Fatalf("refund is %s of %s", last.EventKey, *last.Job)
	}
}

// race reports outcomes of job-a at the same moment, each through one of 8 handles, and gives what
// the observers were told.
func (b *workbench) race(outcomes []ledger.Outcome) []ledger.Settlement {
	b.Helper()
	told := make([]ledger.Settlement, len(outcomes))
	errs := make([]error, len(outcomes))
	fire := make(chan struct{})
	var wait sync.WaitGroup
	for w := range 8 {
		handle := b.open(ledger.Options{})
		wait.Go(func() {
			<-fire
			for i := w; i < len(outcomes); i += 8 {
				r := ledger.Report{Job: "job-a", Outcome: outcomes[i], Source: ledger.Callback}
				told[i], errs[i] = handle.Settle(b.Context(), r)
			}
		})
	}
	close(fire)
	wait.Wait()
	b.ok(errors.Join(errs...))
	return told
}

// oneWinner checks that one observer won and that all were told of its outcome.
func (b *workbench) oneWinner(told []ledger.Settlement) (won ledger.Settlement) {
	b.Helper()
	wins := 0
	for _, s := range told {
		if s.Won {
			wins++
			won = s
		}
	}
	if wins != 1 {
		b.Fatalf("%d observers won", wins)
	}
	for _, s := range told {
		if s.Job.Status != won.Job.Status || s.Returned != won.Returned || s.Consumed != won.Consumed {
			b.Fatalf("told %+v, but %+v won", s, won)
		}
	}
	return won
}

func TestScenarioB01FailureNotificationsRace(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.charged()
		won := b.oneWinner(b.race(slices.Repeat([]ledger.Outcome{ledger.Failed}, 16)))
		b.told("won failed 7 0", won)
		b.refunded()
		b.evidence("job-a", "callback failed duplicate 15", "callback failed won 1", "job.failed")
	})
}

func TestScenarioCompletionRacesFailure(t *testing.T) {
	for round := range 4 {
		eachWorkbench(t, func(b *workbench) {
			b.charged()
			outcomes := slices.Repeat([]ledger.Outcome{ledger.Completed, ledger.Failed}, 8)
			if round%2 == 1 {
				slices.Reverse(outcomes)
			}
			won := b.oneWinner(b.race(outcomes))
			if won.Job.Status == ledger.Status(ledger.Failed) {
				b.refunded()
				b.evidence("job-a", "callback completed conflict 8", "callback failed duplicate 7",
					"callback failed won 1", "job.failed", "job.conflict")
				return
			}
			b.balance("0 0 7 0")
			b.lots("0 0 7 0")
			b.journal("grant 7: 7 0 0 0", "charge 7: 0 0 7 0")
			b.evidence("job-a", "callback completed duplicate 7", "callback completed won 1",
				"callback failed conflict 8", "job.completed", "job.conflict")
		})
	}
}

func TestScenarioFailureOfACompletedJob(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.charged()
		b.settle("won completed 0 7", "job-a", ledger.Completed)
		b.settle("conflict completed 0 7", "job-a", ledger.Failed)
		b.balance("0 0 7 0")
		b.lots("0 0 7 0")
		b.journal("grant 7: 7 0 0 0", "charge 7: 0 0 7 0")
	})
}

// The balance, which is written last, cannot be: by a fault of the store, or by a constraint of it.
func TestScenarioD_BalanceWriteFails(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.charged()
		broken := b.open(ledger.Options{Intercept: func(when db.When, query string) error {
			if when == db.Before && strings.Contains(query, "UPDATE balances") {
				return errors.New("injected")
			}
			return nil
		}})
		fail := ledger.Report{Job: "job-a", Outcome: ledger.Failed, Source: ledger.Poll}
		b.unchanged(func() {
			_, err := broken.Settle(b.Context(), fail)
			b.fails(err, ledger.Internal)
		})
		b.exec(`CREATE TRIGGER fault BEFORE UPDATE ON balances BEGIN SELECT RAISE(ABORT, 'injected'); END`)
		b.unchanged(func() {
			_, err := b.Settle(b.Context(), fail)
			b.fails(err, ledger.Inconsistent)
		})
		b.exec(`DROP TRIGGER fault`)
		b.settle("won failed 7 0", "job-a", ledger.Failed)
		b.refunded()
	})
}

func TestScenarioUnknownJob(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.charged()
		b.unchanged(func() {
			_, err := b.report("job-b", ledger.Failed)
			b.fails(err, ledger.NotFound)
			_, err = b.Cancel(b.Context(), "job-b", "")
			b.fails(err, ledger.NotFound)
		})
	})
}

func TestScenarioMissingBalanceRow(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.ModeCharge, ledger.ModeHold} {
		eachWorkbench(t, func(b *workbench) {
			b.give("g", 7)
			b.ok(b.create("job-a", 7, mode))
			b.exec(`CREATE TABLE kept AS SELECT * FROM balances`, `DROP TRIGGER balances_no_delete`,
				`DELETE FROM balances`)
			b.unchanged(func() {
				_, err := b.report("job-a", ledger.Failed)
				b.fails(err, ledger.Inconsistent)
			})
			b.exec(`INSERT INTO balances SELECT * FROM kept`)
			b.settle("won failed 7 0", "job-a", ledger.Failed)
			b.balance("7 0 0 0")
		})
	}
}

// B06: the journal has a settlement of a job that claims to be open.
func TestScenarioB06_SettlementKeyOfAnOpenJob(t *testing.T) {
	for _, c := range []struct {
		mode    ledger.Mode
		kind    ledger.Kind
		refused []ledger.Outcome
	}{
		{ledger.ModeCharge, ledger.KindRefund, ledger.Outcomes},
		{ledger.ModeHold, ledger.KindRefund, ledger.Outcomes},
		{ledger.ModeHold, ledger.KindRelease, ledger.Outcomes[1:]},
		{ledger.ModeHold, ledger.KindConsume, ledger.Outcomes[:1]},
	} {
		eachBrokenWorkbench(t, func(b *workbench) {
			b.give("g", 7)
			b.ok(b.create("job-a", 7, c.mode))
			b.exec(fmt.Sprintf(`
				INSERT INTO entries SELECT 'x', 'job-%s:job-a', owner, 3, '%s', 7, job_id, 7, 0, 0, 0,
				       reason, metadata, occurred_at, recorded_at, hash FROM entries WHERE seq = 2`, c.kind, c.kind))
			b.unchanged(func() {
				for _, outcome := range c.refused {
					_, err := b.report("job-a", outcome)
					b.fails(err, ledger.Inconsistent)
				}
			})
		})
	}
}

func TestScenarioA_RepeatedFailure(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.charged()
		b.settle("won failed 7 0", "job-a", ledger.Failed)
		for range 20 {
			b.settle("duplicate failed 7 0", "job-a", ledger.Failed)
		}
		b.refunded()
		b.evidence("job-a", "callback failed duplicate 20", "callback failed won 1", "job.failed")
	})
}

func TestScenarioB_FailedThenCanceled(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.charged()
		b.settle("won failed 7 0", "job-a", ledger.Failed)
		b.settle("conflict failed 7 0", "job-a", ledger.Canceled)
		s, err := b.Cancel(b.Context(), "job-a", "no longer wanted")
		b.ok(err)
		b.told("conflict failed 7 0", s)
		b.refunded()
	})
}

func TestScenarioC_TwoJobs(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.charged()
		b.give("h", 5)
		b.ok(b.create("job-b", 3, ledger.ModeHold))
		b.ok(b.create("job-c", 2, ledger.ModeCharge))
		b.balance("0 3 9 0")
		b.settle("won failed 7 0", "job-a", ledger.Failed)
		b.balance("7 3 2 0")
		b.settle("won timed_out 3 0", "job-b", ledger.TimedOut)
		b.balance("10 0 2 0")
		b.lots("0 0 0 0", "3 0 2 0", "7 0 0 0")
		b.journal("grant 7: 7 0 0 0", "charge 7: 0 0 7 0", "grant 5: 5 0 7 0", "hold 3: 2 3 7 0",
			"charge 2: 0 3 9 0", "refund 7: 7 3 2 0", "release 3: 10 0 2 0")
	})
}

func TestScenarioF_RefundedCreditsAreSpent(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.charged()
		b.settle("won failed 7 0", "job-a", ledger.Failed)
		b.ok(b.create("job-b", 4, ledger.ModeCharge))
		b.lots("0 0 0 0", "3 0 4 0")
		b.ok(b.create("job-c", 2, ledger.ModeHold))
		b.lots("0 0 0 0", "1 2 4 0")
		b.insufficient(b.create("job-d", 2, ledger.ModeHold), 1, 2)
		b.settle("won completed 0 2", "job-c", ledger.Completed)
		b.lots("0 0 0 0", "1 0 6 0")
		b.journal("grant 7: 7 0 0 0", "charge 7: 0 0 7 0", "refund 7: 7 0 0 0", "charge 4: 3 0 4 0",
			"hold 2: 1 2 4 0", "consume 2: 1 0 6 0")
	})
}

// Two holds of 205, then two consumes of 205, from one lot: one after the other, then together.
func TestScenarioTwoTimesTwoHundredAndFive(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 500)
		b.ok(b.create("gen-a", 205, ledger.ModeHold))
		b.balance("295 205 0 0")
		b.ok(b.create("gen-b", 205, ledger.ModeHold))
		b.lots("90 410 0 0")
		b.insufficient(b.create("gen-c", 205, ledger.ModeHold), 90, 205)
		b.settle("won completed 0 205", "gen-a", ledger.Completed)
		b.lots("90 205 205 0")
		b.settle("won completed 0 205", "gen-b", ledger.Completed)
		b.lots("90 0 410 0")
		b.journal("grant 500: 500 0 0 0", "hold 205: 295 205 0 0", "hold 205: 90 410 0 0",
			"consume 205: 90 205 205 0", "consume 205: 90 0 410 0")
	})
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 410)
		both := func(do func(l *ledger.Ledger, id string) error) {
			var wait sync.WaitGroup
			for _, id := range []string{"gen-a", "gen-b"} {
				handle := b.open(ledger.Options{})
				wait.Go(func() {
					if err := do(handle, id); err != nil {
						b.Error(err)
					}
				})
			}
			wait.Wait()
		}
		both(func(l *ledger.Ledger, id string) error {
			_, err := l.CreateJob(b.Context(), ledger.JobParams{ID: id, Owner: "demo", Cost: 205})
			return err
		})
		b.lots("0 410 0 0")
		both(func(l *ledger.Ledger, id string) error {
			_, err := l.Settle(b.Context(), ledger.Report{Job: id, Outcome: ledger.Completed, Source: ledger.Poll})
			return err
		})
		b.lots("0 0 410 0")
		b.journal("grant 410: 410 0 0 0", "hold 205: 205 205 0 0", "hold 205: 0 410 0 0",
			"consume 205: 0 205 205 0", "consume 205: 0 0 410 0")
	})
}
