package page

import (
	"net/http"
	"time"

	"jobledger/ledger"
)

// listData is a page of a list that has no filters.
type listData[T any] struct {
	Items []T
	After string
	More  string
	Now   ledger.Time
}

// newList makes a page of a list.
func newList[T any](r *http.Request, path string, items []T, id func(*T) string, also ...string) listData[T] {
	return listData[T]{
		Items: items, After: r.URL.Query().Get("after"), Now: ledger.At(time.Now()),
		More: nextPage(path, items, pageRows, id, also...),
	}
}

func (p *Page) unresolved(r *http.Request) (view, error) {
	after := r.URL.Query().Get("after")
	list, err := p.ledger.UnresolvedJobs(r.Context(), after, pageRows)
	if err != nil {
		return view{}, err
	}
	d := newList(r, "/reconcile", list, func(u *ledger.Unresolved) string { return u.Job })
	api := query("/v1/reconcile", "after", after)
	return view{Title: "To reconcile", Here: "reconcile", API: api, Data: d}, nil
}

func (p *Page) conflicts(r *http.Request) (view, error) {
	const kind = "job.conflict"
	after := r.URL.Query().Get("after")
	list, err := p.ledger.Events(r.Context(), ledger.EventFilter{Type: kind, After: after, Limit: pageRows})
	if err != nil {
		return view{}, err
	}
	conflicts := make([]ledger.Contradiction, len(list))
	for i := range list {
		if conflicts[i], err = list[i].Contradiction(); err != nil {
			return view{}, err
		}
	}
	d := newList(r, "/conflicts", conflicts, func(c *ledger.Contradiction) string { return c.Event })
	api := query("/v1/events", "type", kind, "after", after)
	return view{Title: "Conflicts", Here: "status", API: api, Data: d}, nil
}

// deliveriesData is a page of the list of deliveries.
type deliveriesData struct {
	listData[ledger.Delivery]
	Status   string
	Statuses []ledger.DeliveryStatus
}

func (p *Page) deliveries(r *http.Request) (view, error) {
	q := r.URL.Query()
	status, after := q.Get("status"), q.Get("after")
	f := ledger.DeliveryFilter{Status: ledger.DeliveryStatus(status), After: after, Limit: pageRows}
	list, err := p.ledger.Deliveries(r.Context(), f)
	if err != nil {
		return view{}, err
	}
	d := deliveriesData{
		listData: newList(r, "/deliveries", list, (*ledger.Delivery).Key, "status", status), Status: status,
		Statuses: []ledger.DeliveryStatus{
			ledger.DeliveryPending, ledger.DeliveryDelivered, ledger.DeliveryDead,
		},
	}
	api := query("/v1/deliveries", "status", status, "after", after)
	return view{Title: "Deliveries", Here: "status", API: api, Data: d}, nil
}
