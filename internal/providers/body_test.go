package providers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/internal/httpcall"
	"jobledger/internal/providers"
	"jobledger/ledger"
)

func say(s providers.Said) string {
	cost := "<nil>"
	if s.Cost != nil {
		cost = fmt.Sprint(*s.Cost)
	}
	return fmt.Sprint(s.UpstreamID, " ", s.Job, " ", s.Attempt, " ", s.Word, " ", s.Outcome, " ", cost)
}

// reads checks what a body says.
func reads(t *testing.T, p *providers.Provider, body, want string) {
	t.Helper()
	said, err := p.Read([]byte(body))
	if got := say(said); err != nil || got != want {
		t.Errorf("%s:\n got %s, %v\nwant %s", body, got, err, want)
	}
}

const full = `{"name":"own","scheme":"hmac-sha256","secret_file":"plain.secret",` + signature + `,
	"body":{"id":"/data/id","status":"/data/state","cost":"/data/cost","job":"/meta/job","attempt":"/meta/n"},
	"outcomes":{"done":"completed","true":"completed","2":"failed","void":"canceled","late":"timed_out"}}`

func TestRead(t *testing.T) {
	p := one(t, full)
	for _, c := range [][2]string{
		{`{"data":{"id":"u","state":"done","cost":7},"meta":{"job":"j","n":2}}`, "u j 2 done completed 7"},
		{`{"data":{"id":"u","state":"done","cost":"7"},"meta":{"job":"j","n":"2"}}`, "u j 2 done completed 7"},
		{`{"data":{"id":"u","state":"done","cost":0}}`, "u  0 done completed 0"},
		{`{"data":{"id":"u","state":"done","cost":null},"meta":null}`, "u  0 done completed <nil>"},
		{`{"data":{"state":"done"},"meta":{"job":"j"}}`, " j 0 done completed <nil>"},
		{`{"data":{"id":13,"state":true}}`, "13  0 true completed <nil>"},
		{`{"data":{"id":"u","state":2,"cost":"a lot"}}`, "u  0 2 failed <nil>"},
		{`{"data":{"id":"u","state":"void","cost":-1}}`, "u  0 void canceled <nil>"},
		{`{"data":{"id":"u","state":"late"}}`, "u  0 late timed_out <nil>"},
		{`{"data":{"id":"u","state":"DONE"}}`, "u  0 DONE  <nil>"},
		{`{"data":{"id":"u","state":""}}`, "u  0   <nil>"},
		{`{"data":{"id":"u","state":"done"},"other":{"A":1,"a":2,"t":"\ud83d"}}`, "u  0 done completed <nil>"},
	} {
		reads(t, p, c[0], c[1])
	}
}

// B100: what cannot be understood in one way is not understood at all, and the message names the member.
func TestB100ReadRefuses(t *testing.T) {
	p := one(t, full)
	for _, c := range [][2]string{
		{`{"data":{"id":"u","state":"void","state":"done"}}`, `body: "/data/state": the member is there twice`},
		{`{"data":{"id":"u","state":"void","State":"done"}}`, `body: "/data/state": the document has the member`},
		{`{"data":{"id":"u","ſtate":"void","state":"done"}}`, `body: "/data/state": the document has the member`},
		{`{"data":{"id":"u","ID":"v","state":"done"}}`, `body: "/data/id": the document has the member as`},
		{`{"data":{"id":"u","state":"done"},"Data":{}}`, `body: "/data": the document has the member as`},
		{`{"data":{"id":"u","state":"done"}}{}`, `body: there is more after the end`},
		{strings.Repeat("[", 100_000), `body: `},
		{``, `body: the document is empty`},
		{`{"data":{"id":"u"}}`, `status: there is nothing at "/data/state"`},
		{`{"data":{"id":"u","state":null}}`, `status: there is nothing at "/data/state"`},
		{`{"data":{"id":"u","state":["done"]}}`, `status: at "/data/state" in the body is neither a text`},
		{`{"data":{"id":"u","state":"d\ud83d"}}`, `has a character that could not be read`},
		{`[]`, `status: there is nothing`},
		{`{"data":{"state":"done"}}`, `id: there is nothing at "/data/id"`},
		{`{"data":{"id":"","state":"done"}}`, `id: is empty`},
		{`{"data":{"id":"u","state":"done"},"meta":{"job":" j"}}`, `job: " j" begins or ends with space`},
		{`{"data":{"id":"u\n","state":"done"}}`, `id: "u\n" has a control character`},
		{`{"data":{"id":"u","state":"done","cost":1.5}}`, `cost: "1.5" is not a whole number`},
		{`{"data":{"id":"u","state":"done","cost":1.0}}`, `cost: "1.0" is not a whole number`},
		{`{"data":{"id":"u","state":"done","cost":-1}}`, `cost: "-1" is not a whole number`},
		{`{"data":{"id":"u","state":"done","cost":1e3}}`, `cost: "1e3" is not a whole number`},
		{`{"data":{"id":"u","state":"done","cost":9007199254740992}}`, `number from 0 to 9007199254740991`},
		{`{"data":{"id":"u","state":"done","cost":"007"}}`, `cost: "007" is not a whole number`},
		{`{"data":{"id":"u","state":"done","cost":""}}`, `cost: "" is not a whole number`},
		{`{"data":{"id":"u","state":"done"},"meta":{"n":0}}`, `attempt: 0 is out of range`},
		{`{"data":{"id":"u","state":"running"},"meta":{"n":"first"}}`, `attempt: "first" is not a whole number`},
		{`{"data":{"id":"` + strings.Repeat("u", 256) + `","state":1}}`, `id: has 256 bytes`},
	} {
		said, err := p.Read([]byte(c[0]))
		if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), c[1]) ||
			said != (providers.Said{}) {
			t.Errorf("%.80s:\n got %v, %v\nwant %s", c[0], said, err, c[1])
		}
	}
}

