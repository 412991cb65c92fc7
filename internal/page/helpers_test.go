package page

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/racelab"
	"jobledger/ledger"
)

// The tests' own program is the other process of a race.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "race-child" {
		if racelab.Child(context.Background(), os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(code)
}

// desk is a ledger and its pages, as a browser reaches them.
type desk struct {
	*testing.T
	*ledger.Ledger
	page   *Page
	server *httptest.Server
	dsn    string
	ago    *atomic.Int64 // how far behind the ledger's clock is, in nanoseconds
}

// newDesk starts the pages of a new, empty ledger of SQLite.
func newDesk(t *testing.T, o Options) *desk {
	t.Helper()
	return newBoundedDesk(t, o, patience)
}

// newBoundedDesk is newDesk with a server that bounds requests and answers, as a real one does.
func newBoundedDesk(t *testing.T, o Options, bound time.Duration) *desk {
	t.Helper()
	ago := new(atomic.Int64)
	dsn := dbtest.SQLite(t)
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{Clock: func() time.Time {
		return time.Now().Add(-time.Duration(ago.Load()))
	}})
	if err != nil {
		t.Fatal(err)
	}
	if o.RaceChild == nil {
		o.RaceChild = []string{os.Args[0], "race-child"}
	}
	p := New(l, o)
	d := &desk{t, l, p, httptest.NewUnstartedServer(p), dsn, ago}
	d.server.Config.ReadTimeout, d.server.Config.WriteTimeout = bound, bound
	d.server.Start()
	t.Cleanup(func() {
		p.stop() // streams end, as at the end of a server
		d.server.Close()
		p.lab.wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *desk) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// look counts and audits, as Run does.
func (d *desk) look() {
	d.page.surveyOnce(d.Context())
	d.page.auditOnce(d.Context())
}

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request, and follows no redirect.
func (d *desk) do(method, path, body string, headers ...string) answer {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), method, d.server.URL+path, strings.NewReader(body))
	d.ok(err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	d.ok(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	d.ok(err)
	return answer{response.StatusCode, response.Header, string(text)}
}

// get gives a page that must be there.
func (d *desk) get(path string, headers ...string) string {
	d.Helper()
	a := d.do(http.MethodGet, path, "", headers...)
	if a.status != http.StatusOK {
		d.Fatalf("%s: %d: %s", path, a.status, text(a.body))
	}
	return a.body
}

// shows checks that a page has texts.
func (d *desk) shows(path string, wanted ...string) {
	d.Helper()
	body := text(d.get(path))
	for _, w := range wanted {
		if !strings.Contains(body, w) {
			d.Errorf("%s does not show %q:\n%s", path, w, body)
		}
	}
}

// text is what a page says, without its elements, in single spaces.
func text(page string) string {
	_, page, _ = strings.Cut(page, "<main")
	page, _, _ = strings.Cut(page, "</main>")
	var b strings.Builder
	depth := 1
	for _, r := range page {
		switch r {
		case '<':
			depth++
			b.WriteByte(' ')
		case '>':
			depth--
		default:
			if depth == 0 {
				b.WriteRune(r)
			}
		}
	}
	return strings.Join(strings.Fields(html.UnescapeString(b.String())), " ")
}

// grant gives an owner a lot that lapses after a time, or never for 0.
func (d *desk) grant(owner, key string, amount int64, lapses time.Duration) {
	d.Helper()
	g := ledger.GrantParams{Owner: owner, Amount: amount, Key: key}
	if lapses > 0 {
		g.Expires = ledger.OnTime(time.Now().Add(lapses))
	}
	_, err := d.Grant(d.Context(), g)
	d.ok(err)
}

func (d *desk) create(id, owner string, cost int64, mode ledger.Mode) {
	d.Helper()
	_, err := d.CreateJob(d.Context(), ledger.JobParams{ID: id, Owner: owner, Cost: cost, Mode: mode})
	d.ok(err)
}

func (d *desk) report(job string, source ledger.Source, outcome ledger.Outcome, reason string) {
	d.Helper()
	_, err := d.Settle(d.Context(), ledger.Report{Job: job, Outcome: outcome, Source: source, Reason: reason})
	d.ok(err)
}

// busyDay fills the ledger with a little of everything that a page can show.
func (d *desk) busyDay() {
	d.Helper()
	ctx := d.Context()
	_, err := d.AddEndpoint(ctx, ledger.EndpointRequest{
		URL: "https://hooks.example/jobs", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	})
	d.ok(err)
	d.grant("alice", "a1", 1_250_000, 0)
	d.grant("bob", "b1", 5000, 20*time.Hour)
	d.grant("team/vision <b>", "t1", 300, 0)
	d.grant("zoe", "z1", 40, 3*24*time.Hour)
	for i := range 12 {
		owner := []string{"alice", "bob", "team/vision <b>"}[i%3]
		mode := []ledger.Mode{ledger.ModeHold, ledger.ModeCharge}[i%2]
		d.create(fmt.Sprintf("img-%04d", i), owner, int64(7+i), mode)
	}
	for i, outcome := range []ledger.Outcome{"completed", "failed", "completed", "canceled", "completed"} {
		d.report(fmt.Sprintf("img-%04d", i), ledger.Callback, outcome, "")
	}
	d.report("img-0001", ledger.Poll, ledger.Completed, "seen at the provider")
	d.report("img-0000", ledger.Poll, ledger.Completed, "")
	for _, id := range []string{"img-0006", "img-0007", "img-0008"} {
		_, err := d.Submit(ctx, id, "acme")
		d.ok(err)
	}
	_, err = d.Uncertain(ctx, "img-0006", 1, "connection reset by peer")
	d.ok(err)
	_, err = d.Accepted(ctx, "img-0008", 1, "pred_8f3a")
	d.ok(err)
	d.bury(2)
}

// bury gives up the next deliveries.
func (d *desk) bury(n int) {
	d.Helper()
	claimed, err := d.ClaimDeliveries(d.Context(), n, time.Minute)
	d.ok(err)
	for _, c := range claimed {
		_, err := d.FinishDelivery(d.Context(), ledger.DeliveryAnswer{
			Event: c.Event.ID, Endpoint: c.Endpoint, Lease: c.Lease, Status: 500, Error: "500 Internal Server Error",
		})
		d.ok(err)
	}
}

// grow gives an owner a past of some days: jobs that end in turn, and grants between them.
func (d *desk) grow(owner string, jobs int) {
	d.Helper()
	defer d.ago.Store(0)
	for i := range jobs {
		d.ago.Store(int64(time.Duration(jobs-i) * 7 * time.Hour))
		id := fmt.Sprintf("%s-%03d", owner, i)
		d.create(id, owner, int64(20_000+i*400), ledger.ModeHold)
		switch i % 4 {
		case 0, 1:
			d.report(id, ledger.Callback, ledger.Completed, "")
		case 2:
			d.report(id, ledger.Poll, ledger.Failed, "out of memory")
			d.grant(owner, id, 45_000, 0)
		}
	}
}

// brokenAudit is what an audit finds in a ledger that somebody wrote to by hand.
func brokenAudit() *auditResult {
	return &auditResult{At: ledger.At(time.Now()), Took: time.Second, Broken: 1, Report: ledger.AuditReport{
		Checks: []ledger.AuditCheck{
			{Name: "storage", OK: true},
			{Name: "balances-lots", Violations: []ledger.Violation{
				{"owner": "alice", "problem": "available is 93, and the lots have 92"},
			}},
		},
	}}
}
