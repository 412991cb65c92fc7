// Package fakeprovider is a provider of generation jobs that follows a script: a real HTTP server on
// a loopback address that takes jobs, refuses them, or fails in the ways in which providers fail. It
// counts the jobs that it makes, because a call that failed may have made one.
//
// [Client] is the other side: it calls a provider once and says what is known afterwards. Nothing
// here generates anything or costs anything, and nothing reaches another machine.
package fakeprovider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobledger/internal/webhook"
)

// Act is what the provider does with one request.
type Act string

// The acts. All but Reject and Missing make a job when they answer the request for one; POST /jobs
// for the same job twice makes two.
const (
	Accept        Act = "accept"          // answers 202 with the job's id; to a poll, that it completed
	Reject        Act = "reject"          // answers 422 with a reason
	Hang          Act = "hang"            // never answers
	Drop          Act = "drop"            // closes the connection instead of an answer
	Malformed     Act = "malformed"       // answers 202 with half a JSON document
	Fail          Act = "fail"            // answers 500, with what it would say with a 202
	Missing       Act = "missing"         // answers 404
	Twice         Act = "twice"           // sends the same answer two times
	CallBackFirst Act = "call back first" // reports the job completed, and answers after that
	Redirect      Act = "redirect"        // answers 302 with another address of this provider, which says failed
	Endless       Act = "endless"         // answers with a document that does not end
)

// Order asks for a job.
type Order struct {
	Job      string `json:"job"`      // the caller's own id, which a provider only echoes
	Attempt  int64  `json:"attempt"`  // echoed too
	Callback string `json:"callback"` // where the outcome goes
}

// Provider is a running fake provider.
type Provider struct {
	// URL is where it listens.
	URL    string
	server *http.Server
	ended  chan struct{} // closed by Close, so that what hangs ends

	mutex  sync.Mutex
	script []Act
	polls  []Act
	orders []Order           // by number: the id of the first is up-1
	ends   map[string]string // what polls say of a job, by its id
	asked  map[string]int    // how often each job was polled
	key    *webhook.Key      // callbacks are signed with it, if there is one
	sent   int               // callbacks
}

// Start starts a provider. It takes the next act of the script for each request for a job, and the
// last one for all that follow; without a script it accepts.
func Start(script ...Act) (*Provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the fake provider: %w", err)
	}
	p := &Provider{
		URL: "http://" + listener.Addr().String(), script: script, ended: make(chan struct{}),
		ends: map[string]string{}, asked: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs", p.create)
	mux.HandleFunc("GET /jobs/{id}", p.poll)
	mux.HandleFunc("GET /elsewhere/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, map[string]string{"id": r.PathValue("id"), "outcome": "failed"})
	})
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(listener) }() // ends with Close, and says no more than that
	return p, nil
}

// Close ends the provider, and the calls that hang.
func (p *Provider) Close() error {
	close(p.ended)
	return p.server.Close()
}

// Polls sets the script for the requests that ask how a job is.
func (p *Provider) Polls(script ...Act) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.polls = script
}

// End sets what polls say of a job: an outcome, or another word. Unless it is set, they say completed.
func (p *Provider) End(id, outcome string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.ends[id] = outcome
}

// Asked is how often a job was polled.
func (p *Provider) Asked(id string) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.asked[id]
}

// polled counts a poll of a job and gives what to say of it.
func (p *Provider) polled(id string) (outcome string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.asked[id]++
	return cmp.Or(p.ends[id], "completed")
}

// Creations is the number of jobs that the provider has made.
func (p *Provider) Creations() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.orders)
}

// next takes the next act of a script.
func (p *Provider) next(script *[]Act) Act {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(*script) == 0 {
		return Accept
	}
	act := (*script)[0]
	if len(*script) > 1 {
		*script = (*script)[1:]
	}
	return act
}

func (p *Provider) add(o Order) (id string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.orders = append(p.orders, o)
	return fmt.Sprintf("up-%d", len(p.orders))
}

// order finds an order by the id that add gave it.
func (p *Provider) order(id string) (o Order, found bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	n, err := strconv.Atoi(strings.TrimPrefix(id, "up-"))
	if err != nil || n < 1 || n > len(p.orders) || id != fmt.Sprintf("up-%d", n) {
		return Order{}, false
	}
	return p.orders[n-1], true
}

func (p *Provider) create(w http.ResponseWriter, r *http.Request) {
	var o Order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&o); err != nil {
		http.Error(w, "not an order", http.StatusBadRequest)
		return
	}
	act := p.next(&p.script)
	if act == Reject {
		answer(w, http.StatusUnprocessableEntity, map[string]string{"error": "no capacity for this model"})
		return
	}
	id := ""
	if act != Missing {
		id = p.add(o)
	}
	if act == CallBackFirst {
		if err := p.CallBack(r.Context(), id, "completed"); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	p.perform(w, r, act, map[string]string{"id": id})
}

func (p *Provider) poll(w http.ResponseWriter, r *http.Request) {
	act := p.next(&p.polls)
	id := r.PathValue("id")
	if _, found := p.order(id); !found {
		act = Missing
	}
	p.perform(w, r, act, map[string]string{"id": id, "outcome": p.polled(id)})
}

// perform answers a request as the act says.
func (p *Provider) perform(w http.ResponseWriter, r *http.Request, act Act, document map[string]string) {
	switch act {
	case Hang:
		select {
		case <-p.ended:
		case <-r.Context().Done():
		}
	case Drop:
		panic(http.ErrAbortHandler) // how a handler tells the server to cut the connection
	case Fail:
		answer(w, http.StatusInternalServerError, document)
	case Missing:
		http.NotFound(w, r)
	case Malformed:
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"id": "up-`)) // a client that has left is its own business
	case Twice:
		twice(w, document)
	case Redirect:
		http.Redirect(w, r, "/elsewhere/"+document["id"], http.StatusFound)
	case Endless:
		_, _ = fmt.Fprintf(w, `{"id": %q, "outcome": "completed", "more": "`, document["id"])
		for r.Context().Err() == nil {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<16)) // as above
		}
	default:
		answer(w, http.StatusAccepted, document)
	}
}

func answer(w http.ResponseWriter, status int, document map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document) // as above
}

// twice writes one answer two times onto the connection.
func twice(w http.ResponseWriter, document map[string]string) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer connection.Close()
	body, err := json.Marshal(document)
	if err != nil {
		return
	}
	const head = "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
	text := fmt.Sprintf(head, len(body)) + string(body)
	_, _ = connection.Write([]byte(text + text))
}
