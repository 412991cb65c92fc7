package ledger_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
	"jobledger/internal/fakeprovider"
	"jobledger/ledger"
)

// B19: the claim is the only SQL that gives a job a status that it got from somewhere, and it is in
// one place; every other statement that touches a job leaves the status, or says processing.
func TestB19OneStatementEndsJobs(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	update := regexp.MustCompile("(?s)UPDATE\\s+jobs\\s+SET([^`]*?)WHERE")
	status := regexp.MustCompile(`\bstatus = (\S+)`)
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range update.FindAllStringSubmatch(string(text), -1) {
			value := "none"
			if m := status.FindStringSubmatch(set[1]); m != nil {
				value = strings.TrimSuffix(m[1], ",")
			}
			found = append(found, name+" "+value)
		}
	}
	if got := strings.Join(found, ", "); got != "answer.go none, attempt.go 'processing', claim.go ?" {
		t.Errorf("statements that change jobs, and the status that they set: %s", got)
	}
}

// B19: whichever door a failure comes in by, the credits come back with it.
func TestB19EveryDoorReturnsTheCredits(t *testing.T) {
	doors := map[string]func(b *workbench, job string) error{
		"answer": func(b *workbench, job string) error {
			_, err := b.Rejected(b.Context(), job, 1, "no", false)
			return err
		},
		"reconciliation": func(b *workbench, job string) error {
			r := ledger.Reconciliation{Job: job, Evidence: "e", Operator: "sue"}
			_, err := b.ReconcileReject(b.Context(), r)
			return err
		},
	}
	for _, source := range []ledger.Source{ledger.Callback, ledger.Poll, ledger.Operator} {
		for _, outcome := range ledger.Outcomes[1:] {
			doors[fmt.Sprint(source, " ", outcome)] = func(b *workbench, job string) error {
				_, err := b.Settle(b.Context(), ledger.Report{Job: job, Outcome: outcome, Source: source})
				return err
			}
		}
	}
	for _, mode := range []ledger.Mode{ledger.ModeHold, ledger.ModeCharge} {
		eachWorkbench(t, func(b *workbench) {
			for door, open := range doors {
				b.inState(door, mode, ledger.SubmissionSubmitting, "")
				b.ok(open(b, door))
				if got := b.standing(door, mode); !strings.HasSuffix(got, "-") {
					b.Errorf("%s, mode %s: %s", door, mode, got)
				}
			}
		})
	}
}

// B20: jobs that their provider refuses hold nothing a moment later, and their ids pay nothing more.
func TestB20RejectionsLeaveNoHolds(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		_, c := startProvider(b.T, fakeprovider.Reject)
		b.give("g", 70)
		for i := range 10 {
			job := fmt.Sprint("j", i)
			b.ok(b.create(job, 7, ledger.ModeHold))
			_, err := work(b.Ledger, c, fakeprovider.Order{Job: job}, nowhere)
			b.ok(err)
			b.balance("70 0 0 0")
		}
		b.unchanged(func() { b.ok(b.create("j0", 7, ledger.ModeHold)) })
	})
}

// B21: what comes back is what was charged: the cost is part of the job and cannot be changed.
func TestB21CostIsTheJobs(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 20)
		for job, cost := range map[string]int64{"old price": 7, "new price": 9} {
			p := ledger.JobParams{ID: job, Owner: "demo", Cost: cost, Deadline: on(0)}
			_, err := b.CreateJob(b.Context(), p)
			b.ok(err)
		}
		b.refuses(`UPDATE jobs SET cost = 9`)
		_, err := b.Sweep(b.Context(), 10)
		b.ok(err)
		b.balance("20 0 0 0")
		b.same(b.query(`SELECT amount FROM entries WHERE kind = 'release' ORDER BY 1`), []string{"7", "9"})
	})
}

