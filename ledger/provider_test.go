package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/internal/fakeprovider"
	"jobledger/ledger"
)

// TestMain fails every test run in which something dials another machine.
func TestMain(m *testing.M) {
	var guard fakeprovider.Guard
	http.DefaultTransport = guard.Transport()
	exit := m.Run()
	if refused := guard.Refused(); len(refused) > 0 {
		fmt.Fprintf(os.Stderr, "tests dialed %q\n", refused)
		exit = 1
	}
	os.Exit(exit)
}

// startProvider starts a provider with a script, and a client that is soon out of patience.
func startProvider(t *testing.T, script ...fakeprovider.Act) (*fakeprovider.Provider, *fakeprovider.Client) {
	t.Helper()
	p, err := fakeprovider.Start(script...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	patience := 10 * time.Second
	if len(script) > 0 && script[0] == fakeprovider.Hang {
		patience = 100 * time.Millisecond
	}
	return p, &fakeprovider.Client{URL: p.URL, HTTP: &http.Client{Timeout: patience}}
}

// The points in the life of a submission at which a worker can die.
const (
	beforeMarker = "before the marker"
	afterMarker  = "after the marker"
	beforeSave   = "before the answer is saved"
	afterSave    = "after the answer is saved"
)

// work is what a worker does with a job: it marks an attempt, calls the provider once, and records
// the answer. It says where it is.
func work(
	l *ledger.Ledger, c *fakeprovider.Client, o fakeprovider.Order, at func(point string),
) (came string, err error) {
	ctx := context.Background()
	at(beforeMarker)
	r, err := l.Submit(ctx, o.Job, "acme")
	if err != nil {
		return "", err // without a marker the provider is not called
	}
	at(afterMarker)
	o.Attempt = r.Attempt
	a := c.Create(ctx, o)
	at(beforeSave)
	var result ledger.AnswerResult
	switch {
	case a.UpstreamID != "":
		result, err = l.Accepted(ctx, o.Job, r.Attempt, a.UpstreamID)
	case a.Rejection != "":
		result, err = l.Rejected(ctx, o.Job, r.Attempt, a.Rejection, false)
	default:
		result, err = l.Uncertain(ctx, o.Job, r.Attempt, a.Doubt)
	}
	at(afterSave)
	return replied(result, err), err
}

func nowhere(string) {}

// worked runs a worker and checks what it came to, and how many jobs the provider has made.
func (b *workbench) worked(want string, p *fakeprovider.Provider, c *fakeprovider.Client, creations int) {
	b.Helper()
	got, err := work(b.Ledger, c, fakeprovider.Order{Job: "j"}, nowhere)
	if err != nil {
		got = string(ledger.CodeOf(err))
	}
	if got != want || p.Creations() != creations {
		b.Fatalf("the worker came to %q with %d creations, want %q with %d", got, p.Creations(), want, creations)
	}
}

// unresolved checks that nothing is paid back on a guess and nothing is sent a second time.
func (b *workbench) unresolved(p *fakeprovider.Provider, c *fakeprovider.Client, creations int) {
	b.Helper()
	_, err := b.Cancel(b.Context(), "j", "")
	b.fails(err, ledger.ReconciliationRequired)
	b.at(time.Duration(b.micro.Load())*time.Microsecond + century)
	r, err := b.Sweep(b.Context(), ledger.PageMax)
	b.ok(err)
	if r.TimedOut != 0 {
		b.Fatalf("the sweep timed it out")
	}
	b.worked("NOT_ALLOWED", p, c, creations)
	b.balance("0 7 0 0")
}

// breaking opens a handle on which a statement fails, once: the first that begins with a text.
func (b *workbench) breaking(when db.When, text string) *ledger.Ledger {
	broken := false
	return b.open(ledger.Options{Intercept: func(now db.When, query string) error {
		if broken || now != when || !strings.HasPrefix(strings.TrimSpace(query), text) {
			return nil
		}
		broken = true
		return errInjected
	}})
}

// A transport failure or an answer that makes no sense leaves the reservation as it is, and does not
// trigger another creation. What the provider says later settles the job.
func TestThirdArticleUncertainSubmission(t *testing.T) {
	for act, creations := range map[fakeprovider.Act]int{
		fakeprovider.Hang: 1, fakeprovider.Drop: 1, fakeprovider.Malformed: 1, fakeprovider.Fail: 1,
		fakeprovider.Missing: 0,
	} {
		eachWorkbench(t, func(b *workbench) {
			p, c := startProvider(b.T, act)
			b.pending("j")
			b.worked("uncertain", p, c, creations)
			b.unresolved(p, c, creations)
			b.settle("won completed 3 4", "j", ledger.Completed, 4)
		})
	}
}

// A job cannot be canceled into a refund even when saving the uncertainty has failed too.
func TestThirdArticleUncertaintyCannotBeSaved(t *testing.T) {
	for _, c := range []struct {
		when db.When
		text string
	}{{db.Before, "UPDATE attempts"}, {db.After, "UPDATE attempts"}, {db.After, "UPDATE jobs SET submission"}} {
		eachWorkbench(t, func(b *workbench) {
			p, client := startProvider(b.T, fakeprovider.Drop)
			b.pending("j")
			_, err := work(b.breaking(c.when, c.text), client, fakeprovider.Order{Job: "j"}, nowhere)
			b.fails(err, ledger.Internal)
			b.same(b.query(`SELECT submission FROM jobs`), []string{"submitting"})
			b.unresolved(p, client, 1)
			b.uncertain("uncertain", "j", 1, "connection reset")
			b.unresolved(p, client, 1)
		})
	}
}

// A marker that cannot be saved means that the provider is not called. Whether the marker is there
// decides what may be returned, not how old the job is.
func TestThirdArticleMarkerCannotBeSaved(t *testing.T) {
	for _, c := range []struct {
		when  db.When
		text  string
		saved bool
	}{
		{db.Before, "INSERT INTO attempts", false}, {db.After, "INSERT INTO attempts", false},
		{db.After, "UPDATE jobs", false}, {db.Before, "COMMIT", false}, {db.After, "COMMIT", true},
	} {
		eachWorkbench(t, func(b *workbench) {
			p, client := startProvider(b.T)
			b.pending("j")
			_, err := work(b.breaking(c.when, c.text), client, fakeprovider.Order{Job: "j"}, nowhere)
			if err == nil || p.Creations() != 0 {
				b.Fatalf("%s: %v, %d creations", c.text, err, p.Creations())
			}
			if c.saved {
				b.fails(err, ledger.OutcomeUnknown)
				b.unresolved(p, client, 0)
				return
			}
			s, err := b.Cancel(b.Context(), "j", "")
			b.ok(err)
			b.told("won canceled 7 0", s)
		})
	}
}

// A rejected submission whose refund fails stays unsettled. Observed again it settles, without
// another submission, and pays once: wherever the settlement failed, and if only its answer was lost.
func TestThirdArticleSettlementRetry(t *testing.T) {
	for _, c := range []struct {
		when db.When
		text string
		want string
	}{
		{db.Before, "UPDATE lots", "rejected: won failed, failed 7 0"},
		{db.Before, "UPDATE balances", "rejected: won failed, failed 7 0"},
		{db.After, "UPDATE balances", "rejected: won failed, failed 7 0"},
		{db.Before, "INSERT INTO events", "rejected: won failed, failed 7 0"},
		{db.Before, "INSERT INTO reports", "rejected: won failed, failed 7 0"},
		{db.Before, "COMMIT", "rejected: won failed, failed 7 0"},
		{db.After, "COMMIT", "rejected replayed: won failed, failed 7 0"},
	} {
		eachWorkbench(t, func(b *workbench) {
			p, client := startProvider(b.T, fakeprovider.Reject, fakeprovider.Accept)
			b.pending("j")
			b.mark("j", "acme", 1)
			a := client.Create(b.Context(), fakeprovider.Order{Job: "j", Attempt: 1})
			_, err := b.breaking(c.when, c.text).Rejected(b.Context(), "j", 1, a.Rejection, false)
			if err == nil {
				b.Fatalf("%s: no error", c.text)
			}
			if c.when == db.Before {
				b.balance("0 7 0 0")
				b.evidence("j")
			}
			b.rejected(c.want, "j", 1, a.Rejection, false)
			b.journal("grant 7: 7 0 0 0", "hold 7: 0 7 0 0", "release 7: 7 0 0 0")
			b.evidence("j", "poll failed won 1", "job.failed")
			if p.Creations() != 0 {
				b.Fatalf("%d creations", p.Creations())
			}
		})
	}
}

// receive is a receiver of callbacks: it reports what they say.
func (b *workbench) receive() (address string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n fakeprovider.Notice
		err := json.NewDecoder(r.Body).Decode(&n)
		if err == nil {
			_, err = b.Settle(r.Context(), ledger.Report{Job: n.Job, Outcome: ledger.Outcome(n.Outcome),
				Source: ledger.Callback, Attempt: n.Attempt, UpstreamID: n.ID})
		}
		if err != nil {
			http.Error(w, err.Error(), ledger.CodeOf(err).Info().HTTP)
		}
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// B46: a callback that comes before the answer to the submission is saved settles the job, and the
// late answer is told what happened.
func TestB46CallbackBeforeTheAnswer(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		p, c := startProvider(b.T, fakeprovider.CallBackFirst)
		b.pending("j")
		got, err := work(b.Ledger, c, fakeprovider.Order{Job: "j", Callback: b.receive()}, nowhere)
		b.ok(err)
		b.same([]string{got}, []string{"accepted: duplicate completed, completed 0 7"})
		b.balance("0 0 7 0")
		b.ok(p.CallBack(b.Context(), "up-1", "completed"))
		b.ok(p.CallBack(b.Context(), "up-1", "failed"))
		b.evidence("j", "callback completed duplicate 1", "callback completed won 1", "callback failed conflict 1",
			"job.completed", "job.conflict")
	})
}

