//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/fakeprovider"
	"jobledger/internal/webhook"
)

// client keeps its connections, however many it has.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// served is a real server in a process of its own.
type served struct {
	t      *testing.T
	url    string
	child  *exec.Cmd
	stderr *bytes.Buffer
}

// serve starts one, on a port of its own. It ends with the test.
func serve(t *testing.T, dsn string, args ...string) *served {
	t.Helper()
	s := &served{t: t, stderr: new(bytes.Buffer)}
	s.child = exec.Command("jobledger", append([]string{"--db", dsn, "--json", "serve", "--addr", "127.0.0.1:0"},
		args...)...)
	s.child.Stderr = s.stderr
	stdout, err := s.child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.child.Process.Kill() }) // one that has ended already is no error of the test
	line, err := bufio.NewReader(stdout).ReadString('\n')
	var said struct{ URL string }
	if err == nil {
		err = json.Unmarshal([]byte(line), &said)
	}
	if err != nil {
		t.Fatalf("serve said %q, %v; %s", line, err, s.stderr)
	}
	s.url = said.URL
	return s
}

// end ends a server and gives its exit status.
func (s *served) end(signal syscall.Signal) int {
	s.t.Helper()
	if err := s.child.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	_ = s.child.Wait() // the status says how it ended
	return s.child.ProcessState.ExitCode()
}

// post sends a document and decodes the answer into v. It gives the status.
func (s *served) post(path, body string, v any) (status int, err error) {
	r, err := client.Post(s.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	return r.StatusCode, err
}

// TestServe: a server says where it is, answers, logs, and ends in peace when it is told to.
func TestServe(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			s := serve(t, dsn)
			var granted struct{ Balance struct{ Available int64 } }
			status, err := s.post("/v1/grants", `{"owner":"alice","amount":100,"key":"k1"}`, &granted)
			if err != nil || status != 201 || granted.Balance.Available != 100 {
				t.Errorf("got %d %+v, %v", status, granted, err)
			}
			if exit := s.end(signal); exit != 0 {
				t.Errorf("%v: exit %d, %s", signal, exit, s.stderr)
			}
			for line := range strings.Lines(s.stderr.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("the log has %q", line)
				}
			}
			if !strings.Contains(s.stderr.String(), `"path":"/v1/grants","status":201`) {
				t.Errorf("the log is %s", s.stderr)
			}
		}
		must(t, dsn, "audit")
	})
}

// TestServeCallbacks: a server settles a job by what the providers of its file sign.
func TestServeCallbacks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		folder := t.TempDir()
		for name, text := range map[string]string{
			"providers.json": `{"providers":[{"name":"rep","preset":"replicate","secret_file":"rep.secret"}]}`,
			"rep.secret":     "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := serve(t, dsn, "--providers", filepath.Join(folder, "providers.json"))
		for _, line := range []string{"grant alice 7 --key k", "job create j --owner alice --cost 7",
			"job submit j --provider rep", "job accepted j --attempt 1 --upstream-id u"} {
			must(t, dsn, strings.Fields(line)...)
		}
		keys, err := webhook.ParseKeys(webhook.Standard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		if err != nil {
			t.Fatal(err)
		}
		body := `{"id":"u","status":"succeeded"}`
		for want, id := range map[string]string{`{"verdict":"won"}`: "m", `"code":"UNAUTHENTICATED"`: ""} {
			request, err := http.NewRequest(http.MethodPost, s.url+"/v1/callbacks/rep", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if id != "" {
				if request.Header, err = webhook.Sign(keys, id, time.Now(), []byte(body)); err != nil {
					t.Fatal(err)
				}
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("got %s, %v, want %s", text, err, want)
			}
			_ = response.Body.Close() // it is read
		}
		if o := must(t, dsn, "job", "show", "j"); !strings.Contains(o, "completed") {
			t.Errorf("got %s", o)
		}
	})
}

// TestServePolls: a server asks the providers of its file, and settles what they say has ended.
func TestServePolls(t *testing.T) {
	dsn := dbtest.SQLite(t)
	fake, err := fakeprovider.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fake.Close() })
	file := writeFile(t, "providers.json", `{"providers":[{"name":"fake","poll":{"url":"`+fake.URL+`/jobs/{id}",
		"body":{"status":"/outcome"},"outcomes":{"completed":"completed"}}}]}`)
	refused(t, dsn, 2, `provider "fake": poll.url: is without TLS`, "serve", "--providers", file, "--poll")
	s := serve(t, dsn, "--providers", file, "--poll", "--allow-private")
	orders := &fakeprovider.Client{URL: fake.URL, HTTP: client}
	id := orders.Create(t.Context(), fakeprovider.Order{Job: "j", Attempt: 1}).UpstreamID
	for _, line := range []string{"grant alice 7 --key k", "job create j --owner alice --cost 7",
		"job submit j --provider fake", "job accepted j --attempt 1 --upstream-id " + id} {
		must(t, dsn, strings.Fields(line)...)
	}
	began := time.Now()
	for !strings.Contains(must(t, dsn, "job", "show", "j"), "completed") {
		if time.Sleep(100 * time.Millisecond); time.Since(began) > time.Minute {
			t.Fatalf("nobody asks: %s", s.stderr)
		}
	}
	if exit := s.end(syscall.SIGTERM); exit != 0 || fake.Asked(id) != 1 {
		t.Errorf("exit %d, asked %d times: %s", exit, fake.Asked(id), s.stderr)
	}
}

