package server_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

// The first callback settles its job, and all that follow are told so with a 200: a replay, a duplicate,
// another outcome, and one that brings no news.
func TestCallbackSettles(t *testing.T) {
	eachCallee(t, func(s *site) {
		s.submitted("j", "acme", "u1")
		for _, c := range [][2]string{
			{`{"id":"u1","status":"starting"}`, "200 "},
			{`{"id":"u1","status":"a new word"}`, "200 "},
			{`{"id":"u1","status":"succeeded","cost":5}`, "200 won"},
			{`{"id":"u1","status":"succeeded","cost":5}`, "200 duplicate"},
			{`{"id":"u1","status":"succeeded","cost":4,"job":"j","attempt":1}`, "200 duplicate"},
			{`{"id":"u1","status":"failed"}`, "200 conflict"},
			{`{"id":"u1","status":"processing"}`, "200 "},
		} {
			if got := s.callback("acme", "acme", c[0]); got != c[1] {
				t.Errorf("%s: got %s, want %s", c[0], got, c[1])
			}
		}
		s.stands("j", "completed 5 callback")
		s.submitted("k", "plain", "u1")
		body := `{"id":"u1","status":"failed"}`
		h := hmac.New(sha256.New, []byte(secrets["plain"]))
		h.Write([]byte(body))
		for _, want := range []string{"200 won", "200 duplicate"} { // the same bytes again, years later
			r := s.call("POST", "/v1/callbacks/plain", body, "X-Signature", "sha256="+hex.EncodeToString(h.Sum(nil)))
			if got := said(t, r); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		s.stands("k", "failed 0 callback")
		metrics := s.call("GET", "/metrics", "").text
		if !strings.Contains(metrics, `jobledger_reports_total{source="callback",verdict="won"} 2`) {
			t.Error("the callbacks are not counted")
		}
	})
}

// B94, B95, B96, B98, B99: what is not signed gets one answer, whatever is wrong, and changes nothing; the
// log has the cause.
func TestB99UnsignedCallbacks(t *testing.T) {
	eachCallee(t, func(s *site) {
		s.submitted("j", "acme", "u1")
		body := `{"id":"u1","status":"succeeded"}`
		change := func(name, value string) []string {
			return append(slices.Clone(signed(t, "acme", body)), name, value)
		}
		late := fmt.Sprint(time.Now().Add(-time.Hour).Unix())
		first := ""
		for _, c := range []struct {
			cause   webhook.Cause
			path    string
			headers []string
		}{
			{webhook.BadSignature, "acme", signed(t, "rival", body)},
			{webhook.BadSignature, "acme", signed(t, "acme", body+" ")},
			{webhook.BadSignature, "acme", change("webhook-timestamp", fmt.Sprint(time.Now().Unix()-7))},
			{webhook.BadSignature, "acme", change("webhook-id", "msg_2")},
			{webhook.Stale, "acme", change("webhook-timestamp", late)},
			{webhook.Early, "acme", change("webhook-timestamp", "9223372036854775807")},
			{webhook.MalformedTimestamp, "acme", change("webhook-timestamp", "NaN")},
			{webhook.MissingTimestamp, "acme", change("webhook-timestamp", "")},
			{webhook.MissingSignature, "acme", change("webhook-signature", "")},
			{webhook.MissingHeader, "acme", change("webhook-id", "")},
			{webhook.MalformedSignature, "acme", change("webhook-signature", "v1,é")},
			{webhook.MalformedSignature, "acme", change("webhook-signature", strings.Repeat("v1,= ", 1000))},
			{webhook.MalformedHeader, "acme", change("webhook-signature", strings.Repeat("v", 10_000))},
			{webhook.UnknownKey, "acme", change("webhook-signature", "v1a,AAAA")},
			{webhook.UnknownKey, "mute", signed(t, "acme", body)},
			{webhook.MissingSignature, "plain", nil},
			{webhook.MalformedSignature, "plain", []string{"X-Signature", "v1=é"}},
		} {
			r := s.refused(http.StatusUnauthorized, ledger.Unauthenticated, "did not sign this", "POST",
				"/v1/callbacks/"+c.path, body, c.headers...)
			id := r.header.Get("X-Request-ID")
			text := strings.ReplaceAll(r.text, id, "")
			if first == "" {
				first = text
			}
			if text != first || r.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s is answered otherwise: %s", c.cause, r.text)
			}
			if !logged(s, id, `"cause":"`+string(c.cause)+`: `) {
				t.Errorf("%s is not in the log", c.cause)
			}
		}
		s.stands("j", "processing")
		for _, secret := range secrets {
			if strings.Contains(s.log.String(), secret) {
				t.Error("a secret is in the log")
			}
		}
	})
}

