package page

import (
	"bufio"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// Every page shows what it is for, complete as it is sent.
func TestPages(t *testing.T) {
	d := newDesk(t, Options{})
	d.busyDay()
	d.look()
	for path, wanted := range map[string][]string{
		"/": {
			"Owners 4", "Open jobs 7", "To reconcile 2", "Conflicts 1", "Dead letters 2", "Audit clean",
			"alice 1 249 964 13 23 0", "team/vision <b>", "pending 4", "img-0006 uncertain connection reset",
			"img-0001 ended failed ; later the poll said completed", "Lots about to expire",
			"500 Internal Server Error", "checks hold",
		},
		"/owners": {"alice", "bob", "team/vision <b>", "zoe 40 0 0 0"},
		"/owners/alice": {
			"Balance over time", "Owner alice", "grant", "consume", "refund", "img-0000", "In the end:",
		},
		"/jobs": {"img-0000 alice completed", "img-0011"},
		"/jobs/img-0001": {
			"Owner bob", "8 credits, used at creation", "Used in the end 0 credits", "callback said failed: won",
			"poll said completed",
			"conflict", "refund", "https://hooks.example/jobs",
		},
		"/jobs/img-0006": {
			"Still open: 13 credits are held", "reconcile it", "attempt 1: uncertain",
		},
		"/reconcile":                     {"img-0006 uncertain", "img-0007 submitting", "acme"},
		"/conflicts":                     {"img-0001 of bob", "ended failed ; later the poll said completed (seen"},
		"/deliveries":                    {"https://hooks.example/jobs", "dead", "pending"},
		"/deliveries?status=dead":        {"dead", "500"},
		"/audit":                         {"checks hold", "holds hash-chain"},
		"/lab":                           {"lost-update", "Start the race", "Nothing has been run yet"},
		"/jobs?status=failed":            {"img-0001"},
		"/jobs?owner=bob&status=pending": {"img-0010 bob pending"},
	} {
		d.shows(path, wanted...)
	}
}

// What is not counted yet is not shown as nothing, and what is empty says what to do.
func TestBeginning(t *testing.T) {
	d := newDesk(t, Options{})
	d.shows("/", "All jobs are being counted", "Being counted", "Being looked for", "Under way",
		"jobledger grant")
	d.shows("/audit", "The first audit is under way")
	d.look()
	d.shows("/", "Owners 0", "Nothing waits for a person", "No report has contradicted", "No credits expire",
		"Nothing was given up", "checks hold")
	d.shows("/owners", "Nobody has credits yet")
	d.shows("/jobs", "There are no jobs yet")
	d.shows("/jobs?status=failed", "No job is like that")
	d.shows("/deliveries", "There are no deliveries")
}

// Every answer keeps a browser from loading anything else, and no page has a style or a script in itself.
func TestStrict(t *testing.T) {
	d := newDesk(t, Options{})
	d.busyDay()
	d.look()
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]|\s(src|href)="[a-z]+:`)
	for _, path := range []string{
		"/", "/owners", "/owners/alice", "/jobs", "/jobs/img-0001", "/reconcile", "/conflicts", "/deliveries",
		"/audit", "/lab", "/nothing", "/page/style.css", "/page/page.js", "/page/icon.svg",
	} {
		a := d.do(http.MethodGet, path, "")
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if !strings.HasPrefix(a.header.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, a.header.Get(name))
			}
		}
		p := a.header.Get("Content-Security-Policy")
		if !strings.Contains(p, "frame-ancestors 'none'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s can be framed, or has scripts in itself: %s", path, p)
		}
		page := strings.HasPrefix(a.header.Get("Content-Type"), "text/html")
		if found := inline.FindString(a.body); found != "" && page {
			t.Errorf("%s has %q in itself", path, found)
		}
	}
}

// A link to a job or an owner leads there, whatever the id is, and shows all of it.
func TestStrangeIDs(t *testing.T) {
	d := newDesk(t, Options{})
	link := regexp.MustCompile(`href="(/(?:jobs|owners)/[^"]*)"`)
	for _, id := range []string{
		"a/b", ".", "..", "/.", "//..", "a/../b", "50%2F50", "x?y#z", `<i>"'&`, "日本語", "a+b c",
		strings.Repeat("long-", 50),
	} {
		d.grant(id, id, 10, 0)
		d.create(id, id, 1, ledger.ModeHold)
		body := d.get(query("/jobs", "owner", id))
		found := 0
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			path := html.UnescapeString(m[1])
			// As a browser does, before it asks.
			resolved, err := url.Parse(d.server.URL)
			d.ok(err)
			if resolved, err = resolved.Parse(path); err != nil {
				t.Fatal(err)
			}
			d.shows(resolved.RequestURI(), strings.Join(strings.Fields(id), " "))
			found++
		}
		if found != 2 {
			t.Errorf("%q: %d links, want one to the job and one to the owner", id, found)
		}
	}
}

