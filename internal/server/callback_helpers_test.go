package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/providers"
	"jobledger/internal/server"
	"jobledger/internal/webhook"
)

// The providers of these tests: two that sign with Standard Webhooks, each with its own secret, one whose
// word is the poll's, and one that signs no time.
const providersFile = `{"providers":[
	{"name":"acme","preset":"replicate","secret_file":"acme",
	 "body":{"cost":"/cost","job":"/job","attempt":"/attempt"}},
	{"name":"rival","preset":"replicate","secret_file":"rival","body":{"job":"/job","attempt":"/attempt"}},
	{"name":"slow","preset":"replicate","secret_file":"acme","authority":"poll","poll":{"secret_file":"acme"},
	 "body":{"job":"/job"}},
	{"name":"plain","scheme":"hmac-sha256","secret_file":"plain",
	 "signature":{"header":"X-Signature","encoding":"hex","timestamp":"none","content":"{body}"},
	 "body":{"id":"/id","status":"/status"},"outcomes":{"failed":"failed"}},
	{"name":"mute","poll":{"url":"https://mute.example/{id}",
	 "body":{"status":"/s"},"outcomes":{"y":"failed"}}}]}`

var secrets = map[string]string{
	"acme":  "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	"rival": "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	"plain": "a-plain-secret-of-some-length",
}

// loadProviders loads the providers of these tests.
func loadProviders(t testing.TB) *providers.Set {
	t.Helper()
	folder := t.TempDir()
	for name, secret := range secrets {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "providers.json")
	if err := os.WriteFile(path, []byte(providersFile), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := providers.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// eachCallee runs a test on a server with these providers, on each engine.
func eachCallee(t *testing.T, test func(s *site)) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		test(start(t, dsn, server.Options{Providers: loadProviders(t)}))
	})
}

// signed gives the headers of a callback that a secret's owner sends now.
func signed(t testing.TB, secret, body string) (pairs []string) {
	t.Helper()
	keys, err := webhook.ParseKeys(webhook.Standard, secrets[secret])
	if err != nil {
		t.Fatal(err)
	}
	h, err := webhook.Sign(keys, "msg_1", time.Now(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range h {
		pairs = append(pairs, name, values[0])
	}
	return pairs
}

// callback sends a callback as a provider does, and gives the status and the verdict or code.
func (s *site) callback(provider, secret, body string) string {
	s.t.Helper()
	return said(s.t, s.call("POST", "/v1/callbacks/"+provider, body, signed(s.t, secret, body)...))
}

// said gives what a callback was answered with, as text.
func said(t testing.TB, r reply) string {
	t.Helper()
	var a struct {
		Verdict, Code string
		Polled        bool
	}
	r.json(t, &a)
	text := fmt.Sprint(r.status, " ", a.Verdict, a.Code)
	if a.Polled {
		text += "polled"
	}
	return text
}

// submitted makes a job that a provider has taken as its upstream id; none if that is empty.
func (s *site) submitted(job, provider, upstream string) {
	s.t.Helper()
	s.grant("alice", job, "7")
	s.must("POST", "/v1/jobs", `{"id":"`+job+`","owner":"alice","cost":7}`)
	s.must("POST", "/v1/jobs/"+job+"/attempts", `{"provider":"`+provider+`"}`)
	if upstream != "" {
		s.must("POST", "/v1/jobs/"+job+"/attempts/1/accepted", `{"upstream_id":"`+upstream+`"}`)
	}
}

// stands checks a job's status and what it cost; nil while it is open.
func (s *site) stands(job, want string) {
	s.t.Helper()
	j, err := s.ledger.Job(s.t.Context(), job)
	if err != nil {
		s.t.Fatal(err)
	}
	got := string(j.Status)
	if j.SettledCost != nil {
		got += fmt.Sprint(" ", *j.SettledCost, " ", *j.SettledSource)
	}
	if got != want {
		s.t.Errorf("job %s is %s, want %s", job, got, want)
	}
}
