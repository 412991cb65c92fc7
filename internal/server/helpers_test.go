package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// site is a server that a test talks to, over a real connection.
type site struct {
	t      testing.TB
	url    string
	ledger *ledger.Ledger
	log    *logBuffer
	token  string // that call sends; empty: none
	client *http.Client
	end    context.CancelFunc
	ended  chan error // what Serve returned
}

// logBuffer is a log that many write and a test reads.
type logBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// start starts a server on a ledger. It ends with the test, if not before.
func start(t testing.TB, dsn string, o server.Options) *site {
	t.Helper()
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, l, o)
}

// startOn is start on a ledger that is open. It is closed after the server.
func startOn(t testing.TB, l *ledger.Ledger, o server.Options) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &site{
		t: t, url: "http://" + listener.Addr().String(), ledger: l, log: &logBuffer{}, end: cancel,
		ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
	o.Log = slog.New(slog.NewJSONHandler(s.log, nil))
	go func() { s.ended <- server.New(l, o).Serve(ctx, listener) }()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.stop()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// stop ends the server and waits until it has.
func (s *site) stop() {
	s.t.Helper()
	s.end()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Error(err)
		}
		s.ended <- nil
	case <-time.After(30 * time.Second):
		s.t.Error("the server did not end")
	}
}

// reply is what a request was answered with.
type reply struct {
	status int
	header http.Header
	text   string
}

// json decodes the body into v.
func (r reply) json(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.text), v); err != nil {
		t.Fatalf("%d %s: %v", r.status, r.text, err)
	}
}

// member gives a member of the body: of an object in it, if path has more than one name.
func (r reply) member(t testing.TB, path ...string) any {
	t.Helper()
	var document any
	r.json(t, &document)
	for _, name := range path {
		object, ok := document.(map[string]any)
		if !ok {
			t.Fatalf("%s: no object above %q", r.text, name)
		}
		document = object[name]
	}
	return document
}

// call sends a request with a JSON body, or none if it is empty. More are headers, name and value.
func (s *site) call(method, path, body string, more ...string) reply {
	s.t.Helper()
	r, err := s.try(method, path, body, more...)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// try is call for tests in which a connection may break.
func (s *site) try(method, path, body string, more ...string) (reply, error) {
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	response, err := s.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(text)}, err
}

// must is call for requests that have to succeed.
func (s *site) must(method, path, body string, more ...string) reply {
	s.t.Helper()
	r := s.call(method, path, body, more...)
	if r.status/100 != 2 {
		s.t.Fatalf("%s %s %s: %d %s", method, path, body, r.status, r.text)
	}
	return r
}

// refused checks that a request is answered with a problem of a status and a code, whose detail has a text
// in it.
func (s *site) refused(
	status int, code ledger.Code, detail, method, path, body string, more ...string,
) reply {
	s.t.Helper()
	r := s.call(method, path, body, more...)
	var p struct {
		Type, Title, Detail, Instance, Code string
		Status                              int
		RequestID                           string `json:"request_id"`
		Retryable                           bool
	}
	r.json(s.t, &p)
	id := r.header.Get("X-Request-ID")
	if r.status != status || p.Status != status || p.Code != string(code) ||
		!strings.Contains(p.Detail, detail) || r.header.Get("Content-Type") != "application/problem+json" ||
		p.Type != "/problems/"+string(code) ||
		p.Title != code.Info().Meaning || p.Retryable != code.Info().Retryable || id == "" ||
		p.RequestID != id || !strings.HasSuffix(p.Instance, id) {
		s.t.Errorf("%s %s %.80s:\ngot  %d %s\nwant %d %s ...%s",
			method, path, body, r.status, r.text, status, code, detail)
	}
	return r
}

// sqlite starts a server on a new SQLite file.
func sqlite(t testing.TB) *site {
	t.Helper()
	return start(t, dbtest.SQLite(t), server.Options{})
}

// grant gives alice credits.
func (s *site) grant(owner, key, amount string) {
	s.t.Helper()
	s.must("POST", "/v1/grants", `{"owner":"`+owner+`","key":"`+key+`","amount":`+amount+`}`)
}
