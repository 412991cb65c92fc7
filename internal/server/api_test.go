package server_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/internal/cli"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// secret is one of an endpoint.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// TestNouns walks through every operation, on both engines.
func TestNouns(t *testing.T) {
	const endpoint = `{"url":"http://127.0.0.1:1/hook","secret":"` + secret + `","types":["job.completed"]}`
	dbtest.Each(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, server.Options{})
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string // members of the answer, as a path and the value there
		}{
			{"POST", "/v1/grants", `{"owner":"alice","amount":100,"key":"k1","expires":"30d"}`, 201, "replayed false"},
			{"POST", "/v1/grants", `{"owner":"alice","amount":100,"key":"k1","expires":"30d"}`, 201, "replayed true"},
			{"GET", "/v1/owners", ``, 200, "items"},
			{"GET", "/v1/owners/alice/balance?lots=true", ``, 200, "available 100"},
			{"GET", "/v1/owners/alice/balance?at=-1h", ``, 200, "available 0"},
			{"POST", "/v1/jobs", `{"id":"j1","owner":"alice","cost":7,"metadata":{"a":1}}`, 201, "balance.held 7"},
			{"POST", "/v1/jobs/j1/attempts", `{"provider":"acme"}`, 201, "attempt 1"},
			{"POST", "/v1/jobs/j1/attempts/1/uncertain", `{"reason":"reset"}`, 200, "job.submission uncertain"},
			{"GET", "/v1/reconcile", ``, 200, "items"},
			{"POST", "/v1/jobs/j1/reconcile/accept", `{"upstream_id":"u1","evidence":"seen","operator":"sue"}`, 200,
				"job.submission accepted"},
			{"GET", "/v1/jobs/j1", ``, 200, "job.submission accepted"},
			{"POST", "/v1/jobs/j1/reports", `{"outcome":"completed","attempt":1,"upstream_id":"u1","cost":5,` +
				`"source":"callback"}`, 200, "verdict won"},
			{"POST", "/v1/jobs/j1/reports", `{"outcome":"failed","source":"poll"}`, 200, "verdict conflict"},
			{"GET", "/v1/jobs/j1/explain", ``, 200, "job.settled_cost 5"},
			{"POST", "/v1/jobs", `{"id":"j2","owner":"alice","cost":1,"mode":"charge"}`, 201, "job.mode charge"},
			{"POST", "/v1/jobs/j2/cancel", ``, 200, "returned 1"},
			{"POST", "/v1/jobs/j2/cancel", `{"reason":"again"}`, 200, "won false"},
			{"POST", "/v1/jobs", `{"id":"j3","owner":"alice","cost":1}`, 201, "job.attempt 0"},
			{"POST", "/v1/jobs/j3/attempts", `{"provider":"acme"}`, 201, "attempt 1"},
			{"POST", "/v1/jobs/j3/attempts/1/rejected", `{"evidence":"e","retry":true}`, 200, "job.status processing"},
			{"POST", "/v1/jobs/j3/attempts", `{"provider":"acme"}`, 201, "attempt 2"},
			{"POST", "/v1/jobs/j3/attempts/2/accepted", `{"upstream_id":"u2"}`, 200, "job.submission accepted"},
			{"POST", "/v1/jobs/j3/reconcile/reject", `{"evidence":"e","operator":"sue"}`, 200, "settlement.won true"},
			{"GET", "/v1/jobs?owner=alice&status=failed", ``, 200, "items"},
			{"POST", "/v1/sweeps", ``, 200, "timed_out 0"},
			{"POST", "/v1/revocations", `{"owner":"alice","amount":5,"key":"r1","reason":"charged back"}`, 201,
				"balance.expired 5"},
			{"GET", "/v1/entries?job=j1", ``, 200, "items"},
			{"GET", "/v1/events?job=j1", ``, 200, "items"},
			{"POST", "/v1/endpoints", endpoint, 201, "endpoint.url http://127.0.0.1:1/hook"},
			{"POST", "/v1/endpoints", endpoint, 201, "replayed true"},
			{"POST", "/v1/events/settled:j1/replay", ``, 200, "items"},
			{"GET", "/v1/deliveries?status=pending", ``, 200, "items"},
			{"GET", "/v1/endpoints", ``, 200, "items"},
			{"GET", "/v1/owners/alice/entries?limit=3", ``, 200, "items"},
			{"GET", "/v1/audit?quiescent=true", ``, 200, "ok true"},
			{"GET", "/healthz", ``, 200, ""},
			{"GET", "/readyz", ``, 200, ""},
		} {
			r := s.call(c.method, c.path, c.body)
			path, want, _ := strings.Cut(c.want, " ")
			if r.status != c.status {
				t.Fatalf("%s %s: %d %s", c.method, c.path, r.status, r.text)
			}
			if path == "" {
				continue
			}
			got, err := json.Marshal(r.member(t, strings.Split(path, ".")...))
			if text := strings.Trim(string(got), `"`); err != nil || (want != "" && text != want) || text == "null" {
				t.Errorf("%s %s: %s is %s, want %s", c.method, c.path, path, text, want)
			}
		}
	})
}

