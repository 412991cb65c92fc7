package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"jobledger/ledger"
)

// aboutHealth tells of the paths that a server answers however busy it is.
func aboutHealth(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/metrics"
}

// readyTime bounds the wait for the database before the server counts as not ready.
const readyTime = 2 * time.Second

// healthy answers GET /healthz: the process runs.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) { say(w, "ok") }

// ready answers GET /readyz: the database answers, and the server is not about to end.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		newProblem(&ledger.Error{Code: ledger.Busy, Message: "the server is ending"}).send(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTime)
	defer cancel()
	if _, err := s.ledger.Balances(ctx, "", 1); err != nil {
		p := newProblem(err)
		p.Status = http.StatusServiceUnavailable
		p.send(w, r)
		return
	}
	say(w, "ready")
}

func say(w http.ResponseWriter, word string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, word+"\n") // a client that has left is its own business
}
