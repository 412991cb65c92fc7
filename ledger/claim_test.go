package ledger

import (
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// B11: a sweep and a cancellation decide inside the statement that ends the job. What was read
// before may be out of date by then: here they are let loose on jobs that no reading would give them.
func TestB11ClaimsDecideForThemselves(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dbtest.Each(t, func(t *testing.T, dsn string) {
		l, err := Open(t.Context(), dsn, Options{Clock: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(l.Grant(t.Context(), GrantParams{Owner: "demo", Amount: 21, Key: "g"}))
		for job, deadline := range map[string]time.Duration{"not due": 1, "submitted": 0, "uncertain": 0} {
			due := OnTime(now.Add(deadline * time.Microsecond))
			must(l.CreateJob(t.Context(), JobParams{ID: job, Owner: "demo", Cost: 7, Deadline: due}))
			if job != "not due" {
				must(l.Submit(t.Context(), job, "acme"))
			}
		}
		must(l.Uncertain(t.Context(), "uncertain", 1, "no answer"))
		for _, c := range []struct {
			by   *claim
			job  string
			want Code
		}{
			{bySweep, "not due", NotAllowed}, {bySweep, "submitted", NotAllowed}, {bySweep, "uncertain", NotAllowed},
			{byCancel, "submitted", ReconciliationRequired}, {byCancel, "uncertain", ReconciliationRequired},
		} {
			var s Settlement
			var refusal error
			must(nil, l.db.Write(t.Context(), func(tx *db.Tx) (err error) {
				r := Report{Job: c.job, Outcome: TimedOut, Source: Sweeper}
				s, refusal, err = settle(tx, c.by, r)
				return err
			}))
			if s.Won || s.Verdict != Refused || CodeOf(refusal) != c.want || s.Balance.Held != 21 {
				t.Errorf("%s: %+v, %v, want %s", c.job, s, refusal, c.want)
			}
		}
	})
}
