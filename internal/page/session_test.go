package page

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// closed is a gate that lets nobody look without a token.
type closed struct{ *ledger.Ledger }

func (closed) Open(*http.Request) error {
	return &ledger.Error{Code: ledger.Unauthenticated, Message: "a token is needed"}
}

// newClosedDesk starts pages that take a token, and gives the secret of one with a scope.
func newClosedDesk(t *testing.T, scope ledger.Scope) (d *desk, secret string) {
	t.Helper()
	d = newDesk(t, Options{})
	d.page.options.Gate = closed{d.Ledger}
	token, err := d.CreateToken(context.Background(), "ann", scope)
	d.ok(err)
	return d, token.Secret
}

// enter signs in, and gives the header of the session.
func (d *desk) enter(secret, next string) (cookie, to string) {
	d.Helper()
	a := d.do(http.MethodPost, "/sign-in", url.Values{"token": {secret}, "next": {next}}.Encode())
	if a.status != http.StatusSeeOther {
		d.Fatalf("signing in: %d %s", a.status, text(a.body))
	}
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	return cookie, a.header.Get("Location")
}

// Who has no session is asked for a token and nothing is shown; who signed in sees the page that was asked
// for.
func TestSignIn(t *testing.T) {
	d, secret := newClosedDesk(t, ledger.ScopeRead)
	d.grant("alice", "a", 10, 0)
	a := d.do(http.MethodGet, "/owners/alice?before=2", "")
	if a.status != http.StatusSeeOther || strings.Contains(a.body, "Available") {
		t.Fatalf("without a token: %d %s", a.status, a.body)
	}
	form := d.get(a.header.Get("Location"))
	if !strings.Contains(form, `name="next" value="/owners/alice?before=2"`) {
		t.Errorf("the form forgot the page: %s", form)
	}
	a = d.do(http.MethodPost, "/sign-in", "token=jl_wrong")
	if a.status != http.StatusUnauthorized || !strings.Contains(text(a.body), "not valid") ||
		a.header.Get("Set-Cookie") != "" {
		t.Errorf("a wrong token: %d %s", a.status, text(a.body))
	}
	cookie, to := d.enter(" "+secret+"\n", "/owners/alice?before=2")
	if to != "/owners/alice?before=2" {
		t.Errorf("it leads to %q", to)
	}
	if !strings.Contains(form, "jobledger token create --name NAME --scope read") {
		t.Errorf("the form does not say how a token is made: %s", form)
	}
	d.showsTo(to, cookie, "Owner alice")
	if a := d.do(http.MethodGet, "/", "", "Accept", "text/event-stream"); a.status != http.StatusUnauthorized {
		t.Errorf("who has no session may follow: %d", a.status)
	}
	d.do(http.MethodPost, "/sign-out", "", "Cookie", cookie)
	if a := d.do(http.MethodGet, "/", "", "Cookie", cookie); a.status != http.StatusSeeOther {
		t.Errorf("after signing out: %d", a.status)
	}
}

// showsTo is shows with a session.
func (d *desk) showsTo(path, cookie, wanted string) {
	d.Helper()
	if body := text(d.get(path, "Cookie", cookie)); !strings.Contains(body, wanted) {
		d.Errorf("%s does not show %q: %s", path, wanted, body)
	}
}

// A script cannot read the session, another site cannot send it, and it is not the token.
func TestCookie(t *testing.T) {
	d, secret := newClosedDesk(t, ledger.ScopeRead)
	a := d.do(http.MethodPost, "/sign-in", url.Values{"token": {secret}}.Encode())
	cookie := a.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is not %s: %s", want, cookie)
		}
	}
	if strings.Contains(cookie, secret) || strings.Contains(a.header.Get("Location"), secret) {
		t.Error("the token is in the answer")
	}
	a = d.do(http.MethodPost, "/sign-in", url.Values{"token": {secret}}.Encode(), "Sec-Fetch-Site", "cross-site")
	if a.status != http.StatusForbidden || a.header.Get("Set-Cookie") != "" {
		t.Errorf("another site signs in: %d", a.status)
	}
}

// A revoked token ends its sessions at once, also those that follow a page.
func TestRevokedToken(t *testing.T) {
	d, secret := newClosedDesk(t, ledger.ScopeRead)
	cookie, _ := d.enter(secret, "/")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.server.URL+"/", nil)
	d.ok(err)
	r.Header.Set("Cookie", cookie)
	if _, err := d.page.who(r); err != nil {
		t.Fatal(err)
	}
	_, err = d.RevokeToken(t.Context(), "ann")
	d.ok(err)
	if _, err := d.page.who(r); ledger.CodeOf(err) != ledger.Unauthenticated {
		t.Errorf("a revoked token looks on: %v", err)
	}
	if a := d.do(http.MethodGet, "/", "", "Cookie", cookie); a.status != http.StatusSeeOther {
		t.Errorf("a revoked token: %d", a.status)
	}
}

// Sessions are bounded in number and in time; of too many, the oldest ends.
func TestSessionsAreBounded(t *testing.T) {
	s := sessions{byID: make(map[string]session)}
	first := s.begin(ledger.Token{Name: "first"})
	for range sessionsMax {
		s.begin(ledger.Token{})
	}
	if _, there := s.byID[first]; there || len(s.byID) != sessionsMax {
		t.Errorf("%d sessions, the first is there: %v", len(s.byID), there)
	}
	last := s.begin(ledger.Token{Name: "last"})
	r, err := http.NewRequest(http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: last})
	if token, ok := s.find(r); !ok || token.Name != "last" {
		t.Errorf("the session is of %+v, %v", token, ok)
	}
	old := s.byID[last]
	old.until = time.Now().Add(-time.Second)
	s.byID[last] = old
	if _, ok := s.find(r); ok {
		t.Error("a session is longer than its time")
	}
}

// Signing in leads to a page of this server only.
func TestLocal(t *testing.T) {
	for next, want := range map[string]string{
		"/jobs/a%2Fb?x=1": "/jobs/a%2Fb?x=1", "": "/", "https://evil.example/": "/", "//evil.example/": "/",
		`/\evil.example`: "/", "jobs": "/", "/\n/evil.example": "/", "javascript:alert(1)": "/", "/%zz": "/",
	} {
		if got := local(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

// The lab takes a token that may do more than look.
func TestLabNeedsWrite(t *testing.T) {
	d, secret := newClosedDesk(t, ledger.ScopeRead)
	cookie, _ := d.enter(secret, "/lab")
	a := d.do(http.MethodPost, "/lab/lessons", "lesson=lost-update", "Cookie", cookie)
	if a.status != http.StatusForbidden || !strings.Contains(text(a.body), "scope write") {
		t.Errorf("who may look runs the lab: %d %s", a.status, text(a.body))
	}
	writer, err := d.CreateToken(t.Context(), "wil", ledger.ScopeWrite)
	d.ok(err)
	cookie, _ = d.enter(writer.Secret, "/lab")
	if a := d.do(http.MethodPost, "/lab/lessons", "lesson=lost-update", "Cookie", cookie); a.status != 303 {
		t.Errorf("who may write does not run the lab: %d %s", a.status, text(a.body))
	}
}
