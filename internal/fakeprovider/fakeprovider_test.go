package fakeprovider_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"jobledger/internal/fakeprovider"
	"jobledger/internal/webhook"
)

var guard fakeprovider.Guard

func TestMain(m *testing.M) {
	http.DefaultTransport = guard.Transport()
	os.Exit(m.Run())
}

func start(t *testing.T, script ...fakeprovider.Act) (*fakeprovider.Provider, *fakeprovider.Client) {
	t.Helper()
	p, err := fakeprovider.Start(script...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, &fakeprovider.Client{URL: p.URL, HTTP: &http.Client{Timeout: 2 * time.Second}}
}

// Each act leaves the caller with what it can know, and the provider with the job that it made.
func TestActs(t *testing.T) {
	for act, want := range map[fakeprovider.Act]struct {
		creations                  int
		upstream, rejection, doubt string
	}{
		fakeprovider.Accept:    {1, "up-1", "", ""},
		fakeprovider.Reject:    {0, "", "status 422: no capacity", ""},
		fakeprovider.Hang:      {1, "", "", "deadline exceeded"},
		fakeprovider.Drop:      {1, "", "", "EOF"},
		fakeprovider.Malformed: {1, "", "", "no JSON document"},
		fakeprovider.Fail:      {1, "", "", "status 500"},
		fakeprovider.Missing:   {0, "", "", "status 404"},
		fakeprovider.Twice:     {1, "up-1", "", ""},
	} {
		p, c := start(t, act)
		if act == fakeprovider.Hang {
			c.HTTP.Timeout = 50 * time.Millisecond
		}
		got := c.Create(t.Context(), fakeprovider.Order{Job: "j", Attempt: 1})
		if got.UpstreamID != want.upstream || !strings.HasPrefix(got.Rejection, want.rejection) ||
			(got.Rejection == "") != (want.rejection == "") || !strings.Contains(got.Doubt, want.doubt) ||
			(got.Doubt == "") != (want.doubt == "") || p.Creations() != want.creations {
			t.Errorf("%s: got %+v and %d creations, want %+v", act, got, p.Creations(), want)
		}
	}
}

// The script goes on from request to request and stays at its last act. The same order again makes
// another job: a provider does not know that it is the same.
func TestScript(t *testing.T) {
	p, c := start(t, fakeprovider.Accept, fakeprovider.Accept, fakeprovider.Reject)
	const refusal = "status 422: no capacity for this model"
	for i, want := range []fakeprovider.Answer{
		{UpstreamID: "up-1"}, {UpstreamID: "up-2"}, {Rejection: refusal}, {Rejection: refusal},
	} {
		if got := c.Create(t.Context(), fakeprovider.Order{Job: "j", Attempt: 1}); got != want {
			t.Errorf("order %d: got %+v, want %+v", i, got, want)
		}
	}
	if p.Creations() != 2 {
		t.Errorf("%d creations", p.Creations())
	}
}

func TestPolls(t *testing.T) {
	p, c := start(t)
	c.Create(t.Context(), fakeprovider.Order{Job: "j", Attempt: 1})
	p.Polls(fakeprovider.Fail, fakeprovider.Malformed, fakeprovider.Missing, fakeprovider.Drop,
		fakeprovider.Accept)
	for range 4 {
		if outcome, known, doubt := c.Outcome(t.Context(), "up-1"); known || outcome != "" || doubt == "" {
			t.Errorf("got %q, %t, %q", outcome, known, doubt)
		}
	}
	if outcome, known, doubt := c.Outcome(t.Context(), "up-1"); !known || outcome != "completed" || doubt != "" {
		t.Errorf("got %q, %t, %q", outcome, known, doubt)
	}
	if _, known, _ := c.Outcome(t.Context(), "up-2"); known {
		t.Error("the outcome of a job that is not there is known")
	}
}

func TestCallBackFirst(t *testing.T) {
	notices := make(chan fakeprovider.Notice, 2)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n fakeprovider.Notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		notices <- n
	}))
	defer receiver.Close()
	p, c := start(t, fakeprovider.CallBackFirst)
	got := c.Create(t.Context(), fakeprovider.Order{Job: "j", Attempt: 3, Callback: receiver.URL})
	close(notices)
	want := fakeprovider.Notice{Job: "j", Attempt: 3, ID: "up-1", Outcome: "completed"}
	if n := <-notices; n != want || got.UpstreamID != "up-1" {
		t.Errorf("got %+v and %+v", n, got)
	}
	if err := p.CallBack(t.Context(), "up-2", "failed"); err == nil {
		t.Error("a callback for a job that is not there")
	}
}

