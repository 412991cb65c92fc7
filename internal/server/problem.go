package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"jobledger/ledger"
)

// problem is an error as it is sent: problem details of RFC 9457, with the error's own fields, which have
// the names that they have on the command line.
type problem struct {
	Type      string      `json:"type" doc:"a page of this server about the code"`
	Title     string      `json:"title" doc:"what the code means"`
	Status    int         `json:"status"`
	Detail    string      `json:"detail" doc:"what is wrong, in one line"`
	Instance  string      `json:"instance" doc:"names this answer; it holds the request id"`
	Code      ledger.Code `json:"code"`
	Retryable bool        `json:"retryable" doc:"the same request again may be answered otherwise, and is safe"`
	RequestID string      `json:"request_id" doc:"under it the request stands in the server's log"`
	Field     string      `json:"field,omitempty" doc:"INVALID: the field at fault"`
	Fields    []string    `json:"fields,omitempty" doc:"IDEMPOTENCY_MISMATCH: the fields that differ"`
	Available *int64      `json:"available,omitempty" doc:"INSUFFICIENT_CREDITS: spendable credits"`
	Requested *int64      `json:"requested,omitempty" doc:"INSUFFICIENT_CREDITS"`
	header    http.Header
	cause     error
}

// problemsPath is where the pages about the codes are.
const problemsPath = "/problems/"

// newProblem gives an error the form in which it is sent. What an INTERNAL error says is for the log only:
// it may quote a statement, or a path.
func newProblem(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	e, ok := errors.AsType[*ledger.Error](err)
	if !ok {
		e = &ledger.Error{Code: ledger.Internal, Message: err.Error()}
	}
	info := e.Code.Info()
	p := &problem{
		Type:      problemsPath + string(e.Code),
		Title:     info.Meaning,
		Status:    info.HTTP,
		Detail:    e.Message,
		Code:      e.Code,
		Retryable: info.Retryable,
		Field:     e.Field,
		Fields:    e.Fields,
		Available: e.Available,
		Requested: e.Requested,
		header:    http.Header{},
		cause:     err,
	}
	if e.Code == ledger.Internal {
		p.Detail = "an unexpected failure; the server's log has it under the request id"
	}
	if info.HTTP == http.StatusServiceUnavailable {
		p.header.Set("Retry-After", "1")
	}
	if e.Code == ledger.Unauthenticated {
		p.header.Set("WWW-Authenticate", `Bearer realm="jobledger"`)
	}
	return p
}

// refuse is a problem of a code with another status than the code's own: the forms that HTTP itself has
// for a request that cannot be understood.
func refuse(status int, code ledger.Code, detail string) *problem {
	p := newProblem(&ledger.Error{Code: code, Message: detail})
	p.Status = status
	return p
}

// Error gives the detail.
func (p *problem) Error() string { return p.Detail }

// Unwrap gives the error that the problem was made of.
func (p *problem) Unwrap() error { return p.cause }

// GetStatus gives the HTTP status.
func (p *problem) GetStatus() int { return p.Status }

// GetHeaders gives what the answer needs beside its body.
func (p *problem) GetHeaders() http.Header { return p.header }

// ContentType is that of problem details.
func (p *problem) ContentType(string) string { return "application/problem+json" }

// stamp names the request that the problem answers.
func (p *problem) stamp(id string) *problem {
	p.RequestID = id
	p.Instance = "urn:jobledger:request:" + id
	return p
}

// send writes the problem as the answer to a request.
func (p *problem) send(w http.ResponseWriter, r *http.Request) {
	p.stamp(requestID(r.Context()))
	note(r.Context(), p)
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // it holds nothing that cannot be encoded
	}
	h := w.Header()
	for name, values := range p.header {
		h[name] = values
	}
	h.Set("Content-Type", p.ContentType(""))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // a client that has left is its own business
	}
}

// The library makes its own errors through these variables, before any handler is called.
func init() {
	huma.NewErrorWithContext = func(c huma.Context, status int, detail string, errs ...error) huma.StatusError {
		p := libraryProblem(status, detail, errs)
		note(c.Context(), p)
		return p.stamp(requestID(c.Context()))
	}
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		return libraryProblem(status, detail, errs)
	}
}

// libraryProblem gives an error of the library a code. Those of this package pass.
func libraryProblem(status int, detail string, errs []error) *problem {
	for _, err := range errs {
		if p, ok := errors.AsType[*problem](err); ok {
			return p
		}
	}
	for _, err := range errs {
		detail += ": " + err.Error()
	}
	switch {
	case status == http.StatusRequestTimeout:
		return refuse(status, ledger.Busy, detail)
	case status >= http.StatusInternalServerError && strings.HasPrefix(detail, "cannot read request body"):
		return refuse(http.StatusBadRequest, ledger.Invalid, detail) // it broke off, or its framing is wrong
	case status >= http.StatusInternalServerError:
		return newProblem(errors.New(detail))
	}
	return refuse(status, ledger.Invalid, detail)
}
