package ledger_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// book is a ledger with a clock that the test sets.
type book struct {
	*ledger.Ledger
	t  *testing.T
	at time.Time
}

func openBook(t *testing.T, dsn string) *book {
	t.Helper()
	b := &book{t: t, at: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{Clock: func() time.Time { return b.at }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b.Ledger = l
	return b
}

func must[T any](b *book) func(T, error) T {
	return func(result T, err error) T {
		b.t.Helper()
		if err != nil {
			b.t.Fatal(err)
		}
		b.at = b.at.Add(time.Second)
		return result
	}
}

func (b *book) grant(p ledger.GrantParams) {
	b.t.Helper()
	must[ledger.GrantResult](b)(b.Grant(b.t.Context(), p))
}

func (b *book) job(owner, id string, cost int64, mode ledger.Mode, deadline ledger.When) {
	b.t.Helper()
	p := ledger.JobParams{ID: id, Owner: owner, Cost: cost, Mode: mode, Deadline: deadline}
	p.Metadata = `{"size":2}`
	must[ledger.JobResult](b)(b.CreateJob(b.t.Context(), p))
}

func (b *book) report(job string, o ledger.Outcome, s ledger.Source, cost int64) {
	b.t.Helper()
	r := ledger.Report{Job: job, Outcome: o, Source: s, Reason: "said " + string(o)}
	if cost >= 0 {
		r.Cost = &cost
	}
	must[ledger.Settlement](b)(b.Settle(b.t.Context(), r))
}

func (b *book) sweep() {
	b.t.Helper()
	must[ledger.SweepResult](b)(b.Sweep(b.t.Context(), 100))
}

// fill plays a life in which each kind of entry, each verdict but refused, and each status occurs.
func (b *book) fill() {
	b.t.Helper()
	never := ledger.When{}
	hour := ledger.After(time.Hour)
	b.grant(ledger.GrantParams{Owner: "ann", Amount: 100, Key: "a1", Reason: "hello", Metadata: `{"plan":"x"}`})
	b.grant(ledger.GrantParams{Owner: "ann", Amount: 30, Key: "a2", Priority: 5, Expires: hour})
	b.grant(ledger.GrantParams{Owner: "ann", Amount: 9, Key: "a3", Effective: ledger.After(90 * time.Hour)})
	b.grant(ledger.GrantParams{Owner: "bob", Amount: 50, Key: "b1", Expires: ledger.After(2 * time.Hour)})
	b.grant(ledger.GrantParams{Owner: "bob", Amount: 50, Key: "b2"})
	b.job("ann", "hold-completed", 20, ledger.ModeHold, never)
	b.job("ann", "charge-failed", 7, ledger.ModeCharge, never)
	b.job("ann", "hold-canceled", 75, ledger.ModeHold, never) // from two lots
	b.job("bob", "late", 40, ledger.ModeHold, never)
	b.job("bob", "timed-out", 3, ledger.ModeHold, ledger.After(time.Minute))
	b.report("hold-completed", ledger.Completed, ledger.Callback, 15)
	b.report("hold-completed", ledger.Completed, ledger.Poll, -1)
	b.report("hold-completed", ledger.Completed, ledger.Poll, -1)
	b.report("hold-completed", ledger.Failed, ledger.Poll, -1)
	b.report("charge-failed", ledger.Failed, ledger.Poll, -1)
	must[ledger.Settlement](b)(b.Cancel(b.t.Context(), "hold-canceled", "changed my mind"))
	b.grant(ledger.GrantParams{Owner: "ann", Amount: 4, Key: "a4", Priority: 6, Expires: hour})
	b.at = b.at.Add(3 * time.Hour)
	b.sweep()
	b.report("late", ledger.Failed, ledger.Callback, -1) // released into a lapsed lot
	b.grant(ledger.GrantParams{Owner: "bob", Amount: 11, Key: "b3", Expires: ledger.After(time.Minute)})
	b.job("ann", "charge-completed", 10, ledger.ModeCharge, never)
	b.report("charge-completed", ledger.Completed, ledger.Callback, 6)
	revoke := ledger.RevokeParams{Owner: "bob", Amount: 5, Key: "r1", Reason: "a mistake"}
	must[ledger.RevokeResult](b)(b.Revoke(b.t.Context(), revoke))
	b.job("ann", "hold-open", 12, ledger.ModeHold, ledger.After(30*time.Hour))
	b.job("ann", "charge-open", 8, ledger.ModeCharge, never)
	must[ledger.SubmitResult](b)(b.Submit(b.t.Context(), "charge-open", "acme"))
	stale := ledger.Report{Job: "hold-open", Outcome: ledger.Failed, Source: ledger.Poll, Attempt: 4}
	if _, err := b.Settle(b.t.Context(), stale); ledger.CodeOf(err) != ledger.StaleAttempt {
		b.t.Fatalf("a stale report: %v", err)
	}
}

// serveAll makes a token, and an endpoint that is told of all events from now on.
func (b *book) serveAll() {
	b.t.Helper()
	must[ledger.NewToken](b)(b.CreateToken(b.t.Context(), "app", ledger.ScopeRead))
	hook := ledger.EndpointRequest{URL: "https://a.example", Secret: hookSecret}
	must[ledger.EndpointResult](b)(b.AddEndpoint(b.t.Context(), hook))
}

// serve leaves what a server does: a job that a provider took, and of what is due the first delivered and
// the others with a sender.
func (b *book) serve() {
	b.t.Helper()
	b.job("bob", "asked", 1, ledger.ModeHold, ledger.When{})
	must[ledger.SubmitResult](b)(b.Submit(b.t.Context(), "asked", "acme"))
	must[ledger.AnswerResult](b)(b.Accepted(b.t.Context(), "asked", 1, "up-1"))
	list := must[[]ledger.ClaimedDelivery](b)(b.ClaimDeliveries(b.t.Context(), 9, time.Hour))
	must[ledger.Delivery](b)(b.FinishDelivery(b.t.Context(), ledger.DeliveryAnswer{
		Event: list[0].Event.ID, Endpoint: list[0].Endpoint, Lease: list[0].Lease, Delivered: true, Status: 200,
	}))
}

func (b *book) audit(p ledger.AuditParams) ledger.AuditReport {
	b.t.Helper()
	return must[ledger.AuditReport](b)(b.Audit(b.t.Context(), p))
}

// broken lists the violations of a report, one a line.
func broken(r ledger.AuditReport) (lines []string) {
	for _, c := range r.Checks {
		if c.OK != (len(c.Violations) == 0) {
			lines = append(lines, c.Name+" contradicts itself")
		}
		for _, v := range c.Violations {
			lines = append(lines, fmt.Sprint(c.Name, " ", v))
		}
	}
	if r.OK != (len(lines) == 0) {
		lines = append(lines, "the report contradicts itself")
	}
	return lines
}

func TestAuditClean(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		b := openBook(t, dsn)
		if lines := broken(b.audit(ledger.AuditParams{Quiescent: true})); lines != nil {
			t.Errorf("an empty ledger: %q", lines)
		}
		b.fill()
		if lines := broken(b.audit(ledger.AuditParams{})); lines != nil {
			t.Errorf("a full ledger:\n%s", strings.Join(lines, "\n"))
		}
	})
}

