package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"jobledger/ledger"
)

// taken makes a job that a provider has taken under the id u-JOB.
func (b *workbench) taken(job, provider string) {
	b.Helper()
	b.ok(b.create(job, 1, ledger.ModeHold))
	_, err := b.Submit(b.Context(), job, provider)
	b.ok(err)
	_, err = b.Accepted(b.Context(), job, 1, "u-"+job)
	b.ok(err)
}

// polls claims polls of the providers for a minute, and checks of which jobs.
func (b *workbench) polls(limit int, providers string, want ...string) (list []ledger.PollTask) {
	b.Helper()
	var names []string
	for _, p := range providers {
		names = append(names, string(p))
	}
	list, err := b.ClaimPolls(b.Context(), names, limit, time.Minute)
	b.ok(err)
	var got []string
	for _, p := range list {
		got = append(got, p.Job)
		if p.UpstreamID != "u-"+p.Job || p.Attempt != 1 || p.Lease == "" {
			b.Fatalf("%+v", p)
		}
	}
	b.same(got, want)
	return list
}

// TestPolls: a job that a provider took is polled until it ends, however it ends.
func TestPolls(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 99)
		for _, job := range []string{"a", "b", "c", "d"} {
			b.taken(job, "p")
		}
		b.polls(9, "p") // a callback comes first
		b.at(5 * time.Second)
		b.polls(9, "q")
		list := b.polls(9, "qp", "a", "b", "c", "d")
		b.polls(9, "p")
		next := ledger.At(start.Add(time.Hour))
		said := ledger.PollAnswer{Job: "a", Lease: list[0].Lease, NextAt: next, Error: "HTTP 500"}
		b.ok(b.FinishPoll(b.Context(), said))
		b.same(b.query(`SELECT last_error FROM polls WHERE job_id = 'a'`), []string{"HTTP 500"})
		b.settle("won completed 0 1", "b", ledger.Completed)
		_, err := b.Cancel(b.Context(), "c", "not wanted")
		b.ok(err)
		_, err = b.ReconcileReject(b.Context(), ledger.Reconciliation{Job: "d", Evidence: "e", Operator: "sue"})
		b.ok(err)
		b.same(b.query(`SELECT job_id FROM polls`), []string{"a"})
		b.unchanged(func() {
			for _, task := range list {
				err := b.FinishPoll(b.Context(), ledger.PollAnswer{Job: task.Job, Lease: task.Lease, NextAt: next})
				b.fails(err, ledger.NotAllowed)
			}
		})
		b.at(time.Hour)
		again := b.polls(9, "p", "a")
		if again[0].Tries != 2 {
			b.Fatalf("%+v", again[0])
		}
		b.at(time.Hour + time.Minute) // the lease ended
		b.polls(9, "p", "a")
	})
}

// TestPollsOfAttempts: only what can be asked for is polled.
func TestPollsOfAttempts(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 99)
		ctx := b.Context()
		for _, job := range []string{"new", "marked", "unsure", "retried", "reported"} {
			b.ok(b.create(job, 1, ledger.ModeHold))
			if job != "new" {
				_, err := b.Submit(ctx, job, "p")
				b.ok(err)
			}
		}
		_, err := b.Uncertain(ctx, "unsure", 1, "timeout")
		b.ok(err)
		_, err = b.Rejected(ctx, "retried", 1, "busy", true)
		b.ok(err)
		b.settle("won completed 0 1", "reported", ledger.Completed)
		_, err = b.Accepted(ctx, "reported", 1, "u-late")
		b.ok(err)
		b.same(b.query(`SELECT job_id FROM polls`), nil)
		_, err = b.Submit(ctx, "retried", "q")
		b.ok(err)
		_, err = b.Accepted(ctx, "retried", 2, "u-2")
		b.ok(err)
		_, err = b.ReconcileAccept(ctx, ledger.Reconciliation{
			Job: "unsure", UpstreamID: "u-3", Evidence: "seen", Operator: "sue",
		})
		b.ok(err)
		b.same(b.query(`SELECT job_id || attempt || provider FROM polls ORDER BY 1`),
			[]string{"retried2q", "unsure1p"})
		for range 2 {
			_, err = b.Accepted(ctx, "retried", 2, "u-2") // a replay
			b.ok(err)
		}
	})
}

// TestPollShares: no provider takes the places of another.
func TestPollShares(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 99)
		for i := range 4 {
			b.taken(fmt.Sprint("p", i), "p")
		}
		b.taken("q", "q")
		b.at(time.Hour)
		b.polls(2, "pq", "p0", "q")
		b.polls(9, "qp", "p1", "p2", "p3")
	})
}

// TestWakePoll: a wake brings the next poll forward, also while one is under way.
func TestWakePoll(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 99)
		b.taken("a", "p")
		b.ok(b.WakePoll(b.Context(), "a"))
		task := b.polls(9, "p", "a")[0]
		later := ledger.At(start.Add(time.Hour))
		b.at(time.Second)
		b.ok(b.WakePoll(b.Context(), "a"))
		b.ok(b.FinishPoll(b.Context(), ledger.PollAnswer{Job: "a", Lease: task.Lease, NextAt: later}))
		task = b.polls(9, "p", "a")[0]
		b.ok(b.WakePoll(b.Context(), "a"))
		b.polls(9, "p") // the call that is under way ends first
		b.at(time.Second + time.Minute)
		task = b.polls(9, "p", "a")[0] // nobody ended it
		b.ok(b.FinishPoll(b.Context(), ledger.PollAnswer{Job: "a", Lease: task.Lease, NextAt: later}))
		b.polls(9, "p")
		b.settle("won completed 0 1", "a", ledger.Completed)
		b.ok(b.WakePoll(b.Context(), "a"))
		b.fails(b.WakePoll(b.Context(), "nobody"), ledger.NotFound)
		b.pending("c")
		b.fails(b.WakePoll(b.Context(), "c"), ledger.Busy)
		b.mark("c", "p", 1)
		b.fails(b.WakePoll(b.Context(), "c"), ledger.Busy)
		b.accepted("accepted", "c", 1, "u-c")
		b.ok(b.WakePoll(b.Context(), "c"))
		b.ok(b.WakePoll(b.Context(), "c")) // again, and when its time has come
		b.polls(9, "p", "c")
		b.fails(b.WakePoll(b.Context(), ""), ledger.Invalid, "job")
		never := ledger.PollAnswer{Job: "a", Lease: "l", NextAt: -1}
		b.fails(b.FinishPoll(b.Context(), never), ledger.Invalid, "next_at")
		b.fails(b.FinishPoll(b.Context(), ledger.PollAnswer{Job: "a"}), ledger.Invalid, "lease")
		_, err := b.ClaimPolls(b.Context(), []string{""}, 1, time.Minute)
		b.fails(err, ledger.Invalid, "provider")
	})
}

func TestFindAttempt(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.taken("a", "p")
		on, err := b.FindAttempt(b.Context(), "p", "u-a")
		b.ok(err)
		if on.Job != "a" || on.Attempt != 1 {
			b.Fatalf("%+v", on)
		}
		_, err = b.FindAttempt(b.Context(), "q", "u-a")
		b.fails(err, ledger.NotFound)
		_, err = b.FindAttempt(b.Context(), "p", "")
		b.fails(err, ledger.Invalid, "upstream_id")
	})
}