// An answer to a poll need not name its job if there is nowhere to look for the id.
func TestReadPollWithoutID(t *testing.T) {
	for _, entry := range []string{
		`{"name":"own","poll":{"url":"https://own.example/{id}","body":{"status":"/s"},
			"outcomes":{"done":"completed"}}}`,
		`{` + plain + `,` + signature + `,
			"poll":{"url":"https://own.example/{id}","body":{"id":"-","status":"/s"}}}`,
	} {
		said, err := one(t, entry).Poll.Read([]byte(`{"s":"done"}`))
		if err != nil || say(said) != "  0 done completed <nil>" {
			t.Errorf("%s: got %s, %v", entry, say(said), err)
		}
	}
}

// An answer to a poll names its job where the callbacks do. Its words and pointers can be others.
func TestReadPoll(t *testing.T) {
	p := one(t, `{`+plain+`,`+signature+`,"poll":{"url":"http://127.0.0.1:1/{id}?k={id}","header":"X-Api: v1",
		"least":"100ms","most":"1s","timeout":"1s","body":{"status":"/outcome"},
		"outcomes":{"completed":"completed"}}}`)
	said, err := p.Poll.Read([]byte(`{"outcome":"completed","state":"x","id":"u"}`))
	if got := say(said); err != nil || got != "u  0 completed completed <nil>" {
		t.Errorf("got %s, %v", got, err)
	}
	said, err = p.Poll.Read([]byte(`{"outcome":"done","id":"v"}`))
	if err != nil || say(said) != "v  0 done  <nil>" {
		t.Errorf("got %s, %v", say(said), err)
	}
	for _, body := range []string{`{"outcome":"completed"}`, `{"outcome":"completed","id":null}`} {
		said, err := p.Poll.Read([]byte(body))
		if ledger.CodeOf(err) != ledger.Invalid || said != (providers.Said{}) ||
			!strings.Contains(err.Error(), `id: there is nothing at "/id"`) {
			t.Errorf("%s: got %s, %v", body, say(said), err)
		}
	}
	request, err := p.Poll.Request(t.Context(), "a/b&c")
	if err != nil || request.URL.String() != "http://127.0.0.1:1/a%2Fb&c?k=a%2Fb%26c" ||
		request.Header.Get("X-Api") != "v1" {
		t.Errorf("got %v, %v", request, err)
	}
	for _, id := range []string{"", ".", ".."} {
		if _, err := p.Poll.Request(t.Context(), id); ledger.CodeOf(err) != ledger.Invalid {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := p.Poll.Check(httpcall.Options{}); err == nil {
		t.Error("a private address is no one's to allow but the operator's")
	}
	for tries, most := range []time.Duration{100, 100, 200, 400, 800, 1000, 1000} {
		for range 100 {
			d := p.Poll.Wait(int64(tries))
			if d > most*time.Millisecond || d < most*time.Millisecond/2 {
				t.Fatalf("after %d tries: %v", tries, d)
			}
		}
	}
	if d := p.Poll.Wait(1 << 60); d > time.Second {
		t.Errorf("got %v", d)
	}
}

func TestReport(t *testing.T) {
	cost := int64(3)
	s := providers.Said{UpstreamID: "u", Job: "x", Outcome: ledger.Completed, Cost: &cost}
	want := ledger.Report{Job: "j", Outcome: ledger.Completed, Source: ledger.Poll, Attempt: 2, UpstreamID: "u",
		Cost: &cost}
	if got := s.Report("j", 2, ledger.Poll); got != want {
		t.Errorf("got %+v", got)
	}
}

// FuzzBody: no body makes the reader panic, and what it takes is within what the ledger takes.
func FuzzBody(f *testing.F) {
	for _, text := range []string{
		`{"data":{"id":"u","state":"done","cost":7},"meta":{"job":"j","n":2}}`, `{"data":{"id":13,"state":true}}`,
		`{"data":{"id":"u","state":"void","State":"done"}}`, `{"data":[{"id":"u"}]}`,
		`{"data":{"id":"u","state":2}}`,
		`{"data":{"id":"u","state":"done","cost":"0"}}`,
	} {
		f.Add([]byte(text))
	}
	p := one(f, full)
	f.Fuzz(func(t *testing.T, body []byte) {
		said, err := p.Read(body)
		if err != nil {
			if ledger.CodeOf(err) != ledger.Invalid || said != (providers.Said{}) {
				t.Errorf("got %+v, %v", said, err)
			}
			return
		}
		within := func(n int64) bool { return n >= 0 && n <= ledger.AmountMax }
		if !json.Valid(body) || said.UpstreamID+said.Job == "" || !within(said.Attempt) ||
			said.Cost != nil && (!within(*said.Cost) || said.Outcome != ledger.Completed) {
			t.Errorf("got %+v", said)
		}
		for _, id := range []string{said.UpstreamID, said.Job} {
			if id != "" && ledger.CheckID("id", id) != nil {
				t.Errorf("got the id %q", id)
			}
		}
	})
}
