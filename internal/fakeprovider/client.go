package fakeprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// Client calls a provider. It never repeats a call: that could make a second job.
type Client struct {
	URL  string       // of the provider
	HTTP *http.Client // its timeout bounds each call
}

// Answer is what is known after a provider was asked for a job. Exactly one field is set.
type Answer struct {
	UpstreamID string // it took the job, under this id
	Rejection  string // it refused the job, and said this
	Doubt      string // neither: it may have taken the job. What went wrong
}

// Create asks for a job, once.
func (c *Client) Create(ctx context.Context, o Order) Answer {
	body, err := json.Marshal(o)
	if err != nil {
		return Answer{Doubt: err.Error()}
	}
	status, text, err := c.call(ctx, http.MethodPost, "/jobs", body)
	if err != nil {
		return Answer{Doubt: err.Error()}
	}
	var said struct{ ID, Error string }
	if err := json.Unmarshal(text, &said); err != nil {
		return Answer{Doubt: fmt.Sprintf("the answer, status %d, is no JSON document: %v", status, err)}
	}
	switch {
	case status == http.StatusAccepted && said.ID != "":
		return Answer{UpstreamID: said.ID}
	case status == http.StatusUnprocessableEntity && said.Error != "":
		return Answer{Rejection: fmt.Sprintf("status %d: %s", status, said.Error)}
	}
	return Answer{Doubt: fmt.Sprintf("the answer, status %d, says neither yes nor no", status)}
}

// Outcome asks how a job ended. known is false, and doubt says why, unless the provider says so
// itself: a job that cannot be asked for is not a job that failed.
func (c *Client) Outcome(ctx context.Context, id string) (outcome string, known bool, doubt string) {
	status, text, err := c.call(ctx, http.MethodGet, "/jobs/"+id, nil)
	if err != nil {
		return "", false, err.Error()
	}
	var said struct{ Outcome string }
	if err := json.Unmarshal(text, &said); err != nil || status/100 != 2 || said.Outcome == "" {
		return "", false, fmt.Sprintf("the answer, status %d, names no outcome", status)
	}
	return said.Outcome, true, ""
}

// bodyMax bounds what is read of an answer, in bytes.
const bodyMax = 1 << 16

func (c *Client) call(
	ctx context.Context, method, path string, body []byte,
) (status int, text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("call the provider: %w", err)
	}
	request.Close = true // on a connection that was used before, net/http may repeat a request
	response, err := c.HTTP.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("call the provider: %w", err)
	}
	text, err = io.ReadAll(io.LimitReader(response.Body, bodyMax))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return 0, nil, fmt.Errorf("read the provider's answer: %w", err)
	}
	return response.StatusCode, text, nil
}

// Guard lets connections to loopback addresses pass, refuses all others before a packet leaves, and
// remembers them. Names are refused too: to look one up is to ask another machine.
type Guard struct {
	mutex   sync.Mutex
	refused []string
}

// Transport gives a transport whose connections the guard watches.
func (g *Guard) Transport() *http.Transport { return &http.Transport{DialContext: g.dial} }

// Refused lists the addresses that were refused.
func (g *Guard) Refused() []string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Clone(g.refused)
}

func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().IsLoopback() {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		g.refused = append(g.refused, address)
		return nil, fmt.Errorf("%s is not a loopback address", address)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}