// logged waits for the line of a request, and tells whether it has a text.
func logged(s *site, id, text string) bool {
	for range 500 {
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, id) {
				return strings.Contains(line, text)
			}
		}
		time.Sleep(10 * time.Millisecond) // the line is written after the answer is sent
	}
	return false
}

// B100: an authentic body that could be understood in two ways is refused, with no effect.
func TestB100MalformedCallbacks(t *testing.T) {
	eachCallee(t, func(s *site) {
		s.submitted("j", "acme", "u1")
		for _, c := range [][2]string{
			{`{"id":"u1","status":"failed","Status":"succeeded"}`, "400 INVALID"},
			{`{"id":"u1","status":"failed","ſtatus":"succeeded"}`, "400 INVALID"},
			{`{"id":"u1","ſtatus":"failed"}`, "400 INVALID"},
			{`{"id":"u1","status":"failed","status":"succeeded"}`, "400 INVALID"},
			{`{"id":"u1","status":"failed"}{"id":"u1"}`, "400 INVALID"},
			{strings.Repeat("[", 100_000), "400 INVALID"},
			{`{"id":"u1","status":"failed"}` + strings.Repeat(" ", 2<<20), "413 INVALID"},
			{`{"id":"u1","status":"fai`, "400 INVALID"},
			{"{\"id\":\"u1\",\"status\":\"failed\xff\"}", "400 INVALID"},
			{`{"id":"u1"}`, "422 INVALID"},
			{`{"status":"failed"}`, "422 INVALID"},
			{`{"id":"u1","status":"succeeded","cost":8}`, "422 INVALID"}, // the job costs 7
			{`{"id":"u1","status":"succeeded","cost":0.5}`, "422 INVALID"},
			{`[]`, "422 INVALID"},
			{``, "400 INVALID"},
		} {
			if got := s.callback("acme", "acme", c[0]); got != c[1] {
				t.Errorf("%.60s: got %s, want %s", c[0], got, c[1])
			}
		}
		s.stands("j", "processing")
	})
}

// B101: who signs for one provider cannot speak of another's jobs, nor of another attempt than the id's.
func TestB101ForeignCallbacks(t *testing.T) {
	eachCallee(t, func(s *site) {
		s.submitted("j", "acme", "u1")
		s.submitted("k", "rival", "u1")
		for _, c := range []struct{ provider, secret, body, want string }{
			{"rival", "rival", `{"id":"u1","status":"succeeded","job":"j"}`, "403 FORBIDDEN"},
			{"rival", "rival", `{"id":"u9","status":"succeeded","job":"j","attempt":1}`, "403 FORBIDDEN"},
			{"rival", "acme", `{"id":"u1","status":"succeeded"}`, "401 UNAUTHENTICATED"},
			{"acme", "rival", `{"id":"u1","status":"succeeded"}`, "401 UNAUTHENTICATED"},
			{"acme", "acme", `{"id":"u1","status":"succeeded","attempt":2}`, "403 FORBIDDEN"},
			{"acme", "acme", `{"id":"u1","status":"succeeded","job":"k"}`, "403 FORBIDDEN"},
			{"acme", "acme", `{"id":"u2","status":"succeeded"}`, "404 NOT_FOUND"},
			{"acme", "acme", `{"status":"succeeded","job":"nobody"}`, "404 NOT_FOUND"},
			{"nobody", "acme", `{"id":"u1","status":"succeeded"}`, "404 NOT_FOUND"},
			{"Acme", "acme", `{"id":"u1","status":"succeeded"}`, "404 NOT_FOUND"},
		} {
			if got := s.callback(c.provider, c.secret, c.body); got != c.want {
				t.Errorf("%+v: got %s", c, got)
			}
		}
		s.stands("j", "processing")
		s.stands("k", "processing")
		if r := s.call("GET", "/v1/callbacks/acme", ""); r.status != http.StatusMethodNotAllowed {
			t.Errorf("got %d %s", r.status, r.text)
		}
	})
}