// TestServeKilled: what was acknowledged before the process was killed is there afterwards.
func TestServeKilled(t *testing.T) {
	dsn := dbtest.SQLite(t)
	s := serve(t, dsn)
	must(t, dsn, "grant", "alice", "100000", "--key", "k")
	var mutex sync.Mutex
	acknowledged := map[string]bool{}
	var clients sync.WaitGroup
	for client := range 8 {
		clients.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("j%d-%d", client, n)
				var answer any
				status, err := s.post("/v1/jobs", `{"id":"`+id+`","owner":"alice","cost":1}`, &answer)
				if err != nil {
					return // it is dead
				}
				if status == 201 {
					mutex.Lock()
					acknowledged[id] = true
					mutex.Unlock()
				}
			}
		})
	}
	enough := func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return len(acknowledged) >= 5
	}
	for deadline := time.Now().Add(time.Minute); !enough() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	s.end(syscall.SIGKILL)
	clients.Wait()
	listed := map[string]bool{}
	for after := "a"; ; {
		var list struct{ Items []struct{ ID string } }
		text := must(t, dsn, "job", "list", "--limit", "1000", "--json", "--after", after)
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for _, job := range list.Items {
			listed[job.ID], after = true, job.ID
		}
		if len(list.Items) < 1000 {
			break
		}
	}
	if len(acknowledged) < 5 {
		t.Errorf("only %d jobs were acknowledged", len(acknowledged))
	}
	for id := range acknowledged {
		if !listed[id] {
			t.Errorf("%s was acknowledged and is gone", id)
		}
	}
	must(t, dsn, "audit")
}

// told is what one observer of a job was told.
type told struct {
	Won      bool
	Reported string
	Job      struct{ Status string }
}

// TestTwoServers: two processes serve one ledger; 16 observers of each of 200 jobs report over HTTP. One
// wins, and every other is told how the winner ended the job.
func TestTwoServers(t *testing.T) {
	const jobs, observers = 200, 16
	dbtest.Each(t, func(t *testing.T, dsn string) {
		servers := []*served{serve(t, dsn), serve(t, dsn)}
		must(t, dsn, "grant", "alice", "100000", "--key", "k")
		var group sync.WaitGroup
		answers := make([][observers]told, jobs)
		job := func(n int) {
			body := fmt.Sprintf(`{"id":"j%d","owner":"alice","cost":7}`, n)
			var made any
			if status, err := servers[n%2].post("/v1/jobs", body, &made); err != nil || status != 201 {
				t.Errorf("job %d: %d, %v, %v", n, status, made, err)
			}
			var race sync.WaitGroup
			for o := range observers {
				race.Go(func() {
					outcome := []string{"completed", "failed", "canceled"}[o/2%3]
					status, err := servers[o%2].post(fmt.Sprintf("/v1/jobs/j%d/reports", n),
						`{"outcome":"`+outcome+`","source":"callback"}`, &answers[n][o])
					if err != nil || status != 200 || answers[n][o].Reported != outcome {
						t.Errorf("job %d, observer %d: %d, %+v, %v", n, o, status, answers[n][o], err)
					}
				})
			}
			race.Wait()
		}
		for worker := range 8 {
			group.Go(func() {
				for n := worker; n < jobs; n += 8 {
					job(n)
				}
			})
		}
		group.Wait()
		wins := [2]int{}
		for n := range answers {
			winners := 0
			for o, a := range answers[n] {
				if a.Job.Status != answers[n][0].Job.Status {
					t.Errorf("job %d: observers were told %q and %q", n, a.Job.Status, answers[n][0].Job.Status)
				}
				if a.Won {
					winners++
					wins[o%2]++
					if a.Reported != a.Job.Status {
						t.Errorf("job %d: %q won, and the job is %q", n, a.Reported, a.Job.Status)
					}
				}
			}
			if winners != 1 {
				t.Errorf("job %d has %d winners", n, winners)
			}
		}
		t.Logf("one server has the winner of %d jobs, the other of %d", wins[0], wins[1])
		for _, s := range servers {
			if exit := s.end(syscall.SIGTERM); exit != 0 {
				t.Errorf("exit %d, %s", exit, s.stderr)
			}
		}
		must(t, dsn, "audit", "--quiescent")
	})
}
