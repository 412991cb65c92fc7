package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"jobledger/ledger"
)

// B44: every order of reports ends in the first of them, with its credits.
func TestB44FirstReportWins(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.ModeHold, ledger.ModeCharge} {
		eachWorkbench(t, func(b *workbench) {
			b.give("g", 3*24)
			permutations(len(ledger.Outcomes), func(order []int) {
				id := fmt.Sprint("j", order)
				b.ok(b.create(id, 3, mode))
				first := ledger.Outcomes[order[0]]
				returned, consumed := 3, 0
				if first == ledger.Completed {
					returned, consumed = 0, 3
				}
				for step, i := range append(slices.Clone(order), order[0]) {
					verdict := ledger.Conflict
					switch {
					case step == 0:
						verdict = ledger.Won
					case i == order[0]:
						verdict = ledger.Duplicate
					}
					b.settle(fmt.Sprint(verdict, " ", first, " ", returned, " ", consumed), id, ledger.Outcomes[i])
				}
			})
			b.balance("54 0 18 0")
		})
	}
}

// B02: a thousand repetitions are told of the one settlement.
func TestB02SettledOnce(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 7)
		b.ok(b.create("j", 7, ledger.ModeHold))
		b.settle("won failed 7 0", "j", ledger.Failed)
		inParallel(8, 999, func(int) {
			s, err := b.report("j", ledger.Failed)
			if err != nil || s.Won || s.Returned != 7 || s.Job.SettledAt == nil {
				b.Errorf("told %+v, %v", s, err)
			}
		})
		b.evidence("j", "callback failed duplicate 999", "callback failed won 1", "job.failed")
		b.journal("grant 7: 7 0 0 0", "hold 7: 0 7 0 0", "release 7: 7 0 0 0")
	})
}

// B41: evidence against a settled job changes nothing, and is told of once.
func TestB41ConflictIsOneEvent(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 7)
		b.ok(b.create("j", 7, ledger.ModeHold))
		b.settle("won completed 2 5", "j", ledger.Completed, 5)
		for range 10 {
			b.at(time.Duration(b.micro.Load()+1e6) * tick)
			b.settle("conflict completed 2 5", "j", ledger.Failed)
		}
		b.evidence("j", "callback completed won 1", "callback failed conflict 10",
			"job.completed", "job.conflict")
		b.same(b.query(`SELECT last_at - first_at FROM reports WHERE verdict = 'conflict'`), []string{"9000000"})
		payload := b.query(`SELECT payload FROM events WHERE type = 'job.conflict'`)
		b.same(payload, []string{`{"job":"j","owner":"demo","outcome":"completed","reported":"failed",` +
			`"source":"callback","attempt":0,"reason":""}`})
	})
}

// submit brings the next attempt of a job to a submission. An accepted one has the upstream id
// JOB-ATTEMPT.
func (b *workbench) submit(job string, to ledger.Submission) {
	b.Helper()
	if to == ledger.SubmissionNone {
		return
	}
	r, err := b.Submit(b.Context(), job, "provider")
	b.ok(err)
	switch to {
	case ledger.SubmissionAccepted:
		_, err = b.Accepted(b.Context(), job, r.Attempt, fmt.Sprint(job, "-", r.Attempt))
	case ledger.SubmissionRejected:
		_, err = b.Rejected(b.Context(), job, r.Attempt, "said no", true)
	case ledger.SubmissionUncertain:
		_, err = b.Uncertain(b.Context(), job, r.Attempt, "no answer")
	}
	b.ok(err)
}

// A report about another attempt, or another upstream id, is kept and moves nothing, before the end
// and after it.
func TestStaleReports(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 7)
		b.ok(b.create("j", 7, ledger.ModeHold))
		b.submit("j", ledger.SubmissionRejected)
		b.submit("j", ledger.SubmissionAccepted)
		report := func(attempt int64, upstream string) (ledger.Settlement, error) {
			return b.Settle(b.Context(), ledger.Report{Job: "j", Outcome: ledger.Failed, Source: ledger.Poll,
				Attempt: attempt, UpstreamID: upstream})
		}
		stale := func() {
			for _, r := range []struct {
				attempt  int64
				upstream string
			}{{0, ""}, {0, "j-2"}, {1, ""}, {1, "j-1"}, {3, ""}, {2, "j-1"}, {2, "J-2"}} {
				_, err := report(r.attempt, r.upstream)
				b.fails(err, ledger.StaleAttempt)
			}
		}
		stale()
		b.balance("0 7 0 0")
		s, err := report(2, "j-2")
		b.ok(err)
		b.told("won failed 7 0", s)
		if *s.Job.SettledAttempt != 2 {
			b.Fatalf("settled at attempt %d", *s.Job.SettledAttempt)
		}
		stale()
		s, err = report(2, "")
		b.ok(err)
		b.told("duplicate failed 7 0", s)
		rows := b.query(`
			SELECT verdict || ' ' || attempt || ' ' || upstream_id || ' ' || count FROM reports ORDER BY 1`)
		b.same(rows, []string{"duplicate 2  1", "stale 0  2", "stale 0 j-2 2", "stale 1  2",
			"stale 1 j-1 2", "stale 2 J-2 2", "stale 2 j-1 2", "stale 3  2", "won 2 j-2 1"})
		b.same(b.query(`SELECT type FROM events`), []string{"job.failed"})
	})
}

// A report that names no attempt is taken while there has been at most one.
func TestReportWithoutAttempt(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 7)
		b.ok(b.create("j", 7, ledger.ModeHold))
		b.submit("j", ledger.SubmissionUncertain)
		b.settle("won completed 0 7", "j", ledger.Completed)
	})
}