// B46: a callback that comes before the acceptance was recorded is bound by our id in its signed body; one
// without it is asked for again. What stands in the address counts for nothing.
func TestB46EarlyCallbacks(t *testing.T) {
	eachCallee(t, func(s *site) {
		s.submitted("j", "acme", "")
		body := `{"id":"u1","status":"succeeded"}`
		r := s.call("POST", "/v1/callbacks/acme?job=j&attempt=1", body, signed(t, "acme", body)...)
		if said(t, r) != "503 BUSY" || r.header.Get("Retry-After") == "" {
			t.Errorf("got %d %s, %v", r.status, r.text, r.header)
		}
		s.stands("j", "processing")
		s.must("POST", "/v1/jobs/j/attempts/1/accepted", `{"upstream_id":"u1"}`)
		if got := s.callback("acme", "acme", body); got != "200 won" {
			t.Errorf("sent again: %s", got)
		}
		s.submitted("k", "acme", "")
		if got := s.callback("acme", "acme", `{"id":"u2","status":"failed","job":"k"}`); got != "200 won" {
			t.Errorf("with our id: %s", got)
		}
		s.stands("k", "failed 0 callback")
		if a, err := s.ledger.FindAttempt(t.Context(), "acme", "u2"); err != nil || a.Job != "k" {
			t.Errorf("the id is not kept: %+v, %v", a, err)
		}
	})
}

// A report of an earlier attempt, or under another id than the one on file, will never be another: it gets
// 200, so that it does not come for ever, and is kept.
func TestStaleCallbacks(t *testing.T) {
	eachCallee(t, func(s *site) {
		s.submitted("j", "acme", "u1")
		s.submitted("k", "acme", "")
		s.must("POST", "/v1/jobs/k/attempts/1/rejected", `{"evidence":"busy","retry":true}`)
		s.must("POST", "/v1/jobs/k/attempts", `{"provider":"acme"}`)
		s.must("POST", "/v1/jobs/k/attempts/2/accepted", `{"upstream_id":"u2"}`)
		for _, body := range []string{
			`{"id":"u9","status":"failed","job":"j","attempt":1}`, `{"status":"failed","job":"k","attempt":1}`,
			`{"status":"failed","job":"k"}`,
		} {
			if got := s.callback("acme", "acme", body); got != "200 stale" {
				t.Errorf("%s: got %s", body, got)
			}
		}
		s.stands("j", "processing")
		s.stands("k", "processing")
		story, err := s.ledger.Explain(t.Context(), "k")
		if err != nil || len(story.Reports) != 2 || story.Reports[0].Verdict != ledger.Stale {
			t.Errorf("kept %+v, %v", story.Reports, err)
		}
		if got := s.callback("acme", "acme", `{"id":"u2","status":"succeeded"}`); got != "200 won" {
			t.Errorf("the current attempt: %s", got)
		}
	})
}

// With the authority of the poll, a callback settles nothing: the provider is asked at once.
func TestCallbackWakesThePoll(t *testing.T) {
	eachCallee(t, func(s *site) {
		s.submitted("j", "slow", "u1")
		if tasks, err := s.ledger.ClaimPolls(t.Context(), []string{"slow"}, 10, time.Minute); len(tasks) > 0 {
			t.Fatalf("polled at once: %+v, %v", tasks, err)
		}
		if got := s.callback("slow", "acme", `{"id":"u1","status":"failed"}`); got != "200 polled" {
			t.Errorf("got %s", got)
		}
		s.stands("j", "processing")
		tasks, err := s.ledger.ClaimPolls(t.Context(), []string{"slow"}, 10, time.Minute)
		if err != nil || len(tasks) != 1 || tasks[0].Job != "j" {
			t.Errorf("got %+v, %v", tasks, err)
		}
		s.submitted("k", "slow", "")
		early := `{"id":"u2","status":"failed","job":"k"}`
		if got := s.callback("slow", "acme", early); got != "503 BUSY" {
			t.Errorf("nobody knows where to ask: got %s", got)
		}
		s.must("POST", "/v1/jobs/k/attempts/1/accepted", `{"upstream_id":"u2"}`)
		if got := s.callback("slow", "acme", early); got != "200 polled" {
			t.Errorf("sent again: got %s", got)
		}
		if _, err := s.ledger.Cancel(t.Context(), "k", "not wanted"); err != nil {
			t.Fatal(err)
		}
		if got := s.callback("slow", "acme", early); got != "200 polled" {
			t.Errorf("it has ended: got %s", got)
		}
	})
}

