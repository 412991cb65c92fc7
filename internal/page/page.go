// Package page is what people look at: a ledger's state at a glance, each job's story, each owner's
// account, and the lab. Its pages are complete without JavaScript; with it, they are live.
//
// Nothing here changes a ledger. What the first look needs is bounded and comes through indexes; what can
// only be counted by reading everything is counted beside it, now and then, and shown with its time.
package page

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"jobledger/ledger"
)

// Gate says who may look.
type Gate interface {
	// Open is nil if a request without a token may look, UNAUTHENTICATED if it takes a token, and another
	// error if it may not look at all.
	Open(r *http.Request) error

	// Authenticate gives the token of a secret, or UNAUTHENTICATED.
	Authenticate(ctx context.Context, secret string) (ledger.Token, error)
}

// Options adjust the pages. The zero value is for tests: everybody may look, and nothing is logged.
type Options struct {
	Gate Gate         // nil: everybody may look
	Log  *slog.Logger // gets what went wrong; never a token

	// Secure says that browsers come over TLS, here or at a proxy: they send the session over nothing else.
	Secure bool

	// LabServer is the URL of a PostgreSQL server on which the lab may make scratch databases. Empty: the
	// lab has SQLite only.
	LabServer string

	// RaceChild is the command line of the other processes of a race; default as of racelab.Options.
	RaceChild []string

	// AuditEvery is the least time between two audits, default an hour. An audit that takes long runs more
	// seldom.
	AuditEvery time.Duration
}

// Page answers requests for pages. Make one with [New].
type Page struct {
	ledger   *ledger.Ledger
	options  Options
	handler  http.Handler
	watch    watch
	sessions sessions
	lab      lab
	streams  chan struct{} // one per open stream
	stopping context.Context
	stop     context.CancelFunc
}

// New makes the pages of a ledger, which it does not close. What they show of a look at everything comes
// with [Page.Run].
func New(l *ledger.Ledger, o Options) *Page {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.AuditEvery <= 0 {
		o.AuditEvery = time.Hour
	}
	p := &Page{ledger: l, options: o, streams: make(chan struct{}, streamsMax)}
	p.watch.wake = make(chan struct{}, 1)
	p.sessions.byID = make(map[string]session)
	p.stopping, p.stop = context.WithCancel(context.Background())
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, r, &ledger.Error{Code: ledger.Forbidden, Message: "another site sent this request"})
	}))
	p.handler = secure(cross.Handler(p.routes()))
	return p
}

// ServeHTTP answers one request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// Paths are the patterns under which a server's mux has the pages.
var Paths = []string{
	"/{$}", "/owners", "/owners/", "/jobs", "/jobs/", "/reconcile", "/conflicts", "/deliveries", "/audit",
	"/lab", "/lab/", "/sign-in", "/sign-out", "/page/",
}

// routes is the one list of all pages.
func (p *Page) routes() http.Handler {
	open, mux := http.NewServeMux(), http.NewServeMux()
	open.Handle("GET /page/", assets())
	open.HandleFunc("GET /page/timeline.css", timelineStyle)
	open.HandleFunc("GET /sign-in", p.askToken)
	open.HandleFunc("POST /sign-in", p.signIn)
	open.HandleFunc("POST /sign-out", p.signOut)
	open.Handle("/", p.admit(mux))

	mux.Handle("GET /{$}", p.show("status", p.status))
	mux.Handle("GET /owners", p.show("owners", p.owners))
	mux.Handle("GET /owners/{owner}", p.show("owner", p.owner))
	mux.Handle("GET /jobs", p.show("jobs", p.jobs))
	mux.Handle("GET /jobs/{job}", p.show("job", p.job))
	mux.Handle("GET /reconcile", p.show("reconcile", p.unresolved))
	mux.Handle("GET /conflicts", p.show("conflicts", p.conflicts))
	mux.Handle("GET /deliveries", p.show("deliveries", p.deliveries))
	mux.Handle("GET /audit", p.show("audit", p.lastAudit))
	mux.Handle("GET /lab", p.show("lab", p.labPage))
	mux.HandleFunc("POST /lab/lessons", p.startLesson)
	mux.HandleFunc("POST /lab/races", p.startRace)
	mux.Handle("GET /lab/runs/{run}", p.show("run", p.runPage))
	mux.HandleFunc("GET /lab/runs/{run}/{file}", p.runPicture)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, r, &ledger.Error{Code: ledger.NotFound, Message: "there is no page here"})
	})
	return open
}

// policy lets a page load nothing but the files of this server, and be put into no other page. There is
// no style or script in a page itself.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secure is around every answer.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

//go:embed static
var static embed.FS

// assets serves the style, the script and the icon. They belong to this binary: a browser asks each time
// whether it still has the right ones.
func assets() http.Handler {
	folder, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	tags := make(map[string]string)
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(folder, e.Name())
		if err != nil {
			panic(err)
		}
		tags["/page/"+e.Name()] = tag(text)
	}
	files := http.StripPrefix("/page/", http.FileServerFS(folder))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tags[r.URL.Path] == "" || strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tags[r.URL.Path])
		files.ServeHTTP(w, r)
	})
}
