package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"jobledger/internal/webhook"
)

// receiver is the app's side of the events: it verifies each, and takes each id once.
type receiver struct {
	url      string
	server   *http.Server
	verifier *webhook.Verifier

	mutex    sync.Mutex
	taken    map[string]told // by the id of the event
	settled  map[string]bool // jobs of which the end was told
	repeated int             // sent again, under an id that was taken before
	broken   []string
}

// told is what an event says.
type told struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Job string `json:"job"`
	} `json:"data"`
}

// bodyMax bounds an event, in bytes.
const bodyMax = 1 << 16

func startReceiver(secret string) (*receiver, error) {
	keys, err := webhook.ParseKeys(webhook.Standard, secret)
	if err != nil {
		return nil, fmt.Errorf("start the receiver: %w", err)
	}
	verifier, err := webhook.NewVerifier(webhook.StandardWebhooks(), keys)
	if err != nil {
		return nil, fmt.Errorf("start the receiver: %w", err)
	}
	r := &receiver{verifier: verifier, taken: map[string]told{}, settled: map[string]bool{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	return r, r.listen()
}

// listen starts the receiver's server, on a port of its own.
func (r *receiver) listen() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the receiver: %w", err)
	}
	r.url = "http://" + listener.Addr().String() + "/events"
	go func() { _ = r.server.Serve(listener) }() // ends with close, and says no more than that
	return nil
}

func (r *receiver) close() error { return r.server.Close() }

// ServeHTTP takes one event.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, bodyMax))
	if err == nil {
		err = r.verifier.Verify(request.Header, body, time.Now())
	}
	var said told
	if err == nil {
		err = json.Unmarshal(body, &said)
	}
	if err != nil {
		r.complain("an event is not genuine: %v", err)
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	r.take(said)
}

func (r *receiver) complain(format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.broken = append(r.broken, fmt.Sprintf(format, args...))
}

// take notes an event. The end of a job is told before what contradicts it.
func (r *receiver) take(said told) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, again := r.taken[said.ID]; again {
		r.repeated++
		return
	}
	r.taken[said.ID] = said
	job, conflict := said.Data.Job, said.Type == "job.conflict"
	if conflict != r.settled[job] {
		r.broken = append(r.broken, fmt.Sprintf("job %s: %s came out of order", job, said.Type))
	}
	r.settled[job] = true
}

// count gives how many events were taken.
func (r *receiver) count() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.taken)
}
