package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

// jobRequest is the body of POST /v1/jobs.
type jobRequest struct {
	ID       string `json:"id" maxLength:"255" doc:"names the job for ever: the same id never pays twice"`
	Owner    string `json:"owner" maxLength:"255"`
	Cost     number `json:"cost"`
	Mode     string `json:"mode,omitempty" enum:"hold,charge" doc:"default hold"`
	Deadline moment `json:"deadline,omitempty" doc:"time out then, unless submitted; default: never"`
	Metadata object `json:"metadata,omitempty"`
}

// cancelRequest is the body of POST /v1/jobs/{id}/cancel.
type cancelRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"1024" blank:"true"`
}

// jobAnswer is one job.
type jobAnswer struct {
	Job ledger.Job `json:"job"`
}

type jobsInput struct {
	Owner  string `query:"owner" maxLength:"255" doc:"only this owner's"`
	Status string `query:"status" enum:"pending,processing,completed,failed,canceled,timed_out"`
	Limit  number `query:"limit" maximum:"1000" doc:"at most so many; default 100"`
	After  string `query:"after" maxLength:"255" doc:"start after the job with this id"`
}

type jobInput struct {
	ID string `path:"id" maxLength:"255"`
}

func (s *Server) addJobs() {
	add(s, route{
		method: http.MethodPost, path: "/v1/jobs", id: "createJob", tag: "jobs", need: ledger.ScopeWrite,
		summary: "Make a job and take its cost from the owner's credits",
		about: "In mode hold the cost is held now, and used or released when the job ends. In mode charge it " +
			"is used now, and refunded if the job fails.",
		created: true, body: jobRequest{},
	}, s.createJob)
	add(s, route{
		method: http.MethodGet, path: "/v1/jobs", id: "listJobs", tag: "jobs", need: ledger.ScopeRead,
		summary: "List jobs in the order of their ids",
	}, s.jobs)
	add(s, route{
		method: http.MethodGet, path: "/v1/jobs/{id}", id: "getJob", tag: "jobs", need: ledger.ScopeRead,
		summary: "Show one job",
	}, s.job)
	add(s, route{
		method: http.MethodGet, path: "/v1/jobs/{id}/explain", id: "explainJob", tag: "jobs",
		need:    ledger.ScopeRead,
		summary: "Tell the whole story of a job: its reports, lots, entries and events",
	}, s.explain)
	add(s, route{
		method: http.MethodPost, path: "/v1/jobs/{id}/cancel", id: "cancelJob", tag: "jobs",
		need:    ledger.ScopeWrite,
		summary: "End a job and return its credits",
		about: "Refused while nobody knows whether a provider took the job. A job that has ended stays as it " +
			"is, and the answer says how it ended.",
		body: cancelRequest{}, free: true,
	}, s.cancel)
	add(s, route{
		method: http.MethodPost, path: "/v1/jobs/{id}/settle", id: "settleJob", tag: "jobs",
		need:    ledger.ScopeOperator,
		summary: "Settle a job that was imported as ended and never settled",
		about:   "Only with evidence that the provider rejected it; see the reconciliation.",
	}, s.settleLegacy)
}

func (s *Server) createJob(ctx context.Context, in *bodyInput) (ledger.JobResult, error) {
	var b jobRequest
	if err := decode(in.RawBody, &b); err != nil {
		return ledger.JobResult{}, err
	}
	p := ledger.JobParams{
		ID: b.ID, Owner: b.Owner, Mode: ledger.Mode(b.Mode), Metadata: ledger.JSON(b.Metadata),
	}
	var errs [2]error
	p.Cost, errs[0] = b.Cost.amount("cost")
	p.Deadline, errs[1] = b.Deadline.when("deadline")
	if err := first(ledger.CheckID("id", b.ID), ledger.CheckID("owner", b.Owner), errs[0],
		errs[1]); err != nil {
		return ledger.JobResult{}, err
	}
	return s.ledger.CreateJob(ctx, p)
}

func (s *Server) jobs(ctx context.Context, in *jobsInput) (list[ledger.Job], error) {
	return paged(in.Limit, func(j *ledger.Job) string { return j.ID }, func(most int) ([]ledger.Job, error) {
		return s.ledger.Jobs(ctx, ledger.JobFilter{
			Owner: in.Owner, Status: ledger.Status(in.Status), After: in.After, Limit: most,
		})
	}, givenID("owner", in.Owner), givenID("after", in.After))
}

func (s *Server) job(ctx context.Context, in *jobInput) (jobAnswer, error) {
	job, err := s.ledger.Job(ctx, in.ID)
	return jobAnswer{job}, err
}

func (s *Server) explain(ctx context.Context, in *jobInput) (ledger.Story, error) {
	return s.ledger.Explain(ctx, in.ID)
}

func (s *Server) cancel(ctx context.Context, in *verbInput) (ledger.Settlement, error) {
	var b cancelRequest
	if err := decodeFree(in.RawBody, &b); err != nil {
		return ledger.Settlement{}, err
	}
	return s.counted(ledger.Operator)(s.ledger.Cancel(ctx, in.ID, b.Reason))
}

func (s *Server) settleLegacy(ctx context.Context, in *jobInput) (ledger.Settlement, error) {
	return s.counted(ledger.Operator)(s.ledger.SettleLegacy(ctx, in.ID))
}