// Both answers of Twice are whole.
func TestTwice(t *testing.T) {
	p, _ := start(t, fakeprovider.Twice)
	connection, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	request, err := http.NewRequest(http.MethodPost, p.URL+"/jobs", strings.NewReader(`{"job":"j","attempt":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := request.Write(connection); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(connection)
	for i := range 2 {
		response, err := http.ReadResponse(answers, request)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		var said struct{ ID string }
		if err := json.NewDecoder(response.Body).Decode(&said); err != nil || said.ID != "up-1" {
			t.Errorf("answer %d: %+v, %v", i, said, err)
		}
		response.Body.Close()
	}
	if p.Creations() != 1 {
		t.Errorf("%d creations", p.Creations())
	}
}

// The guard refuses what is not on this machine, and says so afterwards.
func TestGuard(t *testing.T) {
	var g fakeprovider.Guard
	c := &fakeprovider.Client{HTTP: &http.Client{Transport: g.Transport(), Timeout: time.Second}}
	for _, c.URL = range []string{"http://192.0.2.1", "http://[2001:db8::1]", "http://provider.example"} {
		got := c.Create(t.Context(), fakeprovider.Order{})
		if !strings.Contains(got.Doubt, "not a loopback address") {
			t.Errorf("%s: %+v", c.URL, got)
		}
	}
	p, _ := start(t)
	c.URL = p.URL
	if got := c.Create(t.Context(), fakeprovider.Order{}); got.UpstreamID != "up-1" || len(g.Refused()) != 3 {
		t.Errorf("got %+v, refused %q", got, g.Refused())
	}
}

// What polls say of a job can be set, and they are counted; a redirect leads to another word.
func TestEnd(t *testing.T) {
	p, c := start(t)
	c.Create(t.Context(), fakeprovider.Order{Job: "j", Attempt: 1})
	p.End("up-1", "running")
	if outcome, _, doubt := c.Outcome(t.Context(), "up-1"); outcome != "running" || p.Asked("up-1") != 1 {
		t.Errorf("got %q, %q, asked %d times", outcome, doubt, p.Asked("up-1"))
	}
	p.Polls(fakeprovider.Redirect, fakeprovider.Endless)
	if outcome, _, doubt := c.Outcome(t.Context(), "up-1"); outcome != "failed" {
		t.Errorf("got %q, %q", outcome, doubt)
	}
	if outcome, known, doubt := c.Outcome(t.Context(), "up-1"); known || p.Asked("up-1") != 3 {
		t.Errorf("got %q, %q, asked %d times", outcome, doubt, p.Asked("up-1"))
	}
}

// A provider that has a key signs each callback, so that its receiver can tell it from others.
func TestSignedCallbacks(t *testing.T) {
	p, c := start(t)
	keys, err := webhook.ParseKeys(webhook.Standard, webhook.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := webhook.NewVerifier(webhook.StandardWebhooks(), keys)
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verifier.Verify(r.Header, body, time.Now())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	}))
	defer receiver.Close()
	got := c.Create(t.Context(), fakeprovider.Order{Job: "j", Attempt: 1, Callback: receiver.URL})
	if r, err := p.Send(t.Context(), got.UpstreamID, "failed"); err != nil || r.Status != 401 {
		t.Errorf("without a key: got %d %s, %v", r.Status, r.Body, err)
	}
	p.Sign(keys[0])
	for range 2 {
		if r, err := p.Send(t.Context(), got.UpstreamID, "failed"); err != nil || r.Status != 200 {
			t.Errorf("with a key: got %d %s, %v", r.Status, r.Body, err)
		}
	}
}
