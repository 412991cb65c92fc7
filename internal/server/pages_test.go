package server_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// visit sends what a browser sends, with the cookie that it has, and follows no redirect.
func (s *site) visit(method, path, cookie, body string) (status int, header http.Header, text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(all)
}

// The first page is for people; what has no page is told to programs, as everywhere.
func TestPagesForPeople(t *testing.T) {
	s := start(t, dbtest.SQLite(t), server.Options{})
	status, header, text := s.visit(http.MethodGet, "/", "", "")
	if status != http.StatusOK || !strings.Contains(text, "Jobs by status") ||
		!strings.Contains(header.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Errorf("the first page: %d %v %s", status, header, text)
	}
	for _, path := range []string{"/owners", "/jobs", "/reconcile", "/lab", "/page/style.css", "/docs"} {
		if status, _, _ := s.visit(http.MethodGet, path, "", ""); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	status, header, _ = s.visit(http.MethodGet, "/nothing", "", "")
	if status != http.StatusNotFound || !strings.Contains(header.Get("Content-Type"), "json") {
		t.Errorf("what is nowhere: %d %s", status, header.Get("Content-Type"))
	}
}

// A browser that signed in may look at the documents that the pages lead to, and change nothing; when its
// token is revoked it may look no more.
func TestBrowserSession(t *testing.T) {
	s := start(t, dbtest.SQLite(t), server.Options{NeedToken: true})
	token, err := s.ledger.CreateToken(t.Context(), "ann", ledger.ScopeWrite)
	if err != nil {
		t.Fatal(err)
	}
	if status, header, _ := s.visit(http.MethodGet, "/", "", ""); status != http.StatusSeeOther ||
		!strings.HasPrefix(header.Get("Location"), "/sign-in") {
		t.Fatalf("without a token: %d %v", status, header)
	}
	status, header, _ := s.visit(http.MethodPost, "/sign-in", "", url.Values{"token": {token.Secret}}.Encode())
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	if status != http.StatusSeeOther || cookie == "" || !strings.Contains(header.Get("Set-Cookie"), "; Secure") {
		t.Fatalf("signing in: %d %v", status, header)
	}
	for path, want := range map[string]int{"/": 200, "/v1/jobs": 200, "/v1/audit": 200} {
		if status, _, text := s.visit(http.MethodGet, path, cookie, ""); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _, _ := s.visit(http.MethodPost, "/v1/grants", cookie, "{}"); status != http.StatusUnauthorized {
		t.Errorf("a session changes something: %d", status)
	}
	if strings.Contains(s.log.String(), token.Secret) {
		t.Error("the token is in the log")
	}
	if _, err := s.ledger.RevokeToken(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/": 303, "/v1/jobs": 401} {
		if status, _, _ := s.visit(http.MethodGet, path, cookie, ""); status != want {
			t.Errorf("%s with a revoked token: %d", path, status)
		}
	}
}

// Who follows a page does not keep the server from ending.
func TestFollowersLetTheServerEnd(t *testing.T) {
	s := start(t, dbtest.SQLite(t), server.Options{Grace: time.Minute})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || line != "event: main\n" {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	began := time.Now()
	s.end()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended <- nil
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the end took %v", took)
	}
}