// TestSameAsTheCommandLine: what is read over HTTP is what the command line prints, member by member.
func TestSameAsTheCommandLine(t *testing.T) {
	dsn := dbtest.SQLite(t)
	s := start(t, dsn, server.Options{})
	s.grant("alice", "k1", "100")
	s.grant("bob", "k2", "9007199254740991")
	s.must("POST", "/v1/jobs", `{"id":"j1","owner":"alice","cost":7}`)
	s.must("POST", "/v1/jobs/j1/attempts", `{"provider":"acme"}`)
	s.must("POST", "/v1/jobs", `{"id":"j2","owner":"alice","cost":7,"deadline":"2030-01-01T00:00:00Z"}`)
	s.must("POST", "/v1/jobs/j2/reports", `{"outcome":"completed","cost":3,"reason":"été"}`)
	for path, command := range map[string]string{
		"/v1/owners":                            "balance",
		"/v1/owners/alice/balance?lots=true":    "balance alice --lots",
		"/v1/owners/bob/balance":                "balance bob",
		"/v1/owners/alice/entries":              "entries --owner alice",
		"/v1/entries?job=j2":                    "entries --job j2",
		"/v1/jobs":                              "job list",
		"/v1/jobs?status=completed&owner=alice": "job list --status completed --owner alice",
		"/v1/jobs/j2":                           "job show j2",
		"/v1/jobs/j2/explain":                   "job explain j2",
		"/v1/reconcile":                         "reconcile list",
		"/v1/audit":                             "audit",
		"/v1/owners/alice/balance?at=" + url.QueryEscape("2020-01-01T00:00:00+01:00"): "balance alice --at " +
			"2020-01-01T00:00:00+01:00",
	} {
		var stdout, stderr bytes.Buffer
		exit := cli.Run(t.Context(), cli.Program{
			Args:   append([]string{"jobledger", "--json", "--db", dsn}, strings.Fields(command)...),
			Stdout: &stdout, Stderr: &stderr,
		})
		var got, want any
		s.must("GET", path, "").json(t, &got)
		if err := json.Unmarshal(stdout.Bytes(), &want); err != nil || exit != 0 {
			t.Fatalf("%s: exit %d, %s, %v", command, exit, stderr.String(), err)
		}
		for _, document := range []any{got, want} { // an age moves between the two
			if items, ok := document.(map[string]any)["items"].([]any); ok && path == "/v1/reconcile" {
				delete(items[0].(map[string]any), "age_seconds")
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v\n%s:\n%v", path, got, command, want)
		}
	}
}

// TestPages: page by page, every item comes once, and only a full page names a next one.
func TestPages(t *testing.T) {
	s := sqlite(t)
	s.grant("alice", "k1", "100")
	s.grant("bob", "k2", "100")
	for _, id := range []string{"a/b", "c d", "%2F", "é", "."} {
		s.must("POST", "/v1/jobs", `{"id":"`+id+`","owner":"alice","cost":7}`)
		if got := s.must("GET", "/v1/jobs/"+strings.ReplaceAll(url.PathEscape(id), ".", "%2E"), "").
			member(t, "job", "id"); got != id {
			t.Errorf("job %q: got %v", id, got)
		}
	}
	s.must("POST", "/v1/endpoints", `{"url":"http://127.0.0.1:1/","secret":"`+secret+`"}`)
	for _, id := range []string{"c%20d", "%2E", "%25%32%46"} {
		s.must("POST", "/v1/jobs/"+id+"/cancel", "")
	}
	for path, want := range map[string]int{
		"/v1/jobs?owner=alice": 5, "/v1/owners/alice/entries?": 9, "/v1/entries?": 10, "/v1/owners?": 2,
		"/v1/events?": 3, "/v1/deliveries?": 3,
		"/v1/reconcile?": 0,
	} {
		seen, after := map[string]bool{}, ""
		for pages := 0; ; pages++ {
			r := s.must("GET", path+"&limit=2&after="+url.QueryEscape(after), "")
			items := r.member(t, "items").([]any)
			for _, item := range items {
				text, err := json.Marshal(item)
				if err != nil || seen[string(text)] {
					t.Errorf("%s: %s comes again", path, text)
				}
				seen[string(text)] = true
			}
			next, more := r.member(t, "next").(string)
			if after = next; more != (len(items) == 2) || pages > 5 {
				t.Fatalf("%s: %d items, next %q", path, len(items), next)
			}
			if !more {
				break
			}
		}
		if len(seen) != want {
			t.Errorf("%s: got %d items, want %d", path, len(seen), want)
		}
	}
}

// TestIdempotencyKey: the key of a write without a natural one is in the header or the body, and both agree.
func TestIdempotencyKey(t *testing.T) {
	s := sqlite(t)
	const grant = `{"owner":"alice","amount":5`
	for _, c := range []struct {
		header, member string
		want           any // replayed, or the status of a refusal
	}{
		{`"k1"`, ``, false}, {`k1`, ``, true}, {``, `k1`, true}, {`k1`, `k1`, true}, {`"k1"`, `k1`, true},
		{`k 2`, ``, false}, {``, ``, 400}, {`k1`, `k2`, 422}, {`"k1`, ``, 422}, {`"k"1"`, ``, 422}, {`""`, ``, 400},
		{strings.Repeat("k", 256), ``, 422},
	} {
		body := grant + `}`
		if c.member != "" {
			body = grant + `,"key":"` + c.member + `"}`
		}
		var header []string
		if c.header != "" {
			header = []string{"Idempotency-Key", c.header}
		}
		if status, refused := c.want.(int); refused {
			s.refused(status, ledger.Invalid, "key: ", "POST", "/v1/grants", body, header...)
		} else if got := s.must("POST", "/v1/grants", body, header...).member(t, "replayed"); got != c.want {
			t.Errorf("header %s, member %s: replayed %v", c.header, c.member, got)
		}
	}
	r := s.refused(409, ledger.IdempotencyMismatch, "amount", "POST", "/v1/grants",
		`{"owner":"alice","amount":6}`, "Idempotency-Key", "k1")
	if got := r.member(t, "fields"); !reflect.DeepEqual(got, []any{"amount"}) {
		t.Errorf("got %v", got)
	}
}
