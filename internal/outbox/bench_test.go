package outbox_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/outbox"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// patience bounds every wait of these tests; a wait that takes longer is a hang.
const patience = 30 * time.Second

// bench is a ledger with jobs, and a clock that the test moves beside the real one.
type bench struct {
	*testing.T
	*ledger.Ledger
	dsn   string
	ahead atomic.Int64 // nanoseconds
}

func each(t *testing.T, fn func(b *bench)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, dsn string) {
		b := &bench{T: t, dsn: dsn}
		b.Ledger = b.open()
		_, err := b.Grant(b.Context(), ledger.GrantParams{Owner: "o", Amount: 10000, Key: "g"})
		b.ok(err)
		fn(b)
		r, err := b.Audit(b.Context(), ledger.AuditParams{})
		b.ok(err)
		if !r.OK {
			b.Errorf("audit: %+v", r)
		}
	})
}

func (b *bench) open() *ledger.Ledger {
	b.Helper()
	l, err := ledger.Open(b.Context(), b.dsn, ledger.Options{Clock: b.now})
	b.ok(err)
	b.Cleanup(func() { l.Close() })
	return l
}

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }

func (b *bench) forward(d time.Duration) { b.ahead.Add(int64(d)) }

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// settle makes jobs and settles them as completed.
func (b *bench) settle(jobs ...string) {
	b.Helper()
	for _, job := range jobs {
		_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: job, Owner: "o", Cost: 1})
		b.ok(err)
		b.report(job, ledger.Completed)
	}
}

func (b *bench) report(job string, o ledger.Outcome) {
	b.Helper()
	_, err := b.Settle(b.Context(), ledger.Report{Job: job, Outcome: o, Source: ledger.Callback})
	b.ok(err)
}

func (b *bench) add(url string) ledger.Endpoint {
	b.Helper()
	r, err := b.AddEndpoint(b.Context(), ledger.EndpointRequest{URL: url, Secret: secret})
	b.ok(err)
	return r.Endpoint
}

// sender makes a sender to this machine, whose waits are short.
func (b *bench) sender(change ...func(*outbox.Options)) *outbox.Sender {
	b.Helper()
	o := outbox.Options{
		AllowPrivate: true, Clock: b.now, Timeout: time.Minute, Every: 5 * time.Millisecond,
		Schedule: []time.Duration{0, time.Microsecond, time.Microsecond, time.Microsecond, time.Microsecond,
			time.Microsecond},
	}
	for _, set := range change {
		set(&o)
	}
	s := outbox.New(b.Ledger, o)
	b.Cleanup(s.Close)
	return s
}

// once sends what is due, and checks how the tries ended.
func (b *bench) once(s *outbox.Sender, want outbox.Sent) {
	b.Helper()
	got, err := s.Once(b.Context())
	b.ok(err)
	if got != want {
		b.Fatalf("sent %+v, want %+v", got, want)
	}
}

// states checks all deliveries: "event status tries last-status".
func (b *bench) states(want ...string) (list []ledger.Delivery) {
	b.Helper()
	list, err := b.Deliveries(b.Context(), ledger.DeliveryFilter{Limit: ledger.PageMax})
	b.ok(err)
	var got []string
	for _, d := range list {
		status := int64(0)
		if d.LastStatus != nil {
			status = *d.LastStatus
		}
		got = append(got, fmt.Sprint(d.Event, " ", d.Status, " ", d.Tries, " ", status))
	}
	b.same(got, want)
	return list
}

func (b *bench) same(got, want []string) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Fatalf("got\n\t%q\nwant\n\t%q", got, want)
	}
}

// receiver is an endpoint that keeps what it got, and answers as it is told.
type receiver struct {
	*httptest.Server
	mutex  sync.Mutex
	events []string // the ids of the events of all calls, in order
	bad    []string // what was wrong with calls
	hooks  []http.Header
	answer func(w http.ResponseWriter, event string, times int)
}

// receive starts a receiver. answer is told how often the event came, this time included.
func (b *bench) receive(answer func(w http.ResponseWriter, event string, times int)) *receiver {
	b.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(r)
	b.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
		if len(r.bad) > 0 {
			b.Errorf("calls that a receiver would refuse: %q", r.bad)
		}
	})
	return r
}

func accept(w http.ResponseWriter, _ string, _ int) { w.WriteHeader(http.StatusNoContent) }

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var m struct{ Type, Timestamp, ID string }
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err == nil {
		err = verify(request.Header, body)
	}
	r.mutex.Lock()
	if err != nil || request.Method != http.MethodPost || m.Timestamp == "" ||
		request.Header.Get("Content-Type") != "application/json" ||
		request.Header.Get(webhook.HeaderID) != outbox.MessageID(m.ID) {
		r.bad = append(r.bad, fmt.Sprint(err, request.Header, string(body)))
	}
	r.events = append(r.events, m.ID)
	r.hooks = append(r.hooks, request.Header)
	times := 0
	for _, event := range r.events {
		if event == m.ID {
			times++
		}
	}
	r.mutex.Unlock()
	r.answer(w, m.ID, times)
}

func verify(h http.Header, body []byte) error {
	keys, err := webhook.ParseKeys(webhook.Standard, secret)
	if err != nil {
		return err
	}
	v, err := webhook.NewVerifier(webhook.StandardWebhooks(), keys)
	if err != nil {
		return err
	}
	at := time.Now()
	if seconds, err := time.ParseDuration(h.Get(webhook.HeaderTimestamp) + "s"); err == nil {
		at = time.Unix(int64(seconds/time.Second), 0) // the clock of the bench may be ahead
	}
	return v.Verify(h, body, at)
}

func (r *receiver) got() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.events)
}
