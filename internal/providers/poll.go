package providers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"jobledger/internal/httpcall"
	"jobledger/ledger"
)

// Poll is how a provider is asked for the status of a job.
type Poll struct {
	Timeout time.Duration // of one call
	address string        // with {id} where the provider's id of the job goes
	header  string        // empty: none is sent
	value   string        // of the header; it holds a secret
	least   time.Duration
	most    time.Duration
	answer  reader
}

const idPlace = "{id}"

// Request makes the request for the status of a job. Errors: INVALID for an id that would make it the
// address of something else.
func (p *Poll) Request(ctx context.Context, id string) (*http.Request, error) {
	if id == "" || id == "." || id == ".." {
		return nil, ledger.InvalidField("upstream_id", "%q cannot be part of an address", id)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.addressOf(id), nil)
	if err != nil {
		return nil, fmt.Errorf("the address of a status: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	if p.header != "" {
		request.Header.Set(p.header, p.value)
	}
	return request, nil
}

// addressOf puts an id into the address, written so that it cannot be more than one part of it.
func (p *Poll) addressOf(id string) string {
	path, query, found := strings.Cut(p.address, "?")
	address := strings.ReplaceAll(path, idPlace, url.PathEscape(id))
	if found {
		address += "?" + strings.ReplaceAll(query, idPlace, url.QueryEscape(id))
	}
	return address
}

// Check refuses the address if a client with these options would not call it.
func (p *Poll) Check(o httpcall.Options) error { return httpcall.CheckURL(p.addressOf("id"), o) }

// Read gives what an answer says. Errors: INVALID.
func (p *Poll) Read(body []byte) (Said, error) { return p.answer.read(body) }

// Wait gives how long to wait before a job is asked for again that was asked for tries times: twice as
// long each time, between the provider's bounds. Half of it is chance, so that jobs that were submitted
// together are not asked for together.
func (p *Poll) Wait(tries int64) time.Duration {
	wait := p.least
	for ; tries > 1 && wait < p.most; tries-- {
		wait *= 2
	}
	half := min(wait, p.most) / 2
	return half + rand.N(half+1)
}

// Most is the longest wait between two polls.
func (p *Poll) Most() time.Duration { return p.most }
