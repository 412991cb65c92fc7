package poll_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/internal/poll"
	"jobledger/internal/providers"
	"jobledger/internal/server"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

// A poll that says completed and a callback that says failed race for each job: one wins, its credits move
// once, and the other is kept as a conflict.
func TestPollAndCallbackRace(t *testing.T) {
	each(t, func(s *stage) {
		secret := webhook.NewSecret()
		keys, err := webhook.ParseKeys(webhook.Standard, secret)
		if err != nil {
			t.Fatal(err)
		}
		s.set = both(t, s.fake.URL, secret)
		url := serve(t, server.New(s.Ledger, server.Options{Providers: s.set}).ServeHTTP)
		const jobs = 24
		ids := make([]string, jobs)
		for i := range ids {
			ids[i] = s.submitted(fmt.Sprint("j", i), "acme")
		}
		var group sync.WaitGroup
		verdicts := make(chan ledger.Verdict, 2*jobs)
		p := s.poller(poll.Options{Concurrent: jobs, Settled: func(v ledger.Verdict) { verdicts <- v }})
		group.Go(func() {
			if _, err := p.Once(t.Context()); err != nil {
				t.Error(err)
			}
		})
		for _, id := range ids {
			group.Go(func() { verdicts <- callBack(t, url, keys, id) })
		}
		group.Wait()
		close(verdicts)
		count := map[ledger.Verdict]int{}
		for v := range verdicts {
			count[v]++
		}
		polled := 0
		for _, id := range ids {
			polled += s.fake.Asked(id)
		}
		// A job that a callback settled before the poller took it is not asked for.
		if count[ledger.Won] != jobs || count[ledger.Conflict] != polled || len(count) > 2 {
			t.Errorf("%d jobs, %d polls: got %v", jobs, polled, count)
		}
		a, err := s.Audit(t.Context(), ledger.AuditParams{})
		if err != nil || !a.OK {
			t.Errorf("the audit: %+v, %v", a, err)
		}
		t.Logf("%d polls for %d jobs: %v", polled, jobs, count)
	})
}

// both loads a provider that calls back and is polled.
func both(t *testing.T, url, secret string) *providers.Set {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "providers.json")
	for name, text := range map[string]string{
		path: strings.Replace(`{"providers":[{"name":"acme","scheme":"standard","secret_file":"secret",
			"body":{"id":"/id","status":"/outcome"},"outcomes":{"completed":"completed","failed":"failed"},
			"poll":{"url":"URL/jobs/{id}"}}]}`, "URL", url, 1),
		filepath.Join(folder, "secret"): secret,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := providers.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// callBack reports a job as failed, as its provider does, and gives the verdict.
func callBack(t *testing.T, url string, keys []webhook.Key, id string) ledger.Verdict {
	body := `{"id":"` + id + `","outcome":"failed"}`
	request, err := http.NewRequest(http.MethodPost, url+"/v1/callbacks/acme", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	if request.Header, err = webhook.Sign(keys, "msg_"+id, time.Now(), []byte(body)); err != nil {
		t.Error(err)
		return ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	var said struct{ Verdict ledger.Verdict }
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: %s, %v", id, response.Status, err)
	}
	return said.Verdict
}
