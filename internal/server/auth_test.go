package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// tokens makes a token of each scope and gives their secrets.
func (s *site) tokens() map[ledger.Scope]string {
	s.t.Helper()
	secrets := map[ledger.Scope]string{}
	for _, scope := range ledger.Scopes {
		made, err := s.ledger.CreateToken(s.t.Context(), "test-"+string(scope), scope)
		if err != nil {
			s.t.Fatal(err)
		}
		secrets[scope] = made.Secret
	}
	return secrets
}

// TestScopes: each token may do what its scope says, and no more; the log names it and has no secret.
func TestScopes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, server.Options{NeedToken: true})
		s.refused(401, ledger.Unauthenticated, "a token is needed", "GET", "/v1/jobs", "")
		secrets := s.tokens()
		for _, c := range []struct {
			need               ledger.Scope
			method, path, body string
		}{
			{ledger.ScopeRead, "GET", "/v1/owners", ""},
			{ledger.ScopeRead, "GET", "/v1/audit", ""},
			{ledger.ScopeRead, "GET", "/metrics", ""},
			{ledger.ScopeWrite, "POST", "/v1/grants", `{"owner":"alice","amount":5,"key":"k1"}`},
			{ledger.ScopeWrite, "POST", "/v1/jobs", `{"id":"j1","owner":"alice","cost":1}`},
			{ledger.ScopeWrite, "POST", "/v1/jobs/j1/attempts", `{"provider":"acme"}`},
			{ledger.ScopeOperator, "POST", "/v1/jobs/j1/reconcile/reject", `{"evidence":"e"}`},
			{ledger.ScopeOperator, "POST", "/v1/revocations", `{"owner":"alice","amount":1,"key":"r","reason":"x"}`},
		} {
			s.token = ""
			s.refused(401, ledger.Unauthenticated, "a token is needed", c.method, c.path, c.body)
			for _, scope := range ledger.Scopes {
				if s.token = secrets[scope]; !scope.Allows(c.need) {
					s.refused(403, ledger.Forbidden, `token "test-`+string(scope)+`" has the scope `+string(scope),
						c.method, c.path, c.body)
					continue
				}
				if s.must(c.method, c.path, c.body); c.method == "POST" && c.need == ledger.ScopeWrite {
					break // once is enough
				}
			}
		}
		story := s.must("GET", "/v1/jobs/j1/explain", "").text
		if !strings.Contains(story, `"operator":"test-operator"`) {
			t.Errorf("the reconciliation does not name its token: %s", story)
		}
		log := s.log.String()
		if !strings.Contains(log, `"token":"test-read"`) {
			t.Error("the log names no token")
		}
		for _, secret := range secrets {
			if strings.Contains(log, secret) {
				t.Error("a secret is in the log")
			}
		}
	})
}

// TestTokens: what is not a valid token is refused in the same words; a revoked one within a second.
func TestTokens(t *testing.T) {
	s := sqlite(t)
	s.must("GET", "/v1/jobs", "")
	secrets := s.tokens()
	read := secrets[ledger.ScopeRead]
	time.Sleep(1100 * time.Millisecond) // so long an open server may stay open
	s.refused(401, ledger.Unauthenticated, "a token is needed", "GET", "/v1/jobs", "")
	for _, header := range []string{
		"Bearer jl_AAAAAAAAAAAAAAAAAAAAAAAAAA", "Bearer ", "Bearer " + read + "x", "Bearer " + read[:len(read)-1],
		"bearer " + read[3:],
	} {
		r := s.refused(401, ledger.Unauthenticated, "the token is not valid", "GET", "/v1/jobs", "",
			"Authorization", header)
		if r.header.Get("WWW-Authenticate") == "" {
			t.Error("the answer does not say how to authenticate")
		}
	}
	s.refused(401, ledger.Unauthenticated, "not Bearer", "GET", "/v1/jobs", "", "Authorization", "Basic "+read)
	s.must("GET", "/v1/jobs", "", "Authorization", "bearer "+read)
	if _, err := s.ledger.RevokeToken(t.Context(), "test-read"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond)
	s.refused(401, ledger.Unauthenticated, "the token is not valid", "GET", "/v1/jobs", "",
		"Authorization", "Bearer "+read)
	for _, path := range []string{"/healthz", "/readyz", "/docs", "/openapi.json"} {
		s.must("GET", path, "")
	}
}

// TestOpenServer: while there are no tokens, only programs on this machine are answered, not pages of other
// sites in its browser.
func TestOpenServer(t *testing.T) {
	s := sqlite(t)
	const grant = `{"owner":"alice","amount":5,"key":"k1"}`
	for host, allowed := range map[string]bool{
		"localhost": true, "LOCALHOST:80": true, "127.0.0.1:1": true, "127.9.9.9": true, "[::1]:80": true,
		"[::1]": true, "evil.example": false, "evil.example:8080": false, "localhost.evil.example": false,
		"10.0.0.1":               false,
		"127.0.0.1.evil.example": false,
	} {
		for _, path := range []string{"/v1/owners", "/metrics"} {
			r, err := http.NewRequest("GET", s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			response, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if (response.StatusCode == 200) != allowed || !allowed && response.StatusCode != 403 {
				t.Errorf("%s for host %s: %d", path, host, response.StatusCode)
			}
		}
	}
	s.refused(403, ledger.Forbidden, "cross-origin", "POST", "/v1/grants", grant,
		"Origin", "https://evil.example")
	s.refused(403, ledger.Forbidden, "cross-origin", "POST", "/v1/grants", grant, "Sec-Fetch-Site", "cross-site")
	s.must("POST", "/v1/grants", grant, "Origin", s.url)
	for request, allowed := range map[string]bool{ // links work
		"cross-site navigate document": true, "same-origin cors empty": true, "none navigate document": true,
		"cross-site no-cors image": false, "cross-site cors empty": false, "cross-site navigate iframe": false,
		"cross-site navigate embed": false,
	} {
		what := strings.Fields(request)
		header := []string{"Sec-Fetch-Site", what[0], "Sec-Fetch-Mode", what[1], "Sec-Fetch-Dest", what[2]}
		if allowed {
			s.must("GET", "/v1/audit", "", header...)
		} else {
			s.refused(403, ledger.Forbidden, "another site", "GET", "/v1/audit", "", header...)
		}
	}
}
