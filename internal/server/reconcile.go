package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

// reconcileAcceptRequest is the body of POST /v1/jobs/{id}/reconcile/accept.
type reconcileAcceptRequest struct {
	UpstreamID string `json:"upstream_id" maxLength:"255" doc:"the provider's id of the attempt"`
	Provider   string `json:"provider,omitempty" maxLength:"255" doc:"if none is on file"`
	Evidence   string `json:"evidence" maxLength:"1024" doc:"what was seen, and where"`
	Operator   string `json:"operator,omitempty" maxLength:"255" doc:"who looked; default: the token's name"`
}

// reconcileRejectRequest is the body of POST /v1/jobs/{id}/reconcile/reject.
type reconcileRejectRequest struct {
	Evidence string `json:"evidence" maxLength:"1024" doc:"what was seen, and where"`
	Operator string `json:"operator,omitempty" maxLength:"255" doc:"who looked; default: the token's name"`
}

type unresolvedInput struct {
	Limit number `query:"limit" maximum:"1000" doc:"at most so many; default 100"`
	After string `query:"after" maxLength:"255" doc:"start after the job with this id"`
}

func (s *Server) addReconcile() {
	add(s, route{
		method: http.MethodGet, path: "/v1/reconcile", id: "listUnresolved", tag: "reconcile",
		need:    ledger.ScopeRead,
		summary: "List the jobs that wait for somebody to ask their provider",
	}, s.unresolved)
	add(s, route{
		method: http.MethodPost, path: "/v1/jobs/{id}/reconcile/accept", id: "reconcileAccept", tag: "reconcile",
		need:    ledger.ScopeOperator,
		summary: "Record evidence that the provider took the job",
		about:   "The job stays open, and its report settles it.",
		body:    reconcileAcceptRequest{},
	}, s.reconcileAccept)
	add(s, route{
		method: http.MethodPost, path: "/v1/jobs/{id}/reconcile/reject", id: "reconcileReject", tag: "reconcile",
		need:    ledger.ScopeOperator,
		summary: "Record evidence that the provider has no such job, or will not finish it",
		about:   "Settles the job as failed and returns its credits.",
		body:    reconcileRejectRequest{},
	}, s.reconcileReject)
}

func (s *Server) unresolved(ctx context.Context, in *unresolvedInput) (list[ledger.Unresolved], error) {
	return paged(in.Limit, func(u *ledger.Unresolved) string { return u.Job },
		func(most int) ([]ledger.Unresolved, error) {
			return s.ledger.UnresolvedJobs(ctx, in.After, most)
		}, givenID("after", in.After))
}

func (s *Server) reconcileAccept(ctx context.Context, in *verbInput) (ledger.AnswerResult, error) {
	var b reconcileAcceptRequest
	if err := decode(in.RawBody, &b); err != nil {
		return ledger.AnswerResult{}, err
	}
	return s.ledger.ReconcileAccept(ctx, ledger.Reconciliation{
		Job: in.ID, Provider: b.Provider, UpstreamID: b.UpstreamID, Evidence: b.Evidence,
		Operator: operator(ctx, b.Operator),
	})
}

func (s *Server) reconcileReject(ctx context.Context, in *verbInput) (ledger.AnswerResult, error) {
	var b reconcileRejectRequest
	if err := decode(in.RawBody, &b); err != nil {
		return ledger.AnswerResult{}, err
	}
	return s.ledger.ReconcileReject(ctx, ledger.Reconciliation{
		Job: in.ID, Evidence: b.Evidence, Operator: operator(ctx, b.Operator),
	})
}

// operator names who reconciles: as the request says, else as its token does.
func operator(ctx context.Context, given string) string {
	if given == "" {
		return recordOf(ctx).token
	}
	return given
}