// Lists go on where a page ends.
func TestMore(t *testing.T) {
	d := newDesk(t, Options{})
	for i := range pageRows + 3 {
		owner := string(rune('a'+i/26)) + string(rune('a'+i%26))
		d.grant(owner, owner, 5, 0)
		d.create("job-"+owner, owner, 1, ledger.ModeHold)
		d.grant("many", owner+"-", 1, 0)
	}
	next := regexp.MustCompile(`href="([^"]*)">(?:More|Earlier)</a>`)
	for path, last := range map[string]string{
		"/": "many", "/owners": "many", "/jobs": "job-ca", "/jobs?status=pending": "job-ca",
		"/owners/many": "grant",
	} {
		body := d.get(path)
		m := next.FindStringSubmatch(body)
		if m == nil {
			t.Errorf("%s has no more", path)
			continue
		}
		rest := d.get(html.UnescapeString(m[1]))
		if path != "/owners/many" && strings.Contains(text(body), last) || !strings.Contains(text(rest), last) {
			t.Errorf("%s and then %s: %s", path, m[1], text(rest))
		}
		if path != "/" && next.MatchString(rest) {
			t.Errorf("%s has more after all", m[1])
		}
	}
}

// What cannot be shown is told on a page of its own, with its status.
func TestErrors(t *testing.T) {
	d := newDesk(t, Options{})
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/jobs/nobody":            {404, `there is no job "nobody"`},
		"/owners/nobody":          {404, `there is no owner "nobody"`},
		"/elsewhere":              {404, "there is no page here"},
		"/jobs?status=asleep":     {422, "asleep"},
		"/jobs?owner=nobody":      {404, "nobody"},
		"/owners/x?before=first":  {422, "before"},
		"/deliveries?status=lost": {422, "lost"},
		"/lab/runs/7":             {404, "there is no such run"},
		"/lab/runs/7/wrong.svg":   {404, "there is no such run"},
	} {
		a := d.do(http.MethodGet, path, "")
		if a.status != want.status || !strings.Contains(text(a.body), want.text) {
			t.Errorf("%s: %d %s", path, a.status, text(a.body))
		}
	}
	a := d.do(http.MethodPost, "/lab/lessons", "lesson=lost-update", "Sec-Fetch-Site", "cross-site")
	if a.status != http.StatusForbidden {
		t.Errorf("another site may run the lab: %d", a.status)
	}
	if runs, busy := d.page.lab.list(); len(runs) != 0 || busy {
		t.Error("the lab runs for another site")
	}
}

// message is one event of a stream.
type message struct{ event, data string }

// listen gives the events of a stream until it ends.
func (d *desk) listen(path string) <-chan message {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), http.MethodGet, d.server.URL+path, nil)
	d.ok(err)
	r.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultTransport.RoundTrip(r)
	d.ok(err)
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		d.Fatalf("%s: %d, %s", path, response.StatusCode, kind)
	}
	all := make(chan message, 100)
	go func() {
		defer close(all)
		defer response.Body.Close()
		var m message
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			switch key, value, _ := strings.Cut(lines.Text(), ": "); key {
			case "event":
				m.event = value
			case "data":
				_ = json.Unmarshal([]byte(value), &m.data) // a text that is none is seen as one
				all <- m
			}
		}
	}()
	return all
}

// next gives the next event, which must come.
func (d *desk) next(all <-chan message) (m message, open bool) {
	d.Helper()
	select {
	case m, open = <-all:
	case <-time.After(time.Minute):
		d.Fatal("nothing comes")
	}
	return m, open
}

// Who follows a page is told when it has changed, and of the end of the server.
func TestLive(t *testing.T) {
	const bound = time.Second // of an answer: what is followed lasts longer
	d := newBoundedDesk(t, Options{}, bound)
	d.grant("alice", "a", 10, 0)
	all := d.listen("/owners")
	if m, _ := d.next(all); m.event != "main" || !strings.Contains(m.data, "alice") {
		t.Errorf("first came %+v", m)
	}
	time.Sleep(bound + bound/5)
	d.grant("bob", "b", 20, 0)
	if m, _ := d.next(all); m.event != "main" || !strings.Contains(m.data, "bob") {
		t.Errorf("then came %+v", m)
	}
	d.page.stop()
	if m, open := d.next(all); open {
		t.Errorf("after the end came %+v", m)
	}
}

// Those who follow are bounded in number; one more gets no stream, and another can follow when one left.
func TestStreamsAreBounded(t *testing.T) {
	d := newDesk(t, Options{})
	for range streamsMax {
		d.page.streams <- struct{}{}
	}
	a := d.do(http.MethodGet, "/", "", "Accept", "text/event-stream")
	if a.status != http.StatusServiceUnavailable {
		t.Errorf("one more may follow: %d", a.status)
	}
	<-d.page.streams
	if m, _ := d.next(d.listen("/")); m.event != "main" {
		t.Errorf("who follows is told %+v", m)
	}
}

// A browser that has a file already is told that it is still the right one.
func TestFilesAreKept(t *testing.T) {
	d := newDesk(t, Options{})
	for _, path := range []string{"/page/style.css", "/page/page.js", "/page/icon.svg", "/page/timeline.css"} {
		a := d.do(http.MethodGet, path, "")
		if again := d.do(http.MethodGet, path, "", "If-None-Match", a.header.Get("ETag")); again.status != 304 {
			t.Errorf("%s is sent again: %d", path, again.status)
		}
	}
}
