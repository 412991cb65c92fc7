package guards

import (
	"context"
	"fmt"
	"sync"

	"jobledger/ledger"
)

// scene is something that happens every day, and in which one mistake would show.
type scene struct {
	title     string // what happens, in a few words
	invariant string // that it can break, in a few words
	play      func(ctx context.Context, s *stage) error
}

const (
	owner   = "alice"
	granted = 100
)

var duplicates = scene{
	title:     "16 reports of one failure",
	invariant: "a job ends once",
	play: func(ctx context.Context, s *stage) error {
		if err := s.hold(ctx, "a", 7); err != nil {
			return err
		}
		if err := s.hold(ctx, "b", 7); err != nil { // its credits are what a second release would take
			return err
		}
		handles, err := s.open(ctx, 4)
		if err != nil {
			return err
		}
		var one sync.Mutex
		wins := 0
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				told, err := handles[i%4].Settle(ctx, ledger.Report{
					Job: "a", Outcome: ledger.Failed, Source: []ledger.Source{ledger.Callback, ledger.Poll}[i%2],
				})
				one.Lock()
				defer one.Unlock()
				s.answered("an observer", err)
				if err == nil && told.Won {
					wins++
				}
			})
		}
		all.Wait()
		if wins != 1 {
			s.broke("%d reports of 16 were told that they had won", wins)
		}
		return s.holds(ctx, granted-7, 7)
	},
}

var late = scene{
	title:     "a late report of attempt 1",
	invariant: "an old report moves nothing",
	play: func(ctx context.Context, s *stage) error {
		if err := s.hold(ctx, "a", 7); err != nil {
			return err
		}
		for _, answer := range []func() error{
			func() error { _, err := s.plain.Submit(ctx, "a", "provider"); return err },
			func() error { _, err := s.plain.Rejected(ctx, "a", 1, "queue full", true); return err },
			func() error { _, err := s.plain.Submit(ctx, "a", "provider"); return err },
		} {
			if err := answer(); err != nil {
				return err
			}
		}
		handles, err := s.open(ctx, 1)
		if err != nil {
			return err
		}
		_, err = handles[0].Settle(ctx, ledger.Report{
			Job: "a", Outcome: ledger.Failed, Source: ledger.Callback, Attempt: 1,
		})
		if ledger.CodeOf(err) != ledger.StaleAttempt {
			s.broke("the report of attempt 1 was answered %s", codeOf(err))
		}
		told, err := handles[0].Settle(ctx, ledger.Report{
			Job: "a", Outcome: ledger.Completed, Source: ledger.Callback, Attempt: 2,
		})
		if s.answered("attempt 2", err); err == nil && !told.Won {
			s.broke("attempt 2 completed, and the job had ended %s", told.Job.Status)
		}
		return s.spent(ctx, granted-7, 0, 7)
	},
}

var overspend = scene{
	title:     "2 jobs of 100, 100 credits",
	invariant: "no credit is spent twice",
	play: func(ctx context.Context, s *stage) error {
		if err := s.freeze(ctx); err != nil {
			return err
		}
		handles, err := s.open(ctx, 1)
		if err != nil {
			return err
		}
		for i, job := range []string{"a", "b"} {
			_, err := handles[0].CreateJob(ctx, ledger.JobParams{
				ID: job, Owner: owner, Cost: granted, Mode: ledger.ModeHold,
			})
			switch {
			case i == 0:
				s.answered("the first job", err)
			case err == nil:
				s.broke("both jobs were created")
			case ledger.CodeOf(err) != ledger.InsufficientCredits:
				s.wrong("the second job was answered %s", codeOf(err))
			}
		}
		return s.holds(ctx, 0, granted)
	},
}

var crowd = scene{
	title:     "64 jobs of one owner",
	invariant: "who can wait is not refused",
	play: func(ctx context.Context, s *stage) error {
		s.tampering.meetAfter = "FROM schema_migrations" // the first read of every transaction
		if s.plain.Engine() == postgres {
			s.tampering.meetAfter = "SELECT 1 FROM balances WHERE owner" // that which locks
		}
		handles, err := s.open(ctx, 4)
		if err != nil {
			return err
		}
		var one sync.Mutex
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				_, err := handles[i%4].CreateJob(ctx, ledger.JobParams{
					ID: fmt.Sprint("job-", i), Owner: owner, Cost: 1, Mode: ledger.ModeHold,
				})
				one.Lock()
				defer one.Unlock()
				if err != nil {
					s.broke("a job that its owner could pay was answered %s", codeOf(err))
				}
			})
		}
		all.Wait()
		return s.holds(ctx, granted-64, 64)
	},
}

var lostCommit = scene{
	title:     "a COMMIT that fails",
	invariant: "nothing acknowledged is lost",
	play: func(ctx context.Context, s *stage) error {
		if err := s.hold(ctx, "a", 7); err != nil {
			return err
		}
		handles, err := s.open(ctx, 1)
		if err != nil {
			return err
		}
		s.tampering.spoil.Store(true)
		report := ledger.Report{Job: "a", Outcome: ledger.Failed, Source: ledger.Callback}
		told, err := handles[0].Settle(ctx, report)
		job, findErr := s.plain.Job(ctx, "a")
		if findErr != nil {
			return findErr
		}
		switch {
		case err == nil && told.Won && job.Status.Open():
			s.broke("the observer was told that it had won, and the job is %s", job.Status)
		case ledger.CodeOf(err) != ledger.OutcomeUnknown:
			s.broke("the observer was answered %s", codeOf(err))
		}
		if told, err = handles[0].Settle(ctx, report); err == nil && !told.Won {
			s.broke("the same report again did not win")
		}
		s.answered("the same report again", err)
		return s.holds(ctx, granted, 0)
	},
}
