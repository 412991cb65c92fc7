package server

import (
	"context"
	"net/http"

	"jobledger/internal/httpcall"
	"jobledger/ledger"
)

// endpointRequest is the body of POST /v1/endpoints.
type endpointRequest struct {
	URL    string   `json:"url" maxLength:"2048"`
	Secret string   `json:"secret" doc:"whsec_ and the base64 of 24 to 64 bytes; it is never shown again"`
	Types  []string `json:"types,omitempty" doc:"the types of events that it takes; default: all"`
}

// rotateRequest is the body of POST /v1/endpoints/{id}/rotate.
type rotateRequest struct {
	Secret string `json:"secret" doc:"signs first from now on; the one before signs beside it"`
}

// disableRequest is the body of POST /v1/endpoints/{id}/disable.
type disableRequest struct {
	Reason string `json:"reason" maxLength:"1024"`
}

// endpointAnswer is one endpoint, without its secrets.
type endpointAnswer struct {
	Endpoint ledger.Endpoint `json:"endpoint"`
}

func (s *Server) addEndpoints() {
	add(s, route{
		method: http.MethodPost, path: "/v1/endpoints", id: "addEndpoint", tag: "endpoints",
		need:    ledger.ScopeOperator,
		summary: "Add a place that is told of events",
		about:   "The URL is its key. It is told of the events that are written from then on.",
		created: true, body: endpointRequest{},
	}, s.addEndpoint)
	add(s, route{
		method: http.MethodGet, path: "/v1/endpoints", id: "listEndpoints", tag: "endpoints",
		need:    ledger.ScopeOperator,
		summary: "List all endpoints, the disabled ones too",
	}, s.endpoints)
	verb := func(verb, id, summary string, body any) route {
		return route{
			method: http.MethodPost, path: "/v1/endpoints/{id}/" + verb, id: id, tag: "endpoints",
			need: ledger.ScopeOperator, summary: summary, body: body,
		}
	}
	add(s, verb("rotate", "rotateEndpoint", "Give an endpoint a new secret", rotateRequest{}), s.rotateEndpoint)
	add(s, verb("disable", "disableEndpoint", "Stop sending to an endpoint; what is on its way waits",
		disableRequest{}), s.disableEndpoint)
	add(s, verb("enable", "enableEndpoint", "Let an endpoint be told of events again", nil), s.enableEndpoint)
}

func (s *Server) addEndpoint(ctx context.Context, in *bodyInput) (ledger.EndpointResult, error) {
	var b endpointRequest
	if err := decode(in.RawBody, &b); err != nil {
		return ledger.EndpointResult{}, err
	}
	// Whether a private address may be reached is decided when something is sent there.
	guard := httpcall.Options{AllowPrivate: true, AllowHTTP: s.options.AllowHTTP}
	if err := httpcall.CheckURL(b.URL, guard); err != nil {
		return ledger.EndpointResult{}, ledger.InvalidField("url", "%v", err)
	}
	return s.ledger.AddEndpoint(ctx, ledger.EndpointRequest{URL: b.URL, Secret: b.Secret, Types: b.Types})
}

func (s *Server) endpoints(ctx context.Context, _ *noInput) (list[ledger.Endpoint], error) {
	all, err := s.ledger.Endpoints(ctx)
	return list[ledger.Endpoint]{Items: all}, err
}

func (s *Server) rotateEndpoint(ctx context.Context, in *verbInput) (endpointAnswer, error) {
	var b rotateRequest
	if err := decode(in.RawBody, &b); err != nil {
		return endpointAnswer{}, err
	}
	e, err := s.ledger.RotateEndpoint(ctx, in.ID, b.Secret)
	return endpointAnswer{e}, err
}

func (s *Server) disableEndpoint(ctx context.Context, in *verbInput) (endpointAnswer, error) {
	var b disableRequest
	if err := decode(in.RawBody, &b); err != nil {
		return endpointAnswer{}, err
	}
	e, err := s.ledger.DisableEndpoint(ctx, in.ID, b.Reason)
	return endpointAnswer{e}, err
}

func (s *Server) enableEndpoint(ctx context.Context, in *jobInput) (endpointAnswer, error) {
	e, err := s.ledger.EnableEndpoint(ctx, in.ID)
	return endpointAnswer{e}, err
}
