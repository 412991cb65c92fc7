package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"jobledger/db/dbtest"
	"jobledger/internal/fakeprovider"
	"jobledger/internal/providers"
	"jobledger/internal/server"
	"jobledger/internal/service"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// providersFile writes a providers file with one provider, which is polled at an address.
func providersFile(t *testing.T, address string) *providers.Set {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"acme.secret": secret,
		"providers.json": `{"providers":[{"name":"acme","scheme":"standard","secret_file":"acme.secret",
			"body":{"id":"/id","status":"/outcome"},"outcomes":{"completed":"completed","failed":"failed"},
			"poll":{"url":"` + address + `/jobs/{id}","least":"1s","most":"2s"}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := providers.Load(filepath.Join(dir, "providers.json"))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestService: one job is settled by its provider's callback and one by a poll, an endpoint is told of both,
// the figures count all of it, and at the end nothing is left running.
func TestService(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		running := goleak.IgnoreCurrent()
		l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		provider, err := fakeprovider.Start()
		if err != nil {
			t.Fatal(err)
		}
		events := make(chan string, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var said struct{ ID string }
			if err := json.NewDecoder(r.Body).Decode(&said); err != nil {
				t.Error(err)
			}
			events <- said.ID
		}))
		log := new(bytes.Buffer)
		s, err := service.New(l, service.Options{
			Poll: true, Deliver: true, AllowPrivate: true,
			Server: server.Options{
				Log:       slog.New(slog.NewJSONHandler(log, nil)),
				Providers: providersFile(t, provider.URL),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, listener) }()
		url := "http://" + listener.Addr().String()
		post(t, url+"/v1/endpoints", `{"url":"`+receiver.URL+`","secret":"`+secret+`"}`)
		post(t, url+"/v1/grants", `{"owner":"alice","amount":100,"key":"k"}`)
		work(t, url, provider)
		hear(t, events, "settled:j1", "settled:j2")
		eventually(t, url, `jobledger_reports_total{source="callback",verdict="won"} 1`,
			`jobledger_reports_total{source="poll",verdict="won"} 1`,
			`jobledger_delivery_tries_total{status="delivered"} 2`, `jobledger_jobs_open 0`)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		receiver.Close()
		http.DefaultClient.CloseIdleConnections()
		for _, end := range []func() error{provider.Close, l.Close} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
		if err := goleak.Find(running); err != nil {
			t.Errorf("after the end: %v; the log: %s", err, log)
		}
	})
}

// hear waits until the endpoint was told of all these events.
func hear(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	told := map[string]bool{}
	for late := time.After(time.Minute); len(told) < len(want); {
		select {
		case id := <-events:
			told[id] = true
		case <-late:
			t.Fatalf("the endpoint was told of %v", told)
		}
	}
	for _, id := range want {
		if !told[id] {
			t.Errorf("the endpoint was told of %v", told)
		}
	}
}

// work submits two jobs to the provider. It calls back for the first, and says to whoever asks sooner that it
// is running; the second has to be asked for.
func work(t *testing.T, url string, provider *fakeprovider.Provider) {
	t.Helper()
	keys, err := webhook.ParseKeys(webhook.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	provider.Sign(keys[0])
	client := &fakeprovider.Client{URL: provider.URL, HTTP: http.DefaultClient}
	for i, job := range []string{"j1", "j2"} {
		post(t, url+"/v1/jobs", `{"id":"`+job+`","owner":"alice","cost":7}`)
		post(t, url+"/v1/jobs/"+job+"/attempts", `{"provider":"acme"}`)
		answer := client.Create(t.Context(), fakeprovider.Order{
			Job: job, Attempt: 1, Callback: url + "/v1/callbacks/acme",
		})
		provider.End(answer.UpstreamID, []string{"running", "failed"}[i])
		post(t, url+"/v1/jobs/"+job+"/attempts/1/accepted", `{"upstream_id":"`+answer.UpstreamID+`"}`)
		if i == 0 {
			if err := provider.CallBack(t.Context(), answer.UpstreamID, "completed"); err != nil {
				t.Error(err)
			}
		}
	}
}

func post(t *testing.T, url, body string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode/100 != 2 {
		t.Fatalf("%s: %d %s, %v", url, r.StatusCode, text, err)
	}
}

// eventually waits until the figures have some lines.
func eventually(t *testing.T, url string, lines ...string) {
	t.Helper()
	missing, deadline := "", time.Now().Add(20*time.Second)
	for ; time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		r, err := http.Get(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		missing = ""
		for _, line := range lines {
			if !strings.Contains(string(text), line+"\n") {
				missing += fmt.Sprintln(line)
			}
		}
		if missing == "" {
			return
		}
	}
	t.Errorf("the figures lack %s", missing)
}

// TestNewRefuses: what cannot be polled is told before anything listens.
func TestNewRefuses(t *testing.T) {
	l, err := ledger.Open(t.Context(), dbtest.SQLite(t), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	set := providersFile(t, "http://127.0.0.1:1")
	_, err = service.New(l, service.Options{Poll: true, Server: server.Options{Providers: set}})
	if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), "acme") {
		t.Errorf("a private address: %v", err)
	}
	if _, err := service.New(l, service.Options{Server: server.Options{Providers: set}}); err != nil {
		t.Errorf("without polls: %v", err)
	}
}
