package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// job begins a body that lacks its cost.
const job = `{"id":"x","owner":"alice","cost":`

var refusals = []struct {
	status             int
	code               ledger.Code
	detail             string
	method, path, body string
}{
	{422, ledger.Invalid, `cost: "5.0" is not an amount`, "POST", "/v1/jobs", job + `5.0}`},
	{422, ledger.Invalid, `cost: "1e3" is not an amount`, "POST", "/v1/jobs", job + `1e3}`},
	{422, ledger.Invalid, `cost: "-1" is not an amount`, "POST", "/v1/jobs", job + `-1}`},
	{422, ledger.Invalid, `cost: 0 is out of range`, "POST", "/v1/jobs", job + `0}`},
	{422, ledger.Invalid, `cost: "\"5\"" is not an amount`, "POST", "/v1/jobs", job + `"5"}`},
	{422, ledger.Invalid, `cost: "null" is not an amount`, "POST", "/v1/jobs", job + `null}`},
	{422, ledger.Invalid, `cost: "true" is not an amount`, "POST", "/v1/jobs", job + `true}`},
	{422, ledger.Invalid, `cost: "[5]" is not an amount`, "POST", "/v1/jobs", job + `[5]}`},
	{422, ledger.Invalid, `cost: "9007199254740992" is not`, "POST", "/v1/jobs", job + `9007199254740992}`},
	{422, ledger.Invalid, `cost: "" is not an amount`, "POST", "/v1/jobs", `{"id":"x","owner":"alice"}`},
	{422, ledger.Invalid, `id: is empty`, "POST", "/v1/jobs", `{}`},
	{422, ledger.Invalid, `mode: "free"`, "POST", "/v1/jobs", job + `5,"mode":"free"}`},
	{422, ledger.Invalid, `metadata: is not a JSON object`, "POST", "/v1/jobs", job + `5,"metadata":[1]}`},
	{422, ledger.Invalid, `deadline: "soon" is neither`, "POST", "/v1/jobs", job + `5,"deadline":"soon"}`},
	{422, ledger.Invalid, `outcome: "done"`, "POST", "/v1/jobs/j1/reports", `{"outcome":"done"}`},
	{422, ledger.Invalid, `source: "sweep"`, "POST", "/v1/jobs/j1/reports",
		`{"outcome":"failed","source":"sweep"}`},
	{422, ledger.Invalid, `cost: 8 is more`, "POST", "/v1/jobs/j1/reports", `{"outcome":"completed","cost":8}`},
	{422, ledger.Invalid, `attempt: "0"`, "POST", "/v1/jobs/j1/attempts/0/accepted", `{"upstream_id":"u"}`},
	{422, ledger.Invalid, `attempt: "x"`, "POST", "/v1/jobs/j1/attempts/x/accepted", `{"upstream_id":"u"}`},
	{422, ledger.Invalid, `operator: is empty`, "POST", "/v1/jobs/j1/reconcile/reject", `{"evidence":"e"}`},
	{422, ledger.Invalid, `limit: "0"`, "GET", "/v1/jobs?limit=0", ``},
	{422, ledger.Invalid, `limit: "1001"`, "GET", "/v1/jobs?limit=1001", ``},
	{422, ledger.Invalid, `limit: "+5"`, "GET", "/v1/jobs?limit=%2B5", ``},
	{422, ledger.Invalid, `status: "done"`, "GET", "/v1/jobs?status=done", ``},
	{422, ledger.Invalid, `after: "\x00"`, "GET", "/v1/jobs?after=%00", ``},
	{422, ledger.Invalid, `owner: is not valid UTF-8`, "GET", "/v1/jobs?owner=%ff", ``},
	{422, ledger.Invalid, `lots: "1" is neither`, "GET", "/v1/owners/alice/balance?lots=1", ``},
	{422, ledger.Invalid, `lots: are shown`, "GET", "/v1/owners/alice/balance?lots=true&at=-1h", ``},
	{422, ledger.Invalid, `limits: there is no such parameter`, "GET", "/v1/jobs?limits=5", ``},
	{422, ledger.Invalid, `limit: is given 2 times`, "GET", "/v1/jobs?limit=5&limit=6", ``},
	{400, ledger.Invalid, `query is malformed`, "GET", "/v1/jobs?limit=%zz", ``},
	{400, ledger.Invalid, `body is required`, "POST", "/v1/jobs", ``},
	{413, ledger.Invalid, `too large`, "POST", "/v1/jobs", job + strings.Repeat("5", 64<<10) + `}`},
	{404, ledger.NotFound, `nobody`, "GET", "/v1/owners/nobody/balance", ``},
	{404, ledger.NotFound, `no job "j9"`, "GET", "/v1/jobs/j9", ``},
	{404, ledger.NotFound, `see /docs`, "GET", "/v2/jobs", ``},
	{404, ledger.NotFound, `see /docs`, "GET", "/v1/jobs/", ``},
	{405, ledger.Invalid, `DELETE is not possible here, only GET, HEAD`, "DELETE", "/v1/jobs/j1", ``},
	{402, ledger.InsufficientCredits, `93 credits`, "POST", "/v1/jobs", job + `94}`},
	{409, ledger.IdempotencyMismatch, `differs in cost`, "POST", "/v1/jobs",
		`{"id":"j1","owner":"alice","cost":8}`},
	{409, ledger.ReconciliationRequired, `reconcile`, "POST", "/v1/jobs/j1/cancel", ``},
	{409, ledger.StaleAttempt, `is about 2`, "POST", "/v1/jobs/j1/reports", `{"outcome":"failed","attempt":2}`},
	{409, ledger.NotAllowed, `attempt 1 is open`, "POST", "/v1/jobs/j1/attempts", `{"provider":"acme"}`},
}

