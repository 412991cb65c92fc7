package ledger_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// told gives a story's timeline, one "what: text" a line, with each lot's id as _.
func told(s ledger.Story) string {
	var ids []string
	for i := range s.Lots {
		ids = append(ids, s.Lots[i].ID, "_")
	}
	var lines []string
	for _, step := range s.Timeline {
		lines = append(lines, step.What+": "+step.Text)
	}
	return strings.NewReplacer(ids...).Replace(strings.Join(lines, "\n"))
}

// TestExplainDeliveries: the story goes on with what became of the job's events.
func TestExplainDeliveries(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.served()
		s, err := b.Explain(b.Context(), "s1")
		b.ok(err)
		var told []string
		for _, step := range s.Timeline {
			if step.What == "delivery" {
				told = append(told, step.Text)
			}
		}
		b.same(told, []string{
			"settled:s1 to https://one.example/hook: delivered after 1 try, HTTP 204",
			"settled:s1 to https://two.example/hook: dead after 1 try, HTTP 500 (the answer was 500)",
			"conflict:s1:1 to https://one.example/hook: pending after 1 try, and again at 2030-01-01T00:01:00.000000Z",
			"conflict:s1:1 to https://two.example/hook: not tried yet, and not before 2030-01-01T00:00:00.000000Z",
		})
		if len(s.Deliveries) != 4 || len(s.Open) != 0 {
			b.Fatalf("%+v", s)
		}
	})
}

func TestExplain(t *testing.T) {
	stories := map[string]string{
		"hold-completed": `created: ann asked for it at a cost of 20 credits, mode hold
hold: 20 credits held: 20 of lot _ (entry 4 of ann)
report: callback said completed (said completed): won
settled: completed by callback (said completed): 15 credits of 20 used, 5 returned
consume: 15 credits used of what was held: 15 of lot _ (entry 7 of ann)
release: 5 credits of what was held available again: 5 of lot _ (entry 8 of ann)
event: job.completed for other systems
report: poll said completed (said completed): duplicate, 2 times, the last at 2030-01-01T00:00:12.000000Z
report: poll said failed (said failed): conflict
event: job.conflict for other systems`,
		"charge-failed": `created: ann asked for it at a cost of 7 credits, mode charge
charge: 7 credits used: 7 of lot _ (entry 5 of ann)
report: poll said failed (said failed): won
settled: failed by poll (said failed): 0 credits of 7 used, 7 returned
refund: 7 credits of what was used returned: 7 of lot _; now 7 of lot _ (entry 9 of ann)
event: job.failed for other systems`,
		"late": `created: bob asked for it at a cost of 40 credits, mode hold
hold: 40 credits held: 40 of lot _ (entry 3 of bob)
report: callback said failed (said failed): won
settled: failed by callback (said failed): 0 credits of 40 used, 40 returned
release: 40 credits of what was held available again: 40 of lot _ (entry 7 of bob)
expire: 40 credits expired: 40 of lot _ (entry 8 of bob)
event: job.failed for other systems`,
		"hold-open": `created: ann asked for it at a cost of 12 credits, mode hold
hold: 12 credits held: 12 of lot _ (entry 16 of ann)
report: poll said failed of attempt 4: stale`,
	}
	open := map[string][]string{
		"hold-open": {
			"12 credits are held until a report settles the job",
			"nobody has submitted it: a sweep after 2030-01-02T09:00:23.000000Z will time it out",
		},
	}
	dbtest.Each(t, func(t *testing.T, dsn string) {
		b := openBook(t, dsn)
		b.fill()
		for job, want := range stories {
			s, err := b.Explain(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			if got := told(s); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", job, got, want)
			}
			if !slices.Equal(s.Open, open[job]) {
				t.Errorf("%s: open: %q, want %q", job, s.Open, open[job])
			}
		}
		if _, err := b.Explain(t.Context(), "nobody"); ledger.CodeOf(err) != ledger.NotFound {
			t.Errorf("an unknown job: %v", err)
		}
		if _, err := b.Explain(t.Context(), ""); ledger.CodeOf(err) != ledger.Invalid {
			t.Errorf("no job: %v", err)
		}
	})
}

// TestExplainJSON holds the names of the fields, and that an empty list is [].
func TestExplainJSON(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		b := openBook(t, dsn)
		b.fill()
		s, err := b.Explain(t.Context(), "charge-open")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		const names = "job timeline open attempts reports lots entries events"
		for _, name := range strings.Fields(names) {
			if v, ok := fields[name]; !ok || string(v) == "null" {
				t.Errorf("%s is %s", name, v)
			}
		}
	})
}

// TestExplainOpen holds what is said of open jobs in each state of their submission, and that the
// order of attempts does not depend on the clock.
func TestExplainOpen(t *testing.T) {
	path := dbtest.SQLite(t)
	b := openBook(t, path)
	b.grant(ledger.GrantParams{Owner: "ann", Amount: 100, Key: "a"})
	b.job("ann", "j", 1, ledger.ModeCharge, ledger.When{})
	raw := openRaw(t, path)
	later, sooner := b.at.Add(time.Hour).UnixMicro(), b.at.Add(time.Minute).UnixMicro()
	raw.exec(`INSERT INTO attempts (job_id, attempt, provider, upstream_id, submission, evidence, operator,
		marked_at, resolved_at) VALUES ('j', 1, 'acme', 'u1', 'rejected', 'no capacity', 'sue', ?, ?),
		('j', 2, 'acme', NULL, 'submitting', '', '', ?, NULL)`, later, later, sooner)
	for submission, want := range map[string]string{
		"none":       "nobody has submitted it, and it has no deadline",
		"submitting": "submission submitting: nobody knows whether acme took attempt 2: reconcile it",
		"uncertain":  "submission uncertain: nobody knows whether acme took attempt 2: reconcile it",
		"unknown":    "submission unknown: nobody knows whether acme took attempt 2: reconcile it",
		"accepted":   "attempt 2 was accepted, but its provider or upstream id is missing: reconcile it",
		"rejected":   "attempt 2 was rejected: submit it again, cancel it, or report that it failed",
	} {
		raw.exec(`UPDATE jobs SET attempt = 2, submission = ?`, submission)
		s, err := b.Explain(t.Context(), "j")
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Open) != 2 || s.Open[1] != want {
			t.Errorf("%s: %q, want %q", submission, s.Open, want)
		}
		const order = `created: ann asked for it at a cost of 1 credit, mode charge
charge: 1 credit used: 1 of lot _ (entry 2 of ann)
attempt: attempt 1: about to call acme
attempt: attempt 1: rejected as u1, says sue (no capacity)
attempt: attempt 2: about to call acme`
		if got := told(s); got != order {
			t.Errorf("got\n%s\nwant\n%s", got, order)
		}
	}
	raw.exec(`UPDATE jobs SET status = 'failed'`)
	s, err := b.Explain(t.Context(), "j")
	if err != nil {
		t.Fatal(err)
	}
	const want = "it ended as failed in another system and was never settled here: 1 credit is still used"
	if len(s.Open) != 1 || s.Open[0] != want {
		t.Errorf("unsettled: %q, want %q", s.Open, want)
	}
}
