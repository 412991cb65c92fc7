package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

func (s *Server) addSweeps() {
	add(s, route{
		method: http.MethodPost, path: "/v1/sweeps", id: "sweep", tag: "sweeps", need: ledger.ScopeWrite,
		summary: "Expire lots that are due, time out jobs that nobody submitted",
		about: "A job past its deadline that was submitted is left as it is and listed. Lots past their expiry " +
			"are never spent, swept or not.",
		whole: true,
	}, s.sweep)
}

func (s *Server) sweep(ctx context.Context, _ *noInput) (ledger.SweepResult, error) {
	return ledger.SweepAll(ctx, s.ledger)
}
