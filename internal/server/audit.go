package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

type auditInput struct {
	Quiescent flag `query:"quiescent" doc:"work has stopped: nothing may be held, no job may be open"`
}

func (s *Server) addAudit() {
	add(s, route{
		method: http.MethodGet, path: "/v1/audit", id: "audit", tag: "audit", need: ledger.ScopeRead,
		summary: "Check every invariant, changing nothing",
		about:   "The answer is 200 whether it holds or not: ok says so, and each broken row is named.",
		whole:   true,
	}, s.audit)
}

func (s *Server) audit(ctx context.Context, in *auditInput) (ledger.AuditReport, error) {
	quiescent, err := in.Quiescent.on("quiescent")
	if err != nil {
		return ledger.AuditReport{}, err
	}
	// Each holds a connection for as long as it takes; all of them together would leave none for the rest.
	select {
	case s.auditing <- struct{}{}:
		defer func() { <-s.auditing }()
	default:
		return ledger.AuditReport{}, &ledger.Error{Code: ledger.Busy, Message: "another audit is under way"}
	}
	return s.ledger.Audit(ctx, ledger.AuditParams{Quiescent: quiescent})
}