// TestRefusals: every refusal is one problem that names what is wrong, and writes nothing.
func TestRefusals(t *testing.T) {
	s := sqlite(t)
	s.grant("alice", "k1", "100")
	s.must("POST", "/v1/jobs", `{"id":"j1","owner":"alice","cost":7}`)
	s.must("POST", "/v1/jobs/j1/attempts", `{"provider":"acme"}`)
	for _, c := range refusals {
		s.refused(c.status, c.code, c.detail, c.method, c.path, c.body)
	}
	r := s.call("POST", "/v1/jobs", job+`94}`)
	if a, n := r.member(t, "available"), r.member(t, "requested"); a != 93.0 || n != 94.0 {
		t.Errorf("available %v, requested %v", a, n)
	}
	if got := s.call("DELETE", "/v1/jobs/j1", "").header.Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow: %q", got)
	}
	if got := s.must("GET", "/v1/jobs", "").member(t, "items").([]any); len(got) != 1 {
		t.Errorf("the refused requests made jobs: %v", got)
	}
}

// TestStrictBodies: a body that could be read in two ways is not read.
func TestStrictBodies(t *testing.T) {
	s := sqlite(t)
	s.grant("alice", "k1", "100")
	for body, detail := range map[string]string{
		`{"id":"x","owner":"alice","cost":5,"cost":7}`:     `cost`,
		`{"id":"x","owner":"alice","Cost":5}`:              `Cost`,
		`{"id":"x","owner":"alice","cost":5,"price":7}`:    `price`,
		`{"id":"x","owner":"alice","cost":5} {}`:           ``,
		`{"id":"x","owner":"alice","cost":5}x`:             ``,
		`{"id":"x","owner":"alice","cost":5`:               ``,
		`{"id":5,"owner":"alice","cost":5}`:                `id`,
		`[]`:                                               ``,
		`null`:                                             ``,
		`"x"`:                                              ``,
		"{\"id\":\"\xff\",\"owner\":\"alice\",\"cost\":5}": ``,
		`{"id":"x","owner":"alice","cost":5,"metadata":{"a":1,"a":2}}`: `a`,
		strings.Repeat(`[`, 20000):                                     ``,
	} {
		r := s.call("POST", "/v1/jobs", body)
		if code := r.member(t, "code"); r.status/100 != 4 || code != "INVALID" ||
			!strings.Contains(fmt.Sprint(r.member(t, "detail")), detail) {
			t.Errorf("%.60s: got %d %s", body, r.status, r.text)
		}
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "a/json; x", "json"} {
		s.refused(415, ledger.Invalid, "application/json", "POST", "/v1/jobs", job+`5}`, "Content-Type", kind)
	}
	s.must("POST", "/v1/jobs", job+`5}`, "Content-Type", "application/json; charset=utf-8")
}

// raw sends bytes to a server and gives the answer's head.
func (s *site) raw(request string) *http.Response {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		s.t.Fatal(err)
	}
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.CloseWrite() // nothing more comes
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Body.Close()
	return r
}

// TestBrokenRequests: what is not even HTTP is the client's fault, too.
func TestBrokenRequests(t *testing.T) {
	s := sqlite(t)
	const head = "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
	for request, want := range map[string]int{
		head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n":                                      400,
		head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"":                                      400,
		head + "Content-Length: 50\r\n\r\n{}":                                                        400,
		head + "Content-Length: -1\r\n\r\n{}":                                                        400,
		"GET /v1/jobs HTTP/1.1\r\n\r\n":                                                              400,
		"GET /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 32<<10) + "\r\n\r\n": 431,
	} {
		if got := s.raw(request); got.StatusCode != want {
			t.Errorf("%.90q: got %d, want %d", request, got.StatusCode, want)
		}
	}
}

// TestRequestID: a client's id is kept if it can stand in a log as it is.
func TestRequestID(t *testing.T) {
	s := sqlite(t)
	for id, kept := range map[string]bool{
		"abc-1_2.3:4": true, "a b": false, `"x"`: false, strings.Repeat("x", 129): false, "": false,
	} {
		got := s.call("GET", "/healthz", "", "X-Request-ID", id).header.Get("X-Request-ID")
		if (got == id) != kept || got == "" {
			t.Errorf("%q: got %q", id, got)
		}
		if kept && !strings.Contains(s.log.String(), `"request_id":"`+id+`"`) {
			t.Errorf("the log does not name %s", id)
		}
	}
}
