package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

// attemptRequest is the body of POST /v1/jobs/{id}/attempts.
type attemptRequest struct {
	Provider string `json:"provider" maxLength:"255"`
}

// acceptedRequest is the body of .../attempts/{attempt}/accepted.
type acceptedRequest struct {
	UpstreamID string `json:"upstream_id" maxLength:"255" doc:"the provider's id of the attempt"`
}

// rejectedRequest is the body of .../attempts/{attempt}/rejected.
type rejectedRequest struct {
	Evidence string `json:"evidence" maxLength:"1024" doc:"the text of the refusal"`
	Retry    bool   `json:"retry,omitempty" doc:"leave the job open for another attempt under the same hold"`
}

// uncertainRequest is the body of .../attempts/{attempt}/uncertain.
type uncertainRequest struct {
	Reason string `json:"reason" maxLength:"1024" doc:"what went wrong"`
}

type attemptInput struct {
	ID      string `path:"id" maxLength:"255"`
	Attempt number `path:"attempt" doc:"which attempt it is about, from 1"`
	RawBody []byte `contentType:"application/json"`
}

func (s *Server) addAttempts() {
	add(s, route{
		method: http.MethodPost, path: "/v1/jobs/{id}/attempts", id: "submitJob", tag: "attempts",
		need:    ledger.ScopeWrite,
		summary: "Mark the next attempt of a job, before its provider is called",
		about: "What is marked and has no answer yet may be at the provider, and is never paid back on a guess. " +
			"Unless this is answered with 201, the provider must not be called.",
		created: true, body: attemptRequest{},
	}, s.submit)
	for _, a := range []struct {
		verb, id, summary, about string
		body                     any
		handle                   func(context.Context, *attemptInput) (ledger.AnswerResult, error)
	}{
		{"accepted", "attemptAccepted", "Record that the provider took an attempt",
			"If a report settled the job before, the answer says how.", acceptedRequest{}, s.accepted},
		{"rejected", "attemptRejected", "Record that the provider refused an attempt",
			"Settles the job as failed, unless retry is true.", rejectedRequest{}, s.rejected},
		{"uncertain", "attemptUncertain", "Record that nobody knows whether the provider took an attempt",
			"Nothing is returned, and nothing is submitted again, until a report or a reconciliation tells.",
			uncertainRequest{}, s.uncertain},
	} {
		add(s, route{
			method: http.MethodPost, path: "/v1/jobs/{id}/attempts/{attempt}/" + a.verb, id: a.id, tag: "attempts",
			need: ledger.ScopeWrite, summary: a.summary, about: a.about, body: a.body,
		}, a.handle)
	}
}

func (s *Server) submit(ctx context.Context, in *verbInput) (ledger.SubmitResult, error) {
	var b attemptRequest
	if err := decode(in.RawBody, &b); err != nil {
		return ledger.SubmitResult{}, err
	}
	return s.ledger.Submit(ctx, in.ID, b.Provider)
}

// answered reads the answer to an attempt and records it.
func answered[B any](
	in *attemptInput, record func(attempt int64, b B) (ledger.AnswerResult, error),
) (ledger.AnswerResult, error) {
	var b B
	err := decode(in.RawBody, &b)
	attempt, wrong := in.Attempt.within("attempt", 1, ledger.AmountMax)
	if err := first(wrong, err); err != nil {
		return ledger.AnswerResult{}, err
	}
	return record(attempt, b)
}

func (s *Server) accepted(ctx context.Context, in *attemptInput) (ledger.AnswerResult, error) {
	return answered(in, func(attempt int64, b acceptedRequest) (ledger.AnswerResult, error) {
		return s.ledger.Accepted(ctx, in.ID, attempt, b.UpstreamID)
	})
}

func (s *Server) rejected(ctx context.Context, in *attemptInput) (ledger.AnswerResult, error) {
	return answered(in, func(attempt int64, b rejectedRequest) (ledger.AnswerResult, error) {
		return s.ledger.Rejected(ctx, in.ID, attempt, b.Evidence, b.Retry)
	})
}

func (s *Server) uncertain(ctx context.Context, in *attemptInput) (ledger.AnswerResult, error) {
	return answered(in, func(attempt int64, b uncertainRequest) (ledger.AnswerResult, error) {
		return s.ledger.Uncertain(ctx, in.ID, attempt, b.Reason)
	})
}