// check gives one check of a report.
func check(t *testing.T, r ledger.AuditReport, name string) ledger.AuditCheck {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("the report has no check %s", name)
	return ledger.AuditCheck{}
}

func TestAuditQuiescent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		b := openBook(t, dsn)
		b.fill()
		r := b.audit(ledger.AuditParams{Quiescent: true})
		if lines := broken(r); len(lines) != 3 {
			t.Errorf("%q, want one lot with held credits and two open jobs", lines)
		}
		if v := check(t, r, "quiescent-held").Violations; len(v) != 1 || v[0]["lot"] == nil {
			t.Errorf("held: %v", v)
		}
		for _, job := range []string{"hold-open", "charge-open"} {
			if !names(r, "quiescent-jobs", "job", job) {
				t.Errorf("%s is open and not named", job)
			}
			b.report(job, ledger.Failed, ledger.Operator, -1)
		}
		if lines := broken(b.audit(ledger.AuditParams{Quiescent: true})); lines != nil {
			t.Errorf("all work has ended: %q", lines)
		}
	})
}

// TestAuditOverdue lets the clock go back, so that lots which the last sweep had to expire get credits
// after it, and lots lapse that no sweep has seen. Neither is a fault.
func TestAuditOverdue(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		b := openBook(t, dsn)
		start := b.at
		b.grant(ledger.GrantParams{Owner: "ann", Amount: 5, Key: "held", Expires: ledger.After(time.Hour)})
		b.job("ann", "j", 5, ledger.ModeHold, ledger.When{})
		b.grant(ledger.GrantParams{Owner: "ann", Amount: 5, Key: "swept", Expires: ledger.After(2 * time.Hour)})
		b.at = start.Add(3 * time.Hour)
		b.sweep()
		b.at = start.Add(time.Minute)
		b.report("j", ledger.Failed, ledger.Poll, -1) // into a lot that lapses in an hour
		b.grant(ledger.GrantParams{Owner: "ann", Amount: 5, Key: "new", Expires: ledger.After(time.Hour)})
		b.at = start.Add(4 * time.Hour)
		if lines := broken(b.audit(ledger.AuditParams{})); lines != nil {
			t.Errorf("%q", lines)
		}
	})
}

// TestAuditBounds holds that a check keeps 100 violations and counts the others, and that lists are []
// in JSON.
func TestAuditBounds(t *testing.T) {
	path := dbtest.SQLite(t)
	b := openBook(t, path)
	for i := range 103 {
		b.grant(ledger.GrantParams{Owner: fmt.Sprint("owner-", i), Amount: 1, Key: fmt.Sprint(i)})
	}
	text, err := json.Marshal(b.audit(ledger.AuditParams{}))
	if err != nil || strings.Contains(string(text), "null") {
		t.Errorf("%s: %v", text, err)
	}
	openRaw(t, path).exec(`UPDATE balances SET available = 2`)
	v := check(t, b.audit(ledger.AuditParams{}), "balances-lots").Violations
	if len(v) != 101 || v[100]["problem"] != "and 3 more" {
		t.Errorf("%d violations, the last %v", len(v), v[len(v)-1])
	}
}
