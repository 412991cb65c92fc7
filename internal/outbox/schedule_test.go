package outbox

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"jobledger/internal/httpcall"
	"jobledger/ledger"
)

func TestWaits(t *testing.T) {
	for tries, want := range map[int64]time.Duration{1: 5 * time.Second, 2: 5 * time.Minute, 9: 24 * time.Hour} {
		least, most := 100*time.Hour, time.Duration(0)
		for range 200 {
			wait, more := waits(Schedule, tries)
			if !more {
				t.Fatalf("nothing after try %d", tries)
			}
			least, most = min(least, wait), max(most, wait)
		}
		if least < want || most > want+want/10 || most == least {
			t.Errorf("after try %d: %v to %v, want %v and up to a tenth more", tries, least, most, want)
		}
	}
	for _, tries := range []int64{10, 11} {
		if _, more := waits(Schedule, tries); more {
			t.Errorf("a try after try %d", tries)
		}
	}
}

// How long an endpoint is left alone: as it says, within a bound, and for a while if it is only too busy.
func TestPause(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status int
		header string
		want   time.Duration
	}{
		{503, "120", 2 * time.Minute},
		{429, "Tue, 01 Jan 2030 00:02:00 GMT", 2 * time.Minute},
		{503, "9999999", 24 * time.Hour},
		{503, "Wed, 01 Jan 2031 00:00:00 GMT", 24 * time.Hour},
		{503, "99999999999999999999", 0},
		{503, "Mon, 01 Jan 2029 00:00:00 GMT", 0},
		{500, "", 0},
		{500, "7", 7 * time.Second},
		{429, "", 30 * time.Second},
		{502, "soon", 30 * time.Second},
		{504, "-5", 30 * time.Second},
		{429, "0", 30 * time.Second},
	} {
		h := http.Header{"Retry-After": {c.header}}
		if got := pause(c.status, h, now); got != c.want {
			t.Errorf("%d, %q: %v, want %v", c.status, c.header, got, c.want)
		}
	}
	if got := pause(0, nil, now); got != 0 {
		t.Errorf("without an answer: %v", got)
	}
}

// A call that the sender gave up itself is no failure of the receiver, not even at the last try: it is made
// again at once, and the endpoint is not paused.
func TestGivenUpByTheSender(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &Sender{o: Options{Schedule: make([]time.Duration, 3), Clock: func() time.Time { return now }}}
	d := &ledger.ClaimedDelivery{Delivery: ledger.Delivery{Tries: 3}}
	ctx, end := context.WithCancel(t.Context())
	if said := s.judge(ctx, d, httpcall.Answer{}, io.ErrUnexpectedEOF); said.RetryAt != 0 {
		t.Errorf("the receiver failed for the last time: %+v", said)
	}
	end()
	said := s.judge(ctx, d, httpcall.Answer{}, ctx.Err())
	if said.RetryAt != ledger.At(now) || said.PauseTill != 0 || said.Delivered {
		t.Errorf("the sender ended: %+v", said)
	}
	if said := s.judge(ctx, d, httpcall.Answer{Status: 500}, nil); said.RetryAt != 0 {
		t.Errorf("the receiver answered in time: %+v", said)
	}
}

// What a receiver says fits its column, and is one line of text.
func TestClean(t *testing.T) {
	for said, want := range map[string]string{
		"plain": "plain", "a\nb\x00c": "a b c", "\xff": "?", strings.Repeat("é", 150): strings.Repeat("é", 100),
		"x" + strings.Repeat("é", 150): "x" + strings.Repeat("é", 99),
	} {
		if got := clean(said); got != want {
			t.Errorf("%q: %q", said, got)
		}
	}
}