// Of callbacks that come at the same time, one wins, and all are content.
func TestCallbacksRace(t *testing.T) {
	eachCallee(t, func(s *site) {
		for job := range 5 {
			id := fmt.Sprint("u", job)
			s.submitted("j"+id, "acme", id)
			var group sync.WaitGroup
			answers := make(chan string, 16)
			for i := range cap(answers) {
				body := fmt.Sprintf(`{"id":%q,"status":%q,"n":%d}`, id, []string{"succeeded", "failed"}[i%2], i)
				headers := signed(t, "acme", body)
				group.Go(func() {
					r, err := s.try("POST", "/v1/callbacks/acme", body, headers...)
					if err != nil {
						t.Error(err)
					}
					answers <- said(t, r)
				})
			}
			group.Wait()
			close(answers)
			count := map[string]int{}
			for a := range answers {
				count[a]++
			}
			if count["200 won"] != 1 || count["200 duplicate"] != 7 || count["200 conflict"] != 8 {
				t.Errorf("got %v", count)
			}
		}
	})
}

// Strangers who send their callbacks slowly, or not at all, keep nobody from the API, and no more of them are
// listened to than may be.
func TestTricklingCallbacks(t *testing.T) {
	s := start(t, dbtest.SQLite(t), server.Options{Providers: loadProviders(t), Concurrent: 1})
	const head = "POST /v1/callbacks/acme HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n" +
		"Expect: 100-continue\r\n\r\n"
	trickle := func() (first string) {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write([]byte(head)); err != nil {
			t.Fatal(err)
		}
		first, err = bufio.NewReader(c).ReadString('\n') // 100: the server is reading the body
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(first)
	}
	for i := range 64 {
		if got := trickle(); got != "HTTP/1.1 100 Continue" {
			t.Fatalf("%d: got %s", i, got)
		}
	}
	if got := trickle(); got != "HTTP/1.1 503 Service Unavailable" {
		t.Errorf("one more: got %s", got)
	}
	if r := s.call("GET", "/v1/jobs", ""); r.status != http.StatusOK {
		t.Errorf("the API: got %d %s", r.status, r.text)
	}
}

// FuzzCallback: no callback is answered with 500, and what is not signed is answered with 401.
func FuzzCallback(f *testing.F) {
	for _, body := range []string{
		`{"id":"u1","status":"succeeded","cost":5}`, `{"id":"u1","status":"failed","Status":"x"}`, `{`, `[]`,
		`{"job":"j","status":"failed","attempt":1}`, `{"id":1,"status":true}`, `{"id":"u2","status":"canceled"}`,
	} {
		f.Add([]byte(body), "", true)
		f.Add([]byte(body), "v1,AAAA", false)
	}
	dsn := dbtest.SQLite(f)
	l, err := ledger.Open(f.Context(), dsn, ledger.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	handler := server.New(l, server.Options{Providers: loadProviders(f)})
	f.Fuzz(func(t *testing.T, body []byte, signature string, right bool) {
		r := httptest.NewRequest(http.MethodPost, "/v1/callbacks/acme", bytes.NewReader(body))
		pairs := signed(t, "acme", string(body))
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Set(pairs[i], pairs[i+1])
		}
		if !right {
			r.Header.Set("webhook-signature", signature)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if !json.Valid(w.Body.Bytes()) || w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%q: got %d %s", body, w.Code, w.Body)
		}
		if (w.Code == http.StatusUnauthorized) == right {
			t.Errorf("%q, signed: %t: got %d %s", body, right, w.Code, w.Body)
		}
	})
}
