package demo

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"jobledger/internal/fakeprovider"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

// TestDemo plays a small demo to the end: every job settles once, every event arrives, and every forger is
// refused.
func TestDemo(t *testing.T) {
	const jobs = 42
	dir := t.TempDir()
	last := 0
	r, err := Run(t.Context(), Options{Dir: dir, Jobs: jobs, Seed: 1, Progress: func(done, total int) {
		if done < last || total != jobs {
			t.Errorf("%d of %d jobs, after %d", done, total, last)
		}
		last = done
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range r.Broken {
		t.Error(line)
	}
	events := jobs + r.Stories[Contradicted]
	if last != jobs || r.Verdicts[ledger.Won] != jobs || r.Events != events || r.Received != events ||
		r.Forged == 0 || r.Refused != r.Forged || len(r.Stories) != len(stories) || !r.Audit.OK ||
		r.Verdicts[ledger.Conflict] != r.Stories[Contradicted] ||
		r.Polled < r.Stories[Lost]+r.Stories[Late] || len(r.Balances) != len(owners) {
		t.Errorf("after %d jobs: got %+v", last, r)
	}
	log, err := os.ReadFile(filepath.Join(dir, "server.log"))
	secret, err2 := os.ReadFile(filepath.Join(dir, provider+".secret"))
	if err != nil || err2 != nil || !bytes.Contains(log, []byte(`"path":"/v1/callbacks/demo","status":401`)) ||
		bytes.Contains(log, bytes.TrimSpace(secret)) || bytes.Contains(log, []byte("jl_")) {
		t.Errorf("the log lacks the forgeries, or has a secret: %v, %v", err, err2)
	}
}

// TestPlans: a seed always makes the same jobs, another one makes others, and a few jobs have every story.
func TestPlans(t *testing.T) {
	if !reflect.DeepEqual(plans(100, 1), plans(100, 1)) || reflect.DeepEqual(plans(100, 1), plans(100, 2)) {
		t.Error("a seed does not decide what is played")
	}
	told, forged := map[Story]bool{}, map[forgery]bool{}
	for _, p := range plans(len(stories), 3) {
		told[p.story] = true
	}
	for _, p := range plans(500, 3) {
		forged[p.forgery] = true
		if p.cost < 1 || p.cost > costMax {
			t.Errorf("%s costs %d", p.id, p.cost)
		}
	}
	if len(told) != len(stories) || len(forged) != len(forgeries)+1 {
		t.Errorf("got the stories %v and the forgeries %v", told, forged)
	}
}

// TestForgeries: what each forger sends is refused by who knows the key, and is a lie.
func TestForgeries(t *testing.T) {
	keys, err := webhook.ParseKeys(webhook.Standard, webhook.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := webhook.NewVerifier(webhook.StandardWebhooks(), keys)
	if err != nil {
		t.Fatal(err)
	}
	var refusal error
	var said fakeprovider.Notice
	r := &receiver{taken: map[string]told{}, settled: map[string]bool{}}
	r.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(request.Body); err != nil {
			t.Error(err)
		}
		refusal = verifier.Verify(request.Header, body.Bytes(), time.Now())
		if err := json.Unmarshal(body.Bytes(), &said); err != nil {
			t.Error(err)
		}
	}), ReadHeaderTimeout: time.Minute}
	if err := r.listen(); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	d := &director{key: keys[0], app: &client{url: strings.TrimSuffix(r.url, "/events")}}
	for _, f := range forgeries {
		refusal = nil
		p := &plan{id: "j", outcome: ledger.Failed, forgery: f}
		notice := fakeprovider.Notice{Job: "j", Attempt: 1, ID: "up-1", Outcome: "failed"}
		if status, err := d.forge(t.Context(), p, notice); err != nil || status != 200 {
			t.Errorf("%s: %d, %v", f, status, err)
		}
		if err := d.tryForgery(t.Context(), p, &fakeprovider.Order{Job: "j"}, "up-1"); err != nil ||
			len(d.result.Broken) == 0 || !strings.Contains(d.result.Broken[0], "was answered with 200") {
			t.Errorf("%s: a forgery that passed is not told: %v, %v", f, d.result.Broken, err)
		}
		d.result.Broken = nil
		if refusal == nil || said.Outcome != "completed" {
			t.Errorf("%s: the outcome %s was not refused", f, said.Outcome)
		}
	}
}

// TestReceiver: it takes what is signed, once, in its order; everything else is told.
func TestReceiver(t *testing.T) {
	secret := webhook.NewSecret()
	keys, err := webhook.ParseKeys(webhook.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	r, err := startReceiver(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	send := func(body string, keys []webhook.Key) int {
		header, err := webhook.Sign(keys, "msg", time.Now(), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := fakeprovider.Post(t.Context(), r.url, header, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return reply.Status
	}
	const end = `{"id":"settled:j1","type":"job.failed","data":{"job":"j1"}}`
	for range 3 {
		if status := send(end, keys); status != 200 {
			t.Errorf("got %d", status)
		}
	}
	if r.count() != 1 || r.repeated != 2 || len(r.broken) != 0 {
		t.Errorf("taken %d, repeated %d, broken %v", r.count(), r.repeated, r.broken)
	}
	other, err := webhook.ParseKeys(webhook.Standard, webhook.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	if status := send(end, other); status != 401 {
		t.Errorf("signed by another: got %d", status)
	}
	send(`{"id":"conflict:j2:1","type":"job.conflict","data":{"job":"j2"}}`, keys)
	if len(r.broken) != 2 || !strings.Contains(r.broken[1], "out of order") {
		t.Errorf("broken: %v", r.broken)
	}
}