// A provider that answers twice has taken one job, and is told so once.
func TestThirdArticleAnswersTwice(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		p, c := startProvider(b.T, fakeprovider.Twice)
		b.pending("j")
		b.worked("accepted", p, c, 1)
		b.unchanged(func() { b.accepted("accepted replayed", "j", 1, "up-1") })
		b.worked("NOT_ALLOWED", p, c, 1)
		s, err := b.Cancel(b.Context(), "j", "")
		b.ok(err)
		b.told("won canceled 7 0", s)
	})
}

// B31: a poll that is not answered, or not with an outcome, is no failure: nothing moves. B34: nor is
// an outcome that nobody has heard of.
func TestB31PollWithoutAnOutcome(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		p, c := startProvider(b.T, fakeprovider.Hang)
		b.pending("j")
		b.worked("uncertain", p, c, 1)
		p.Polls(fakeprovider.Hang, fakeprovider.Fail, fakeprovider.Malformed, fakeprovider.Missing,
			fakeprovider.Accept)
		poll := func() error {
			outcome, known, doubt := c.Outcome(b.Context(), "up-1")
			if !known {
				return errors.New(doubt)
			}
			_, err := b.Settle(b.Context(), ledger.Report{Job: "j", Outcome: ledger.Outcome(outcome),
				Source: ledger.Poll, Attempt: 1, UpstreamID: "up-1"})
			return err
		}
		b.unchanged(func() {
			for i := range 4 {
				if err := poll(); err == nil {
					b.Fatalf("poll %d has an outcome", i)
				}
			}
			b.fails(b.outcome("j", "unknown"), ledger.Invalid, "outcome")
		})
		b.unresolved(p, c, 1)
		b.ok(poll())
		b.balance("0 0 7 0")
	})
}
