package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"jobledger/internal/providers"
	"jobledger/ledger"
)

// callbackMax bounds the body of a callback, in bytes: providers send what was made along.
const callbackMax = 1 << 20

// strangersMax bounds the callbacks that are read and not verified yet, at once.
const strangersMax = 64

// callbackPath is what the path of a callback begins with.
const callbackPath = "/v1/callbacks/"

// CallbackAnswer is what a callback that was taken is answered with.
type CallbackAnswer struct {
	Verdict ledger.Verdict `json:"verdict,omitempty"` // what became of the report; empty: it was none
	Polled  bool           `json:"polled,omitempty"`  // the provider will be asked at once instead
}

// addCallbacks adds where the providers report. It is no operation of the API: what it takes is each
// provider's own, and a signature stands in for the token.
func (s *Server) addCallbacks() {
	s.mux.Handle("POST "+callbackPath+"{provider}", http.HandlerFunc(s.callback))
}

// callback handles the "POST /v1/callbacks/{provider}" route. A provider repeats what is not answered with
// 2xx: so whatever is settled, late, repeated or about an earlier attempt gets 200, and 503 says that it
// should come again.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	a, err := s.takeCallback(w, r)
	if err != nil {
		newProblem(err).send(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = encode(w, a) // it holds nothing that cannot be encoded
}

func (s *Server) takeCallback(w http.ResponseWriter, r *http.Request) (CallbackAnswer, error) {
	p := s.options.Providers.Find(r.PathValue("provider"))
	if p == nil {
		return CallbackAnswer{}, &ledger.Error{Code: ledger.NotFound, Message: "there is no such provider"}
	}
	said, err := s.listen(w, r, p)
	if err != nil {
		return CallbackAnswer{}, err
	}
	leave, err := s.enter(s.slots)
	if err != nil {
		return CallbackAnswer{}, err
	}
	defer leave()
	return s.hear(r, p, &said)
}

// listen reads what a provider says, if it is the provider. Until that is known it takes a slot of the
// strangers, so that those who send slowly, or nothing, keep nobody from the API.
func (s *Server) listen(
	w http.ResponseWriter, r *http.Request, p *providers.Provider,
) (providers.Said, error) {
	leave, err := s.enter(s.strangers)
	if err != nil {
		return providers.Said{}, err
	}
	defer leave()
	body, err := readCallback(w, r)
	if err != nil {
		return providers.Said{}, err
	}
	if err := p.Verify(r.Header, body, time.Now()); err != nil {
		return providers.Said{}, unsigned(err)
	}
	said, err := p.Read(body)
	if err != nil {
		return providers.Said{}, unreadable(err)
	}
	return said, nil
}

// readCallback reads the whole body as it was sent: that is what is signed.
func readCallback(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// A server without deadlines of its own, as in a test, cannot set one.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, callbackMax))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, refuse(http.StatusRequestEntityTooLarge, ledger.Invalid,
			fmt.Sprintf("the body has more than %d bytes", callbackMax))
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, ledger.Invalid, "the body broke off")
	}
	return body, nil
}

// unsigned is the answer to a callback that its provider did not sign. It is always the same: the log has
// the cause.
func unsigned(cause error) error {
	p := newProblem(&ledger.Error{
		Code: ledger.Unauthenticated, Message: "the provider did not sign this; the server's log says why not",
	})
	p.header.Del("WWW-Authenticate") // no token helps
	p.cause = cause
	return p
}

// unreadable tells a body that is no JSON document, which is malformed, from one in which a member is wrong.
func unreadable(err error) error {
	if e, ok := errors.AsType[*ledger.Error](err); ok && e.Field == "body" {
		return refuse(http.StatusBadRequest, ledger.Invalid, e.Message)
	}
	return err
}

// hear does what an authentic callback says.
func (s *Server) hear(
	r *http.Request, p *providers.Provider, said *providers.Said,
) (a CallbackAnswer, err error) {
	if said.Outcome == "" {
		return a, nil // the job is still running, and nobody has to be told
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	on, err := s.ledger.Bind(ctx, ledger.Handles{
		Provider: p.Name, UpstreamID: said.UpstreamID, Job: said.Job, Attempt: said.Attempt,
	})
	if err != nil {
		return a, err
	}
	if p.Authority == providers.PollOnly {
		err := s.ledger.WakePoll(ctx, on.Job)
		return CallbackAnswer{Polled: err == nil}, err
	}
	settled, err := s.counted(ledger.Callback)(
		s.ledger.Settle(ctx, said.Report(on.Job, on.Attempt, ledger.Callback)))
	if ledger.CodeOf(err) == ledger.StaleAttempt {
		return CallbackAnswer{Verdict: ledger.Stale}, nil // it is kept as evidence, and will never be another
	}
	return CallbackAnswer{Verdict: settled.Verdict}, err
}
