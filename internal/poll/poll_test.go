package poll_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/fakeprovider"
	"jobledger/internal/poll"
	"jobledger/internal/providers"
	"jobledger/ledger"
)

// stage is a ledger, a provider that runs, and a poller between them.
type stage struct {
	*testing.T
	*ledger.Ledger
	fake *fakeprovider.Provider
	log  *bytes.Buffer
	set  *providers.Set
}

// each runs a test on a new stage for each engine.
func each(t *testing.T, test func(s *stage)) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		fake, err := fakeprovider.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { fake.Close() })
		l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		s := &stage{T: t, Ledger: l, fake: fake, log: new(bytes.Buffer)}
		s.set = s.providers(entry("acme", fake.URL+"/jobs/{id}"))
		test(s)
	})
}

const token = "token-that-nobody-may-see"

// entry is a provider of the file that is polled at an address.
func entry(name, url string) string {
	return fmt.Sprintf(`{"name":%q,"poll":{"url":%q,"header":"X-Key: {secret}","secret_file":"token",
		"least":"30s","most":"1m","timeout":"10s",
		"body":{"id":"/id","status":"/outcome","cost":"/cost","job":"/job","attempt":"/attempt"},
		"outcomes":{"completed":"completed","failed":"failed"}}}`, name, url)
}

// providers loads a file of these entries.
func (s *stage) providers(entries ...string) *providers.Set {
	s.Helper()
	folder := s.TempDir()
	path := filepath.Join(folder, "providers.json")
	for name, text := range map[string]string{
		path: `{"providers":[` + strings.Join(entries, ",") + `]}`, filepath.Join(folder, "token"): token,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			s.Fatal(err)
		}
	}
	set, err := providers.Load(path)
	if err != nil {
		s.Fatal(err)
	}
	return set
}

