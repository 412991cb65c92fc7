package page

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"jobledger/internal/racelab/lesson"
	"jobledger/ledger"
)

const (
	runMax   = time.Minute            // of a run
	runsKept = 20                     // the latest; earlier ones are forgotten
	runSoon  = 700 * time.Millisecond // a run that ends so soon is shown at once
)

// lab runs lessons and races in scratch databases, one at a time.
type lab struct {
	mutex sync.Mutex
	runs  []*run // the latest last
	count int    // that were ever started
	busy  bool
	group sync.WaitGroup
}

// run is one run of the lab.
type run struct {
	ID      int
	Title   string
	Engine  string
	Started ledger.Time
	done    chan struct{}
	steps   atomic.Int64 // that were done, out of total
	total   atomic.Int64

	// What follows is set before done is closed.
	pictures []picture
	err      error
}

// Ended tells whether there is something to show.
func (r *run) Ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// start starts a run, unless one is under way. work gives its pictures; it has what it needs to stop.
func (p *Page) start(
	title, engine string, work func(context.Context, *run) ([]picture, error),
) (*run, error) {
	p.lab.mutex.Lock()
	defer p.lab.mutex.Unlock()
	if p.lab.busy {
		return nil, &ledger.Error{
			Code: ledger.NotAllowed, Message: "a run is under way: the lab does one at a time, a minute at most",
		}
	}
	p.lab.count++
	r := &run{
		ID: p.lab.count, Title: title, Engine: engine, Started: ledger.At(time.Now()), done: make(chan struct{}),
	}
	p.lab.runs = append(p.lab.runs, r)
	p.lab.runs = p.lab.runs[max(0, len(p.lab.runs)-runsKept):]
	p.lab.busy = true
	p.lab.group.Go(func() {
		ctx, cancel := context.WithTimeout(p.stopping, runMax)
		defer cancel()
		r.pictures, r.err = work(ctx, r)
		if r.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.err = &ledger.Error{Code: ledger.Busy, Message: "it did not end within " + runMax.String()}
		}
		p.lab.mutex.Lock()
		p.lab.busy = false
		p.lab.mutex.Unlock()
		close(r.done)
	})
	return r, nil
}

// wait waits for the run that is under way.
func (l *lab) wait() { l.group.Wait() }

// find gives a run by its number, and nil for one that never was or is forgotten.
func (l *lab) find(id string) *run {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, r := range l.runs {
		if strconv.Itoa(r.ID) == id {
			return r
		}
	}
	return nil
}

// list gives the runs that are kept, the latest first, and tells whether one is under way.
func (l *lab) list() (runs []*run, busy bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for i := len(l.runs) - 1; i >= 0; i-- {
		runs = append(runs, l.runs[i])
	}
	return runs, l.busy
}

// labData is what there is to choose from.
type labData struct {
	Lessons  []lesson.Lesson
	Postgres bool // there is a server
	Race     raceForm
	Problem  string // with what was chosen
	Runs     []*run
	Busy     bool
}

func (p *Page) labData() labData {
	d := labData{Lessons: lesson.All(), Postgres: p.options.LabServer != "", Race: firstRace}
	d.Runs, d.Busy = p.lab.list()
	return d
}

func (p *Page) labPage(*http.Request) (view, error) {
	return view{Title: "Lab", Here: "lab", Data: p.labData()}, nil
}

// refuse shows the lab again, with what is wrong with what was chosen.
func (p *Page) refuse(w http.ResponseWriter, r *http.Request, form raceForm, err error) {
	code := ledger.CodeOf(err)
	if code != ledger.Invalid && code != ledger.NotAllowed {
		p.fail(w, r, err)
		return
	}
	d := p.labData()
	d.Race, d.Problem = form, err.Error()
	p.write(w, r, code.Info().HTTP, "lab", view{Title: "Lab", Here: "lab", Data: d, Still: true})
}

// mayRun lets those use the lab who may do more than look: it takes time and space on the server.
func (p *Page) mayRun(w http.ResponseWriter, r *http.Request) bool {
	token := tokenOf(r.Context())
	if token.Name == "" || token.Scope.Allows(ledger.ScopeWrite) {
		r.Body = http.MaxBytesReader(w, r.Body, formMax)
		return true
	}
	p.fail(w, r, &ledger.Error{
		Code:    ledger.Forbidden,
		Message: "the token " + strconv.Quote(token.Name) + " may look; to run the lab takes the scope write",
	})
	return false
}

// shown goes to a run that was started, and gives it a moment to end first.
func (p *Page) shown(w http.ResponseWriter, r *http.Request, started *run) {
	select {
	case <-started.done:
	case <-time.After(runSoon):
	case <-r.Context().Done():
	}
	http.Redirect(w, r, "/lab/runs/"+strconv.Itoa(started.ID), http.StatusSeeOther)
}

// server gives the server that a form chose: that of PostgreSQL, or none.
func (p *Page) server(r *http.Request) (url, engine string, err error) {
	switch engine = r.PostFormValue("engine"); {
	case engine == "" || engine == "sqlite":
		return "", "SQLite", nil
	case engine == "postgres" && p.options.LabServer != "":
		return p.options.LabServer, "PostgreSQL", nil
	}
	return "", "", ledger.InvalidField("engine", "%.40q is not here", engine)
}
