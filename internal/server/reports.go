package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

// reportRequest is the body of POST /v1/jobs/{id}/reports.
type reportRequest struct {
	Outcome    string `json:"outcome" enum:"completed,failed,canceled,timed_out"`
	Source     string `json:"source,omitempty" enum:"callback,poll,operator" doc:"who says so; default operator"`
	Attempt    number `json:"attempt,omitempty" doc:"which attempt it is about, from 1; default: it names none"`
	UpstreamID string `json:"upstream_id,omitempty" maxLength:"255" doc:"the provider's id of the attempt"`
	Cost       number `json:"cost,omitempty" minimum:"0" doc:"the actual cost of a completed job"`
	Reason     string `json:"reason,omitempty" maxLength:"1024" blank:"true"`
}

func (s *Server) addReports() {
	add(s, route{
		method: http.MethodPost, path: "/v1/jobs/{id}/reports", id: "reportJob", tag: "reports",
		need:    ledger.ScopeWrite,
		summary: "Report how a job ended",
		about: "The first report settles the job and moves its credits; every later one is told who did and " +
			"moves nothing, which is no error.",
		body: reportRequest{},
	}, s.report)
}

func (s *Server) report(ctx context.Context, in *verbInput) (ledger.Settlement, error) {
	var b reportRequest
	if err := decode(in.RawBody, &b); err != nil {
		return ledger.Settlement{}, err
	}
	r := ledger.Report{
		Job: in.ID, Outcome: ledger.Outcome(b.Outcome), Source: ledger.Source(b.Source),
		UpstreamID: b.UpstreamID, Reason: b.Reason,
	}
	if r.Source == "" {
		r.Source = ledger.Operator
	}
	var errs [2]error
	r.Attempt, errs[0] = b.Attempt.or(0, "attempt", 1, ledger.AmountMax)
	if b.Cost != "" {
		r.Cost = new(int64)
		*r.Cost, errs[1] = b.Cost.within("cost", 0, ledger.AmountMax)
	}
	if err := first(ledger.CheckID("id", in.ID), errs[0], errs[1]); err != nil {
		return ledger.Settlement{}, err
	}
	return s.counted(r.Source)(s.ledger.Settle(ctx, r))
}

// CountTry counts a try to deliver an event, by how the delivery stands after it.
func (s *Server) CountTry(after ledger.DeliveryStatus) {
	s.metrics.tries.WithLabelValues(string(after)).Inc()
}

// CountPolled counts what became of a report that a poll brought.
func (s *Server) CountPolled(v ledger.Verdict) { s.metrics.report(ledger.Poll, v) }

// counted counts the verdict on a report, or its refusal for being about another attempt.
func (s *Server) counted(source ledger.Source) func(ledger.Settlement, error) (ledger.Settlement, error) {
	return func(settled ledger.Settlement, err error) (ledger.Settlement, error) {
		switch {
		case err == nil:
			s.metrics.report(source, settled.Verdict)
		case ledger.CodeOf(err) == ledger.StaleAttempt:
			s.metrics.report(source, ledger.Stale)
		}
		return settled, err
	}
}
