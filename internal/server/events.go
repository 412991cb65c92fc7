package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

// replayRequest is the body of POST /v1/events/{event}/replay.
type replayRequest struct {
	Endpoint string `json:"endpoint,omitempty" maxLength:"255" doc:"only to the endpoint with this id"`
}

type eventsInput struct {
	Job   string `query:"job" maxLength:"255" doc:"only this job's"`
	Type  string `query:"type" enum:"job.completed,job.failed,job.canceled,job.timed_out,job.conflict"`
	Limit number `query:"limit" maximum:"1000" doc:"at most so many; default 100"`
	After string `query:"after" doc:"start after the event with this id"`
}

type deliveriesInput struct {
	Event    string `query:"event" doc:"only of the event with this id"`
	Endpoint string `query:"endpoint" maxLength:"255" doc:"only to the endpoint with this id"`
	Status   string `query:"status" enum:"pending,delivered,dead"`
	Limit    number `query:"limit" maximum:"1000" doc:"at most so many; default 100"`
	After    string `query:"after" doc:"start after the delivery that next named"`
}

type replayInput struct {
	Event   string `path:"event"`
	RawBody []byte `contentType:"application/json"`
}

func (s *Server) addEvents() {
	add(s, route{
		method: http.MethodGet, path: "/v1/events", id: "listEvents", tag: "events", need: ledger.ScopeRead,
		summary: "List the events that follow from jobs' ends",
		about: "For reading what is there, not for following what comes: an event can be committed after a " +
			"later one. An endpoint misses none.",
	}, s.events)
	add(s, route{
		method: http.MethodPost, path: "/v1/events/{event}/replay", id: "replayEvent", tag: "events",
		need:    ledger.ScopeOperator,
		summary: "Send an event again, as if it were new",
		about: "To one endpoint, or to every enabled one that takes its type and every one that it was for " +
			"before. Under the same id: a receiver that keeps ids takes it once.",
		body: replayRequest{}, free: true,
	}, s.replay)
	add(s, route{
		method: http.MethodGet, path: "/v1/deliveries", id: "listDeliveries", tag: "events", need: ledger.ScopeRead,
		summary: "List the ways of events to endpoints, and how they stand",
	}, s.deliveries)
}

func (s *Server) events(ctx context.Context, in *eventsInput) (list[ledger.Event], error) {
	return paged(in.Limit, func(e *ledger.Event) string { return e.ID }, func(most int) ([]ledger.Event, error) {
		return s.ledger.Events(ctx, ledger.EventFilter{
			Job: in.Job, Type: in.Type, After: in.After, Limit: most,
		})
	})
}

func (s *Server) replay(ctx context.Context, in *replayInput) (list[ledger.Delivery], error) {
	var b replayRequest
	if err := decodeFree(in.RawBody, &b); err != nil {
		return list[ledger.Delivery]{}, err
	}
	all, err := s.ledger.ReplayEvent(ctx, in.Event, b.Endpoint)
	return list[ledger.Delivery]{Items: all}, err
}

func (s *Server) deliveries(ctx context.Context, in *deliveriesInput) (list[ledger.Delivery], error) {
	return paged(in.Limit, (*ledger.Delivery).Key, func(most int) ([]ledger.Delivery, error) {
		return s.ledger.Deliveries(ctx, ledger.DeliveryFilter{
			Event: in.Event, Endpoint: in.Endpoint, Status: ledger.DeliveryStatus(in.Status), After: in.After,
			Limit: most,
		})
	})
}
