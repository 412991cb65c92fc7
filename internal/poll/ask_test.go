package poll

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"jobledger/db/dbtest"
	"jobledger/internal/providers"
	"jobledger/ledger"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "-1": 0, "soon": 0, "1.5": 0, "99999999999": 0,
		"Thu, 01 Jan 2026 00:01:00 GMT": time.Minute, "Wed, 31 Dec 2025 23:59:00 GMT": -time.Minute,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	got := line(errors.New("a\nb\x00c\xff" + strings.Repeat("é", 500)))
	if !strings.HasPrefix(got, "a b cé") || len(got) > lineMax || !utf8.ValidString(got) || line(nil) != "" {
		t.Errorf("got %q", got)
	}
}

// load makes providers of a file with one entry.
func load(t *testing.T, entry string) *providers.Set {
	t.Helper()
	path := filepath.Join(t.TempDir(), "providers.json")
	if err := os.WriteFile(path, []byte(`{"providers":[`+entry+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := providers.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

const polled = `{"name":"p","poll":{"url":"URL","least":"1s","most":"1m","body":{"status":"/s"},` +
	`"outcomes":{"y":"completed"}}}`

// A provider that asks for time gets it, up to the longest wait; else the wait grows with the tries.
func TestDelay(t *testing.T) {
	wish := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", wish)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer s.Close()
	p, err := New(nil, load(t, strings.Replace(polled, "URL", s.URL+"/{id}", 1)), Options{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	a := p.askers[0]
	defer a.client.Close()
	for _, c := range []struct {
		wish        string
		tries       int64
		least, most time.Duration
	}{
		{"", 1, 500 * time.Millisecond, time.Second},
		{"", 4, 4 * time.Second, 8 * time.Second},
		{"", 100, 30 * time.Second, time.Minute},
		{"20", 1, 20 * time.Second, 20 * time.Second},
		{"3600", 1, time.Minute, time.Minute},
		{"1", 100, 30 * time.Second, time.Minute},
	} {
		wish = c.wish
		_, delay, err := a.ask(t.Context(), &ledger.PollTask{UpstreamID: "u", Tries: c.tries})
		if err == nil || delay < c.least || delay > c.most {
			t.Errorf("%+v: got %v, %v", c, delay, err)
		}
	}
}

// A poller that could ask nobody, or that would ask where it may not, does not start.
func TestNewRefuses(t *testing.T) {
	l, err := ledger.Open(t.Context(), dbtest.SQLite(t), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for url, want := range map[string]string{
		"http://127.0.0.1:1/{id}":         `provider "p": poll.url: is without TLS`,
		"https://127.0.0.1:1/{id}":        `provider "p": poll.url: 127.0.0.1 is a private address`,
		"https://169.254.169.254/{id}":    `provider "p": poll.url: 169.254.169.254 is a private address`,
		"http://status.example/jobs/{id}": `provider "p": poll.url: is without TLS`,
	} {
		_, err := New(l, load(t, strings.Replace(polled, "URL", url, 1)), Options{})
		if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", url, err, want)
		}
	}
	if _, err := New(l, new(providers.Set), Options{}); ledger.CodeOf(err) != ledger.Invalid {
		t.Errorf("got %v", err)
	}
}