// B22: a marker without an answer does not expire and is not taken over; once there is evidence, the
// next attempt begins, and reports of the first are stale.
func TestB22MarkerIsNotTakenOver(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		b.at(century)
		_, err := b.Submit(b.Context(), "j", "acme")
		b.fails(err, ledger.NotAllowed)
		if !strings.Contains(err.Error(), "attempt 1 is open") {
			b.Errorf("%v", err)
		}
		b.rejected("rejected", "j", 1, "asked: no such job", true)
		b.mark("j", "acme", 2)
		_, err = b.Settle(b.Context(), ledger.Report{Job: "j", Outcome: ledger.Completed, Source: ledger.Callback,
			Attempt: 1})
		b.fails(err, ledger.StaleAttempt)
		b.balance("0 7 0 0")
	})
}

// B26: a report whose effect fails, at whichever statement, leaves nothing behind that would make its
// repetition a duplicate.
func TestB26FailedEffectIsNoDuplicate(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		count, stop := 0, -1
		broken := b.open(ledger.Options{Intercept: func(when db.When, query string) error {
			if count++; count == stop {
				return errInjected
			}
			return nil
		}})
		failures := 0
		for next := 1; ; next++ {
			job := fmt.Sprint("j", next)
			b.pending(job)
			r := ledger.Report{Job: job, Outcome: ledger.Failed, Source: ledger.Callback}
			count, stop = 0, next
			_, err := broken.Settle(b.Context(), r)
			done := count < stop
			count, stop = 0, -1
			if err == nil && done {
				break // there is no such statement
			}
			if err != nil {
				failures++
			}
			s, err := broken.Settle(b.Context(), r)
			b.ok(err)
			if s.Returned != 7 || s.Job.Status != ledger.Status(ledger.Failed) {
				b.Fatalf("failure %d, then told %+v", next, s)
			}
			b.same(b.query(`SELECT kind FROM entries WHERE job_id = ? ORDER BY seq`, job),
				[]string{"hold", "release"})
		}
		if failures < 20 {
			b.Errorf("%d failures", failures)
		}
	})
}

// B28: a database that is locked for as long as anybody waits is BUSY, and not an answer; the same
// report again, later, settles.
func TestB28LockedDatabaseIsBusy(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		hasty := b.open(ledger.Options{BusyWait: time.Second}) // which has to do to connect, too
		r := ledger.Report{Job: "j", Outcome: ledger.Failed, Source: ledger.Callback}
		release, err := dbtest.Lock(b.dsn)
		b.ok(err)
		_, err = hasty.Settle(b.Context(), r)
		b.fails(err, ledger.Busy)
		b.ok(release())
		b.evidence("j")
		s, err := hasty.Settle(b.Context(), r)
		b.ok(err)
		b.told("won failed 7 0", s)
	})
}

// B29: what is held is neither gone nor available, and everybody can see that.
func TestB29HeldIsNotUsed(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 100)
		b.ok(b.create("j", 7, ledger.ModeHold))
		b.balance("93 7 0 0")
		b.submit("j", ledger.SubmissionUncertain)
		b.balance("93 7 0 0")
		b.settle("won failed 7 0", "j", ledger.Failed)
		b.balance("100 0 0 0")
	})
}

// B35: the job, the list, the story and the event say the same of a job that was swept.
func TestB35SurfacesAgree(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 7)
		_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: "j", Owner: "demo", Cost: 7, Deadline: on(0)})
		b.ok(err)
		_, err = b.Sweep(b.Context(), 10)
		b.ok(err)
		one, err := b.Job(b.Context(), "j")
		b.ok(err)
		list, err := b.Jobs(b.Context(), ledger.JobFilter{Status: "timed_out", Limit: 10})
		b.ok(err)
		story, err := b.Explain(b.Context(), "j")
		b.ok(err)
		var payload struct {
			Outcome, Source    string
			Returned, Consumed int64
		}
		b.ok(json.Unmarshal([]byte(story.Events[0].Payload), &payload))
		var surfaces []string
		for _, j := range []ledger.Job{one, list[0], story.Job} {
			surfaces = append(surfaces,
				fmt.Sprint(j.Status, " ", *j.SettledSource, " ", 7-*j.SettledCost, " ", *j.SettledCost))
		}
		surfaces = append(surfaces, fmt.Sprint(payload.Outcome, " ", payload.Source, " ", payload.Returned, " ",
			payload.Consumed))
		const same = "timed_out sweep 7 0"
		b.same(surfaces, []string{same, same, same, same})
		if len(story.Events) != 1 || len(story.Open) != 0 || len(list) != 1 {
			b.Errorf("%+v", story)
		}
	})
}

