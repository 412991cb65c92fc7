package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jobledger/internal/server"
	"jobledger/ledger"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

// TestDescription: docs/openapi.json is what the server serves.
func TestDescription(t *testing.T) {
	s := sqlite(t)
	got := s.must("GET", "/openapi.json", "").text
	path := filepath.Join("..", "..", "docs", "openapi.json")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("docs/openapi.json is not what is served (%v): run the test with -update", err)
	}
	if again := server.New(s.ledger, server.Options{}).Description(); !bytes.Equal(again, want) {
		t.Error("two servers describe themselves differently")
	}
}

// described is what the tests need of the description.
type described struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Summary     string
		Parameters  []struct {
			Name, In string
			Required bool
			Schema   schema
		}
		RequestBody *struct {
			Content map[string]struct{ Schema schema }
		} `json:"requestBody"`
		Responses map[string]any
	}
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Enum       []any
	Minimum    *float64
	Maximum    *float64
	Properties map[string]schema
	Required   []string
}

func describe(t testing.TB, s *site) (d described) {
	t.Helper()
	s.must("GET", "/openapi.json", "").json(t, &d)
	return d
}

// TestEveryOperationIsDescribed: each has a summary and an answer, and every body a schema with members.
func TestEveryOperationIsDescribed(t *testing.T) {
	d := describe(t, sqlite(t))
	operations := 0
	for path, item := range d.Paths {
		for method, op := range item {
			operations++
			if op.Summary == "" || op.OperationID == "" || op.Responses["default"] == nil || len(op.Responses) != 2 {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			if op.RequestBody == nil {
				continue
			}
			ref := op.RequestBody.Content["application/json"].Schema.Ref
			body := d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
			if len(body.Properties) == 0 {
				t.Errorf("%s %s: the body is %q", method, path, ref)
			}
		}
	}
	if operations < 22 {
		t.Errorf("got %d operations", operations)
	}
	for _, name := range []string{"Job", "Entry", "Lot", "Unresolved"} {
		if got, err := json.Marshal(d.Components.Schemas[name].Properties); err != nil ||
			!strings.Contains(string(got), `["string","null"]`) {
			t.Errorf("%s has no member that may be null: %s", name, got)
		}
	}
}

// TestDocs: the page for people comes from the binary alone, runs nothing, and names every operation and
// every code.
func TestDocs(t *testing.T) {
	s := sqlite(t)
	r := s.must("GET", "/docs", "")
	for path, item := range describe(t, s).Paths {
		for method := range item {
			if !strings.Contains(r.text, strings.ToUpper(method)+" "+path+"</code></h2>") {
				t.Errorf("the page lacks %s %s", method, path)
			}
		}
	}
	for _, info := range ledger.Codes {
		if !strings.Contains(r.text, `<tr id="`+string(info.Code)+`">`) {
			t.Errorf("the page lacks %s", info.Code)
		}
	}
	policy := r.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'") {
		t.Errorf("the policy is %q", policy)
	}
	foreign := regexp.MustCompile(`(?i)<script|https?://|style=|\bon[a-z]+=|url\(`)
	if found := foreign.FindString(r.text); found != "" {
		t.Errorf("the page has %q", found)
	}
	s.must("GET", "/style.css", "")
	if r := s.must("GET", "/problems/BUSY", ""); !strings.Contains(r.text, `<tr id="BUSY">`) {
		t.Error("a problem's type leads nowhere")
	}
}

// TestMetrics: what happened is counted, and no id is in it.
func TestMetrics(t *testing.T) {
	s := sqlite(t)
	s.grant("alice-the-owner", "key-1", "100")
	s.must("POST", "/v1/endpoints", `{"url":"http://127.0.0.1:1/","secret":"`+secret+`"}`)
	s.must("POST", "/v1/jobs", `{"id":"job-the-first","owner":"alice-the-owner","cost":7}`)
	for range 3 {
		s.must("POST", "/v1/jobs/job-the-first/reports", `{"outcome":"failed","source":"poll"}`)
	}
	s.call("POST", "/v1/jobs/job-the-first/reports", `{"outcome":"failed","attempt":4,"source":"callback"}`)
	s.call("GET", "/nowhere/alice-the-owner", "")
	text := s.must("GET", "/metrics", "").text
	for _, line := range []string{
		`jobledger_http_requests_total{route="POST /v1/jobs/{id}/reports",status="200"} 3`,
		`jobledger_http_requests_total{route="POST /v1/jobs/{id}/reports",status="409"} 1`,
		`jobledger_http_requests_total{route="none",status="404"} 1`,
		`jobledger_reports_total{source="poll",verdict="won"} 1`,
		`jobledger_reports_total{source="poll",verdict="duplicate"} 2`,
		`jobledger_reports_total{source="callback",verdict="stale"} 1`,
		`jobledger_http_request_seconds_count{route="POST /v1/jobs"} 1`,
		`jobledger_jobs_open 0`, `jobledger_deliveries{status="pending"} 1`, `jobledger_polls 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the figures lack %s", line)
		}
	}
	for _, id := range []string{"alice", "job-the", "key-1"} {
		if strings.Contains(text, id) {
			t.Errorf("the figures name %s", id)
		}
	}
}
