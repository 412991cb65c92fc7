package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"jobledger/internal/httpcall"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

const (
	answerMax  = 200              // bytes of an answer that are kept
	recordFor  = 20 * time.Second // that the end of a try may take to be recorded
	recordWait = time.Second
)

// message is the body of a call. Its first three members are those of Standard Webhooks.
type message struct {
	Type      string      `json:"type"`
	Timestamp ledger.Time `json:"timestamp"` // when the event was written
	Data      ledger.JSON `json:"data"`
	ID        string      `json:"id"` // of the event
}

// MessageID is the webhook-id of an event: the same each time that it is sent. It is the SHA-256 of the
// event's id, in hexadecimal, as that one can hold what a webhook-id cannot.
func MessageID(event string) string {
	sum := sha256.Sum256([]byte(event))
	return hex.EncodeToString(sum[:])
}

// send makes one try and records how it ended. It gives the status of the delivery after it, or none if
// another sender has it by now or nobody could record it: it will be sent again then.
func (s *Sender) send(ctx context.Context, d *ledger.ClaimedDelivery) ledger.DeliveryStatus {
	began := s.o.Clock()
	answer, err := s.call(ctx, d)
	took := s.o.Clock().Sub(began)
	said := s.judge(ctx, d, answer, err)
	if said.Status == http.StatusGone {
		s.record(ctx, func(ctx context.Context) error {
			_, err := s.ledger.DisableEndpoint(ctx, d.Endpoint, "it answered 410 Gone")
			return err
		})
	}
	var after ledger.Delivery
	err = s.record(ctx, func(ctx context.Context) (err error) {
		after, err = s.ledger.FinishDelivery(ctx, said)
		return err
	})
	if err != nil {
		s.o.Log.Error("the end of a delivery could not be recorded",
			"endpoint", d.Endpoint, "code", ledger.CodeOf(err), "error", err)
		return ""
	}
	if after.Status != ledger.DeliveryDelivered {
		s.o.Log.Warn("an event was not delivered", "endpoint", d.Endpoint, "tries", after.Tries,
			"status", after.Status, "error", after.LastError)
	}
	s.o.Tried(Try{after, took})
	return after.Status
}

// call signs the event and sends it.
func (s *Sender) call(ctx context.Context, d *ledger.ClaimedDelivery) (httpcall.Answer, error) {
	body, err := json.Marshal(message{d.Event.Type, d.Event.CreatedAt, d.Event.Payload, d.Event.ID})
	if err != nil {
		return httpcall.Answer{}, err
	}
	keys, err := webhook.ParseKeys(webhook.Standard, strings.Join(d.Secrets, " "))
	if err != nil {
		return httpcall.Answer{}, err
	}
	header, err := webhook.Sign(keys, MessageID(d.Event.ID), s.o.Clock(), body)
	if err != nil {
		return httpcall.Answer{}, err
	}
	request, err := http.NewRequest(http.MethodPost, d.URL, bytes.NewReader(body))
	if err != nil {
		return httpcall.Answer{}, err
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "jobledger")
	return s.client.Do(ctx, request)
}

// judge decides what becomes of a delivery by the answer to a try. ctx is that of the call.
func (s *Sender) judge(
	ctx context.Context, d *ledger.ClaimedDelivery, answer httpcall.Answer, err error,
) ledger.DeliveryAnswer {
	now := s.o.Clock()
	said := ledger.DeliveryAnswer{
		Event: d.Event.ID, Endpoint: d.Endpoint, Lease: d.Lease, Status: answer.Status,
		Delivered: err == nil && answer.Status/100 == 2,
	}
	if said.Status < 100 { // three digits that are no status of HTTP, such as 050, are no answer
		said.Status = 0
	}
	switch {
	case said.Delivered:
		return said
	case httpcall.Refused(err):
		said.Error = clean("not called: its address " + err.Error())
	case err != nil:
		said.Error = clean(err.Error())
	default:
		said.Error = clean(strings.TrimSpace(fmt.Sprintf("HTTP %d %s", answer.Status, answer.Body)))
	}
	if err != nil && ctx.Err() != nil { // the sender gave the call up: it was not the receiver
		said.RetryAt = ledger.At(now)
		return said
	}
	if said.Status == http.StatusGone { // it waits until somebody enables the endpoint
		said.RetryAt = ledger.At(now)
		return said
	}
	wait, more := waits(s.o.Schedule, d.Tries)
	rest := pause(answer.Status, answer.Header, now)
	if more {
		said.RetryAt = ledger.At(now.Add(max(wait, rest)))
	}
	if rest > 0 {
		said.PauseTill = ledger.At(now.Add(rest))
	}
	return said
}

// clean makes one line of what a receiver said that every engine can store.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), answerMax)], "")
}

// record writes to the ledger, and again if that may help. The end of the sender's work does not keep it
// from that: what is not recorded is sent again.
func (s *Sender) record(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	defer cancel()
	for {
		err := write(ctx)
		if err == nil || !ledger.CodeOf(err).Info().Retryable || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(recordWait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