// B38: what comes after the commit cannot make a failure of it: with the database locked right then,
// the answer is success, and the same request again is a replay.
func TestB38LockedAfterTheCommit(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 7)
		var release func() error
		l := b.open(ledger.Options{Intercept: func(when db.When, query string) (err error) {
			if release == nil && when == db.After && query == "COMMIT" {
				release, err = dbtest.Lock(b.dsn)
			}
			return err
		}})
		p := ledger.JobParams{ID: "j", Owner: "demo", Cost: 7}
		r, err := l.CreateJob(b.Context(), p)
		b.ok(err)
		if r.Replayed || release == nil {
			b.Fatalf("%+v, locked %t", r, release != nil)
		}
		b.ok(release())
		r, err = l.CreateJob(b.Context(), p)
		b.ok(err)
		if !r.Replayed {
			b.Errorf("created twice: %+v", r)
		}
		b.balance("0 7 0 0")
	})
}

// B50: the deadline belongs to the time after it. Whoever comes first decides, to the microsecond.
func TestB50AroundTheDeadline(t *testing.T) {
	for at := -1; at <= 1; at++ {
		for _, sweepFirst := range []bool{false, true} {
			eachWorkbench(t, func(b *workbench) {
				b.give("g", 7)
				p := ledger.JobParams{ID: "j", Owner: "demo", Cost: 7, Deadline: on(time.Hour)}
				_, err := b.CreateJob(b.Context(), p)
				b.ok(err)
				b.at(time.Hour + time.Duration(at)*tick)
				want := "won completed 0 7"
				if sweepFirst {
					_, err := b.Sweep(b.Context(), 1)
					b.ok(err)
					if at >= 0 {
						want = "conflict timed_out 7 0"
					}
				}
				b.settle(want, "j", ledger.Completed)
				_, err = b.Sweep(b.Context(), 1)
				b.ok(err)
				b.same(b.query(`SELECT COUNT(*) FROM reports WHERE verdict = 'won'`), []string{"1"})
			})
		}
	}
}

// B86: of two creations under one id, at once and with different costs, the loser is told what
// differs; B85: and nothing of it is taken.
func TestB86CreationsRace(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 2000)
		handles := [2]*ledger.Ledger{b.open(ledger.Options{}), b.open(ledger.Options{})}
		for round := range 50 {
			var errs [2]error
			var wait sync.WaitGroup
			for side := range handles {
				wait.Go(func() {
					p := ledger.JobParams{ID: fmt.Sprint("j", round), Owner: "demo", Cost: 7 + int64(side)}
					_, errs[side] = handles[side].CreateJob(b.Context(), p)
				})
			}
			wait.Wait()
			loser := errs[0]
			if loser == nil {
				loser = errs[1]
			}
			if errs[0] != nil && errs[1] != nil {
				b.Fatal(errs)
			}
			b.fails(loser, ledger.IdempotencyMismatch, "cost")
		}
		b.same(b.query(`SELECT SUM(cost) - (SELECT held FROM balances) FROM jobs`), []string{"0"})
	})
}

// B74: what more owners have together than a 64-bit number holds is audited all the same, and each balance is
// exact.
func TestB74LargestBalances(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		const owners = 1100
		inParallel(8, owners, func(i int) {
			owner := fmt.Sprint("o", i)
			_, err := b.Grant(b.Context(), ledger.GrantParams{Owner: owner, Amount: ledger.AmountMax, Key: owner})
			if err != nil {
				b.Error(err)
			}
		})
		b.audit()
		all, err := b.Balances(b.Context(), "", ledger.PageMax)
		b.ok(err)
		for _, balance := range all {
			if balance.Available != ledger.AmountMax {
				b.Fatalf("a balance is %+v", balance)
			}
		}
	})
}
