package server

import (
	"context"
	"net/http"
	"sync"

	pages "jobledger/internal/page"
	"jobledger/ledger"
)

// door lets people at the pages in as the gate lets programs in.
type door struct{ gate *gate }

// Open lets who has no token look where a program without one may.
func (d door) Open(r *http.Request) error { return d.gate.permitOpen(r) }

// Authenticate gives the token of a secret.
func (d door) Authenticate(ctx context.Context, secret string) (ledger.Token, error) {
	return d.gate.authenticate(ctx, secret)
}

// addPeople adds the pages that people look at. Who signed in there may look at the documents of the API
// with the same browser.
func (s *Server) addPeople() {
	s.pages = pages.New(s.ledger, pages.Options{
		Gate: door{s.gate}, Log: s.options.Log, LabServer: s.options.LabServer,
		Secure: s.options.NeedToken, // others can reach it: by TLS, here or at a proxy
	})
	s.gate.session = s.pages.Session
	for _, path := range pages.Paths {
		s.mux.Handle(path, s.pages)
	}
}

// beside runs what the pages need beside the requests, and gives what waits for its end.
func (s *Server) beside(ctx context.Context) (wait func()) {
	var group sync.WaitGroup
	group.Go(func() { s.pages.Run(ctx) })
	return group.Wait
}