func (s *stage) poller(o poll.Options) *poll.Poller {
	s.Helper()
	o.AllowPrivate, o.Log = true, slog.New(slog.NewJSONHandler(s.log, nil))
	p, err := poll.New(s.Ledger, s.set, o)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// submitted makes a job that a provider took under an id of its own, and that is due to be asked for.
func (s *stage) submitted(job, provider string) (upstream string) {
	s.Helper()
	client := &fakeprovider.Client{URL: s.fake.URL, HTTP: &http.Client{Timeout: 10 * time.Second}}
	upstream = client.Create(s.Context(), fakeprovider.Order{Job: job, Attempt: 1}).UpstreamID
	_, errs1 := s.Grant(s.Context(), ledger.GrantParams{Owner: "alice", Key: job, Amount: 7})
	_, errs2 := s.CreateJob(s.Context(), ledger.JobParams{ID: job, Owner: "alice", Cost: 7,
		Mode: ledger.ModeHold})
	_, errs3 := s.Submit(s.Context(), job, provider)
	_, errs4 := s.Accepted(s.Context(), job, 1, upstream)
	for _, err := range []error{errs1, errs2, errs3, errs4, s.WakePoll(s.Context(), job)} {
		if err != nil {
			s.Fatal(err)
		}
	}
	return upstream
}

// once wakes a job and polls once; it must make so many calls.
func (s *stage) once(p *poll.Poller, job string, calls int) {
	s.Helper()
	if err := s.WakePoll(s.Context(), job); err != nil {
		s.Fatal(err)
	}
	if n, err := p.Once(s.Context()); err != nil || n != calls {
		s.Errorf("made %d calls, %v, want %d", n, err, calls)
	}
}

// stands checks a job's status and, if it has ended, what it cost and who said so.
func (s *stage) stands(job, want string) {
	s.Helper()
	j, err := s.Job(s.Context(), job)
	if err != nil {
		s.Fatal(err)
	}
	got := string(j.Status)
	if j.SettledCost != nil {
		got += fmt.Sprint(" ", *j.SettledCost, " ", *j.SettledSource)
	}
	if got != want {
		s.Errorf("job %s is %s, want %s", job, got, want)
	}
}

// Whatever goes wrong says nothing of the job: it is asked for again, and only the provider's own word ends
// it.
func TestPollSettles(t *testing.T) {
	each(t, func(s *stage) {
		id := s.submitted("j", "acme")
		p := s.poller(poll.Options{})
		s.set = s.providers(strings.Replace(entry("acme", s.fake.URL+"/jobs/{id}"), `"10s"`, `"1s"`, 1))
		hasty := s.poller(poll.Options{})
		for act, cause := range map[fakeprovider.Act]string{
			fakeprovider.Fail: "status 500", fakeprovider.Missing: "status 404", fakeprovider.Malformed: "body: ",
			fakeprovider.Drop: "EOF", fakeprovider.Hang: "no answer in time", fakeprovider.Redirect: "status 302",
			fakeprovider.Endless: "more than 16777216 bytes",
		} {
			s.fake.Polls(act)
			s.log.Reset()
			asker := p
			if act == fakeprovider.Hang {
				asker = hasty
			}
			s.once(asker, "j", 1)
			s.stands("j", "processing")
			if !strings.Contains(s.log.String(), cause) {
				t.Errorf("%s: the log is %s", act, s.log)
			}
			if n, err := p.Once(t.Context()); n != 0 || err != nil {
				t.Errorf("%s: asked again at once: %d, %v", act, n, err)
			}
		}
		s.fake.Polls(fakeprovider.Accept)
		s.log.Reset()
		for _, word := range []string{"running", "Failed", "error"} {
			s.fake.End(id, word)
			s.once(p, "j", 1)
			s.stands("j", "processing")
		}
		s.fake.End(id, "completed")
		s.once(p, "j", 1)
		s.stands("j", "completed 7 poll")
		s.once(p, "j", 0)
		if s.log.Len() > 0 || strings.Contains(s.log.String(), token) {
			t.Errorf("the log is %s", s.log)
		}
		if a, err := s.Audit(t.Context(), ledger.AuditParams{}); err != nil || !a.OK {
			t.Errorf("the audit: %+v, %v", a, err)
		}
	})
}

// An answer that is about something else, or that cannot be, ends nothing; one that names the cost does.
func TestAnswers(t *testing.T) {
	each(t, func(s *stage) {
		answers := make(chan string, 1)
		s.submitted("j", "own")
		s.set = s.providers(entry("own", serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Key") != token || r.Method != http.MethodGet || r.URL.Path != "/up-1" {
				t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
			}
			_, _ = w.Write([]byte(<-answers))
		})+"/{id}"))
		p := s.poller(poll.Options{})
		for _, c := range [][2]string{
			{`{"id":"up-2","outcome":"completed"}`, `the answer is about \"up-2\", not \"up-1\"`},
			{`{"outcome":"completed"}`, `id: there is nothing at \"/id\"`},
			{`{"job":"j","attempt":1,"outcome":"completed"}`, `id: there is nothing at \"/id\"`},
			{`{"id":"up-1","job":"k","outcome":"completed"}`, `the answer is about job \"k\"`},
			{`{"id":"up-1","attempt":2,"outcome":"completed"}`, "the answer is about attempt 2, not 1"},
			{`{"id":"up-1","outcome":"completed","cost":8}`, "completed: cost: 8 is more than the job's cost"},
			{`{"id":"up-1","outcome":"completed","cost":1.5}`, "is not a whole number"},
			{`{"outcome":"failed","Outcome":"completed"}`, "in another case"},
			{`{"state":"completed"}`, "status: there is nothing"},
			{``, "the document is empty"},
		} {
			s.log.Reset()
			answers <- c[0]
			s.once(p, "j", 1)
			s.stands("j", "processing")
			if !strings.Contains(s.log.String(), c[1]) || strings.Contains(s.log.String(), token) {
				t.Errorf("%s: the log is %s", c[0], s.log)
			}
		}
		answers <- `{"id":"up-1","job":"j","attempt":1,"outcome":"completed","cost":3,"input":"` +
			strings.Repeat("x", 2<<20) + `"}` // more than a callback may have
		s.once(p, "j", 1)
		s.stands("j", "completed 3 poll")
	})
}