// B12: a second cancellation is told of the first. A job that a provider may be at work on is not
// canceled, but an observer's report still ends it.
func TestB12Cancel(t *testing.T) {
	for _, c := range []struct {
		submission ledger.Submission
		damage     string // what an import may leave behind
		allowed    bool
	}{
		{ledger.SubmissionNone, ``, true},
		{ledger.SubmissionRejected, ``, true},
		{ledger.SubmissionAccepted, ``, true},
		{ledger.SubmissionAccepted, `UPDATE attempts SET upstream_id = NULL`, false},
		{ledger.SubmissionAccepted, `UPDATE attempts SET provider = ''`, false},
		{ledger.SubmissionSubmitting, ``, false},
		{ledger.SubmissionUncertain, ``, false},
		{ledger.SubmissionUncertain, `UPDATE attempts SET submission = 'unknown';
			UPDATE jobs SET submission = 'unknown'`, false},
	} {
		eachWorkbench(t, func(b *workbench) {
			b.give("g", 7)
			b.ok(b.create("j", 7, ledger.ModeHold))
			b.submit("j", c.submission)
			if c.damage != "" {
				b.imported(c.damage)
			}
			for _, verdict := range []string{"won", "duplicate"} {
				s, err := b.Cancel(b.Context(), "j", "no longer wanted")
				if c.allowed {
					b.ok(err)
					b.told(verdict+" canceled 7 0", s)
				} else {
					b.fails(err, ledger.ReconciliationRequired)
				}
			}
			if c.allowed {
				b.balance("7 0 0 0")
				return
			}
			b.balance("0 7 0 0")
			b.settle("won failed 7 0", "j", ledger.Failed)
			b.evidence("j", "callback failed won 1", "operator canceled refused 2", "job.failed")
		})
	}
}

// B24, B25: a charge is not the last word, the outcome is.
func TestB25ChargedJobFails(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 7)
		b.ok(b.create("j", 7, ledger.ModeCharge))
		b.submit("j", ledger.SubmissionAccepted)
		b.settle("won failed 7 0", "j", ledger.Failed)
		b.ok(b.create("k", 7, ledger.ModeCharge))
		b.settle("won completed 0 7", "k", ledger.Completed)
		b.settle("conflict completed 0 7", "k", ledger.Failed)
		b.balance("0 0 7 0")
	})
}

// B15: after the deadline, until the sweep decides, an observer's report is as good as ever; B16: and
// the credits stay held.
func TestB15DeadlineAndLateReport(t *testing.T) {
	for _, swept := range []bool{false, true} {
		eachWorkbench(t, func(b *workbench) {
			b.give("g", 7)
			p := ledger.JobParams{ID: "j", Owner: "demo", Cost: 7, Deadline: ledger.After(time.Hour)}
			_, err := b.CreateJob(b.Context(), p)
			b.ok(err)
			b.at(time.Hour - tick)
			r, err := b.Sweep(b.Context(), 1)
			b.ok(err)
			if r.TimedOut != 0 || r.More {
				b.Fatalf("swept before the deadline: %+v", r)
			}
			b.at(time.Hour)
			b.balance("0 7 0 0")
			if !swept {
				b.settle("won completed 0 7", "j", ledger.Completed)
				return
			}
			r, err = b.Sweep(b.Context(), 2)
			b.ok(err)
			if r.TimedOut != 1 || r.More {
				b.Fatalf("sweep: %+v", r)
			}
			b.settle("conflict timed_out 7 0", "j", ledger.Completed)
			b.evidence("j", "callback completed conflict 1", "sweep timed_out won 1", "job.timed_out", "job.conflict")
		})
	}
}

// A sweep does at most as much as it is asked to, says whether there is more, counts every lot that
// it expires, and leaves submitted jobs to people.
func TestSweep(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for i := range 5 {
			owner := ofOwner([]string{"demo", "other"}[i/3])
			b.give(fmt.Sprint("g", i), 10, owner, until(time.Duration(i+1)*time.Minute))
			p := ledger.JobParams{ID: fmt.Sprint("j", i), Owner: []string{"demo", "other"}[i/3], Cost: 1,
				Deadline: on(time.Hour)}
			_, err := b.CreateJob(b.Context(), p)
			b.ok(err)
		}
		b.submit("j1", ledger.SubmissionUncertain)
		b.submit("j3", ledger.SubmissionUncertain)
		b.at(time.Hour)
		var lots, jobs int64
		for sweeps := 1; ; sweeps++ {
			r, err := b.Sweep(b.Context(), 2)
			b.ok(err)
			if r.TimedOut > 2 || len(r.NeedsReconciliation) != 2 || r.NeedsReconciliation[0].ID != "j1" {
				b.Fatalf("sweep: %+v", r)
			}
			lots, jobs = lots+r.ExpiredLots, jobs+r.TimedOut
			if !r.More {
				break
			}
		}
		entries := b.query(`SELECT COUNT(*) FROM entries WHERE kind = 'expire'`)
		if fmt.Sprint(lots) != entries[0] || jobs != 3 {
			b.Fatalf("%d lots of %s and %d jobs", lots, entries[0], jobs)
		}
		b.balance("0 1 0 29")
	})
	eachWorkbench(t, func(b *workbench) {
		for i := range 3 {
			b.give(fmt.Sprint("g", i), 10, until(time.Minute))
		}
		b.at(time.Minute)
		for i := range 4 {
			r, err := b.Sweep(b.Context(), 1)
			b.ok(err)
			if want := i < 3; (r.ExpiredLots == 1) != want || r.More != want {
				b.Fatalf("sweep %d: %+v", i, r)
			}
		}
	})
}
