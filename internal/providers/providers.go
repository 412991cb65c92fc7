// Package providers knows how each provider of jobs reports: how it signs, where its documents hold what
// matters, and which of its words are ends. It is set up by a file; docs/providers.md explains it.
package providers

import (
	"net/http"
	"time"

	"jobledger/internal/webhook"
	"jobledger/ledger"
)

// Authority says whose word settles a provider's jobs.
type Authority string

// The authorities.
const (
	Any          Authority = "any"      // callbacks and polls, whichever comes first
	CallbackOnly Authority = "callback" // callbacks
	PollOnly     Authority = "poll"     // polls; a callback only makes the next one come at once
)

// Provider is one provider of the file.
type Provider struct {
	Name      string
	Authority Authority
	Poll      *Poll // nil: it is not polled
	verifier  *webhook.Verifier
	callback  reader
}

// Set is the providers of a file.
type Set struct{ list []*Provider }

// All gives the providers in the order of the file.
func (s *Set) All() []*Provider { return s.list }

// Names gives the names of all of them.
func (s *Set) Names() (list []string) {
	for _, p := range s.list {
		list = append(list, p.Name)
	}
	return list
}

// Find gives a provider by its name, or nil.
func (s *Set) Find(name string) *Provider {
	for _, p := range s.list {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Polled gives the providers that have a status address.
func (s *Set) Polled() (list []*Provider) {
	for _, p := range s.list {
		if p.Poll != nil {
			list = append(list, p)
		}
	}
	return list
}

// TakesCallbacks tells whether there is a secret that a callback could be signed with.
func (p *Provider) TakesCallbacks() bool { return p.verifier != nil }

// Verify refuses a callback, with a [*webhook.Refusal], unless the provider signed this body, now.
func (p *Provider) Verify(header http.Header, body []byte, now time.Time) error {
	if p.verifier == nil {
		return &webhook.Refusal{Cause: webhook.UnknownKey, Detail: "the provider has no secret on file"}
	}
	return p.verifier.Verify(header, body, now)
}

// Read gives what the body of a callback says. It says nothing until Verify has passed. Errors: INVALID,
// for a body that is no JSON document, or that has not what it must have in the form that it must have.
func (p *Provider) Read(body []byte) (Said, error) { return p.callback.read(body) }

// Said is what a document of a provider says of one job.
type Said struct {
	UpstreamID string         `json:"upstream_id"` // the provider's id; empty: it names none
	Job        string         `json:"job"`         // our id, if the provider echoes it; empty: it does not
	Attempt    int64          `json:"attempt"`     // 0: it names none
	Word       string         `json:"word"`        // the provider's own word for how the job is
	Outcome    ledger.Outcome `json:"outcome"`     // empty: the word is no end, the job is still running
	Cost       *int64         `json:"cost"`        // nil: it names none
}

// Report makes a ledger's report of it, about a job and the attempt that it was found to be of.
func (s *Said) Report(job string, attempt int64, source ledger.Source) ledger.Report {
	return ledger.Report{
		Job: job, Outcome: s.Outcome, Source: source, Attempt: attempt, UpstreamID: s.UpstreamID, Cost: s.Cost,
	}
}