// A provider that hangs holds up neither another provider nor a writer, and when the poller ends its tasks
// are free at once.
func TestSlowProvider(t *testing.T) {
	each(t, func(s *stage) {
		hanging := make(chan struct{}, 100)
		s.set = s.providers(strings.Replace(entry("slow", serve(t, func(_ http.ResponseWriter, r *http.Request) {
			hanging <- struct{}{}
			<-r.Context().Done()
		})+"/{id}"), `"timeout":"10s"`, `"timeout":"1m"`, 1), entry("acme", s.fake.URL+"/jobs/{id}"))
		const slow = 12
		for i := range slow {
			s.submitted(fmt.Sprint("slow", i), "slow")
		}
		for i := range 8 {
			s.submitted(fmt.Sprint("j", i), "acme")
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		p := s.poller(poll.Options{Every: 20 * time.Millisecond, Concurrent: 4})
		go func() {
			p.Run(ctx)
			close(ended)
		}()
		for range 4 {
			<-hanging
		}
		for i := range 8 {
			s.wait(fmt.Sprint("j", i))
			s.stands(fmt.Sprint("j", i), "completed 7 poll")
		}
		s.submitted("late", "acme") // writes while calls are under way
		s.wait("late")
		end()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("the poller does not end")
		}
		tasks, err := s.ClaimPolls(t.Context(), []string{"slow"}, 100, time.Minute)
		if err != nil || len(tasks) != slow {
			t.Errorf("%d of %d tasks are free: %v", len(tasks), slow, err)
		}
		if len(hanging) > 0 {
			t.Errorf("%d calls more than there are slots", len(hanging))
		}
	})
}

// wait waits until a job has ended.
func (s *stage) wait(job string) {
	s.Helper()
	for range 3000 {
		if j, err := s.Job(s.Context(), job); err != nil || !j.Status.Open() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.Fatalf("job %s is still open", job)
}

// Pollers on one ledger share the work: each job is asked for once when it is due.
func TestPollersShare(t *testing.T) {
	each(t, func(s *stage) {
		var ids []string
		for i := range 16 {
			ids = append(ids, s.submitted(fmt.Sprint("j", i), "acme"))
		}
		var group sync.WaitGroup
		for range 3 {
			p := s.poller(poll.Options{Concurrent: 5})
			group.Go(func() {
				for {
					if n, err := p.Once(t.Context()); n == 0 {
						if err != nil {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		group.Wait()
		for i, id := range ids {
			s.stands(fmt.Sprint("j", i), "completed 7 poll")
			if n := s.fake.Asked(id); n != 1 {
				t.Errorf("%s was asked for %d times", id, n)
			}
		}
	})
}

// What a poller had claimed when it was killed is asked for by another after its lease.
func TestLeaseOfADeadPoller(t *testing.T) {
	each(t, func(s *stage) {
		id := s.submitted("j", "acme")
		began := time.Now()
		tasks, err := s.ClaimPolls(t.Context(), []string{"acme"}, 10, time.Second)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("got %+v, %v", tasks, err)
		}
		p := s.poller(poll.Options{})
		for n := 0; n == 0; time.Sleep(10 * time.Millisecond) {
			if n, err = p.Once(t.Context()); err != nil || time.Since(began) > 30*time.Second {
				t.Fatalf("nobody asks: %v", err)
			}
		}
		if s.stands("j", "completed 7 poll"); time.Since(began) < time.Second || s.fake.Asked(id) != 1 {
			t.Errorf("asked %d times, after %v", s.fake.Asked(id), time.Since(began))
		}
	})
}

func serve(t *testing.T, h http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections() // those that hang
		s.Close()
	})
	return s.URL
}
