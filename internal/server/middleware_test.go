package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// bench is a server without a network, and its log.
func bench(t *testing.T, o Options) (*Server, *bytes.Buffer) {
	t.Helper()
	l, err := ledger.Open(t.Context(), dbtest.SQLite(t), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	log := new(bytes.Buffer)
	o.Log = slog.New(slog.NewJSONHandler(log, nil))
	return New(l, o), log
}

// TestPanic: a handler that panics is answered with a problem, and the log has the rest. Once half an answer
// is out, the connection is cut instead.
func TestPanic(t *testing.T) {
	s, log := bench(t, Options{})
	w := httptest.NewRecorder()
	s.observe(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no such luck") })).
		ServeHTTP(w, httptest.NewRequest("GET", "/v1/jobs", nil))
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 500 || p.Code != ledger.Internal ||
		strings.Contains(w.Body.String(), "luck") {
		t.Errorf("got %d %s, %v", w.Code, w.Body, err)
	}
	if text := log.String(); !strings.Contains(text, "no such luck") || !strings.Contains(text, "TestPanic") ||
		!strings.Contains(text, p.RequestID) {
		t.Errorf("the log says %s", text)
	}
	cut := httptest.NewServer(s.observe(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of")
		panic("no such luck")
	})))
	defer cut.Close()
	r, err := http.Get(cut.URL)
	if err == nil {
		_, err = io.ReadAll(r.Body)
		r.Body.Close()
	}
	if err == nil {
		t.Error("half an answer looks like a whole one")
	}
}

// TestInternalIsForTheLog: what an unexpected error says is not sent.
func TestInternalIsForTheLog(t *testing.T) {
	p := newProblem(errors.New("open /secret/place: no"))
	if text, err := json.Marshal(p); err != nil || strings.Contains(string(text), "secret") || p.Status != 500 {
		t.Errorf("got %s, %v", text, err)
	}
	for _, info := range ledger.Codes {
		p := newProblem(&ledger.Error{Code: info.Code, Message: "m"})
		if p.Status != info.HTTP || p.Retryable != info.Retryable || p.Title != info.Meaning ||
			(p.header.Get("Retry-After") != "") != (info.HTTP == 503) {
			t.Errorf("%s: got %+v", info.Code, p)
		}
	}
}

// TestFull: a server that has as many requests as it may answer refuses the next at once, and still says how
// it is.
func TestFull(t *testing.T) {
	s, _ := bench(t, Options{Concurrent: 2})
	s.slots <- struct{}{}
	s.slots <- struct{}{}
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
		return w
	}
	if w := get("/v1/jobs"); w.Code != 503 || w.Header().Get("Retry-After") != "1" ||
		!strings.Contains(w.Body.String(), `"code":"BUSY"`) {
		t.Errorf("full: got %d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if w := get(path); w.Code != 200 {
			t.Errorf("full: %s: got %d %s", path, w.Code, w.Body)
		}
	}
	<-s.slots
	if w := get("/v1/jobs"); w.Code != 200 {
		t.Errorf("not full any more: got %d %s", w.Code, w.Body)
	}
	if text := get("/metrics").Body.String(); !strings.Contains(text, "jobledger_http_refused_total 1\n") {
		t.Error("the refusal is not counted")
	}
}

// TestNotReady: without its database a server is alive, and not ready.
func TestNotReady(t *testing.T) {
	s, _ := bench(t, Options{})
	if err := s.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
		if w.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}
