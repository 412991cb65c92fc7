// Package server is the ledger over HTTP: the nouns and verbs of the command line under /v1, with the same
// fields, and the pages and figures that a service needs.
//
// Each noun has a file, which reads as the file of the same name in the command line does: what a request
// says is checked, the ledger is called, and its answer is sent as it is. What all requests share is in
// few places: middleware.go is around every request, route.go around every operation, request.go reads what
// was sent, and problem.go is the one voice for errors.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	pages "jobledger/internal/page"
	"jobledger/internal/providers"
	"jobledger/ledger"
)

// Options adjust a server. The zero value is a server for tests: it logs nothing.
type Options struct {
	// Log gets a line for each request, and one for each failure. Nothing secret is in them.
	Log *slog.Logger

	// Concurrent bounds the requests that are answered at once; default 256. One more is refused with
	// BUSY, at once. Callbacks count when it is known who sent them; 64 more are read at once until then.
	Concurrent int

	// Grace bounds the time in which what was accepted is finished after the server was told to end;
	// default 15 s. What is not finished then is refused.
	Grace time.Duration

	// NeedToken refuses every request without a token. Otherwise a server whose ledger has never had one
	// answers what is asked from this machine.
	NeedToken bool

	// Providers are those whose callbacks are taken; nil: none.
	Providers *providers.Set

	// AllowHTTP takes endpoints elsewhere that are without TLS.
	AllowHTTP bool

	// LabServer is the URL of a PostgreSQL server on which the lab of the pages may make scratch databases.
	// Empty: it uses scratch files of SQLite only.
	LabServer string

	// CertFile and KeyFile are the files of the certificate; without them, connections are not encrypted.
	CertFile, KeyFile string
}

// Server answers requests about one ledger.
type Server struct {
	options  Options
	ledger   *ledger.Ledger
	mux      *http.ServeMux
	api      huma.API
	pages    *pages.Page
	needs    map[string]ledger.Scope // what each operation needs, by its id
	metrics  *metrics
	gate     *gate
	slots    chan struct{} // one per request that is being answered
	auditing chan struct{} // one audit at a time
	// strangers has one per callback that is not known to be its provider's yet; it has no slot.
	strangers chan struct{}
	draining  atomic.Bool
	handler   http.Handler
}

// New makes a server for a ledger, which it does not close.
func New(l *ledger.Ledger, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Concurrent <= 0 {
		o.Concurrent = 256
	}
	if o.Providers == nil {
		o.Providers = new(providers.Set)
	}
	if o.Grace <= 0 {
		o.Grace = 15 * time.Second
	}
	s := &Server{
		options: o, ledger: l, mux: http.NewServeMux(), metrics: newMetrics(l, o.Log),
		gate: newGate(l, o.NeedToken), needs: map[string]ledger.Scope{}, slots: make(chan struct{}, o.Concurrent),
		auditing:  make(chan struct{}, 1),
		strangers: make(chan struct{}, strangersMax),
	}
	s.api = humago.New(s.mux, huma.Config{
		OpenAPI: describe(),
		Formats: map[string]huma.Format{
			"application/json": {Marshal: encode}, "json": {Marshal: encode},
		},
		DefaultFormat: "application/json",
	})
	s.addRoutes()
	markNulls(s.api.OpenAPI().Components.Schemas)
	s.addCallbacks()
	s.addPages()
	s.addPeople()
	s.handler = s.observe(s.admit(http.HandlerFunc(s.serveMux)))
	return s
}

// addRoutes is the one list of all nouns, in the order in which the documentation shows them.
func (s *Server) addRoutes() {
	s.addGrants()
	s.addOwners()
	s.addEntries()
	s.addJobs()
	s.addAttempts()
	s.addReports()
	s.addReconcile()
	s.addEvents()
	s.addEndpoints()
	s.addSweeps()
	s.addRevocations()
	s.addAudit()
}

// describe begins the description of the API.
func describe() *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "jobledger",
			Version: "1",
			Description: "A credit ledger for asynchronous generation jobs. Every write can be repeated safely: the " +
				"same key with the same content gives the first answer again, with \"replayed\": true. The exception " +
				"is POST /v1/jobs/{id}/attempts: after a lost answer it is refused with NOT_ALLOWED, as the marker is " +
				"there. Do not call the provider then; reconcile the job. Providers report to POST " +
				callbackPath + "{provider}, each in its own form and with its signature instead of a token.",
		},
		Components: &huma.Components{
			Schemas:         newRegistry(),
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
		},
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// The limits of a connection.
const (
	headerTime = 5 * time.Second // to send the head of a request
	idleTime   = 2 * time.Minute // between two requests
	headerMax  = 16 << 10        // bytes
	cutTime    = 2 * time.Second // to refuse what was not finished in time
)

// Serve answers what comes in through a listener until ctx ends, and then finishes what it has accepted, in
// bounded time. It closes the listener. Its error is nil if every request was answered.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	watching, unwatch := context.WithCancel(ctx)
	defer s.beside(watching)()
	defer unwatch()
	h := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       headerTime + bodyTime,
		WriteTimeout:      headerTime + bodyTime + answerTime + answerExtra,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerMax,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() {
		if s.options.CertFile != "" {
			ended <- h.ServeTLS(listener, s.options.CertFile, s.options.KeyFile)
			return
		}
		ended <- h.Serve(listener)
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	err := shutDown(h, s.options.Grace)
	if err != nil {
		cut() // who waits for the ledger stops waiting, and is told so
		err = errors.Join(shutDown(h, cutTime), h.Close())
	}
	<-ended
	return err
}

// shutDown waits for the requests that are being answered, for a bounded time.
func shutDown(h *http.Server, bound time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		return fmt.Errorf("some requests were not finished within %v: %w", bound, err)
	}
	return nil
}
