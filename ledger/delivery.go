package ledger

import (
	"context"
	"strings"

	"jobledger/db"
)

// DeliveryStatus says how an event's way to an endpoint stands.
type DeliveryStatus string

// The statuses of a delivery.
const (
	DeliveryPending   DeliveryStatus = "pending"   // it is sent, or sent again, when its time comes
	DeliveryDelivered DeliveryStatus = "delivered" // the endpoint answered with a 2xx status
	DeliveryDead      DeliveryStatus = "dead"      // given up; only a replay sends it again
)

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	Event      string         `db:"event_id" json:"event"`
	Endpoint   string         `db:"endpoint_id" json:"endpoint"`
	URL        string         `db:"url" json:"url"` // of the endpoint
	Job        string         `db:"job_id" json:"job"`
	N          int64          `db:"n" json:"n"` // 0: the settlement; k: the k-th contradiction of the job
	Status     DeliveryStatus `db:"status" json:"status"`
	Tries      int64          `db:"tries" json:"tries"`             // that were begun
	NextAt     Time           `db:"next_at" json:"next_at"`         // of a pending one: not before
	LastStatus *int64         `db:"last_status" json:"last_status"` // of HTTP; nil: no answer yet
	LastError  string         `db:"last_error" json:"last_error"`
	CreatedAt  Time           `db:"created_at" json:"created_at"`
	DoneAt     *Time          `db:"done_at" json:"done_at"` // nil while it is pending
}

// Key is the delivery's place in the list of [Ledger.Deliveries].
func (d *Delivery) Key() string { return d.Event + "/" + d.Endpoint }

const deliveryColumns = `event_id, endpoint_id, job_id, n, status, tries, next_at, lease, lease_until,
	last_status, last_error, created_at, done_at`

const deliveriesQuery = `
SELECT d.event_id, d.endpoint_id, p.url, d.job_id, d.n, d.status, d.tries, d.next_at, d.last_status,
       d.last_error, d.created_at, d.done_at
FROM deliveries d
JOIN endpoints p ON p.id = d.endpoint_id
`

// DeliveryFilter selects deliveries; they come in the order of their events' ids, and of their
// endpoints'.
type DeliveryFilter struct {
	Event    string         // empty: of all events
	Endpoint string         // empty: to all endpoints
	Status   DeliveryStatus // empty: in any status
	After    string         // the Key of the last delivery of the page before; empty: from the start
	Limit    int            // 1 to PageMax
}

// Deliveries lists deliveries. Errors: INVALID; NOT_FOUND for an unknown event or endpoint.
func (l *Ledger) Deliveries(ctx context.Context, f DeliveryFilter) ([]Delivery, error) {
	if err := firstError(
		checkPage(f.Limit), checkAfter(f.After), checkOptionalID("endpoint", f.Endpoint),
		checkOneOf("status", f.Status, "", DeliveryPending, DeliveryDelivered, DeliveryDead),
	); err != nil {
		return nil, err
	}
	if f.After != "" && !strings.Contains(f.After, "/") {
		return nil, InvalidField("after", "%q is not an event's id, a slash and an endpoint's", shorten(f.After))
	}
	if f.Event != "" {
		if err := checkEventID(f.Event); err != nil {
			return nil, err
		}
	}
	return read(ctx, l, func(tx *db.Tx) ([]Delivery, error) {
		if f.Event != "" {
			if _, err := findEvent(tx, f.Event); err != nil {
				return nil, err
			}
		}
		if f.Endpoint != "" {
			if _, err := findEndpoint(tx, `id = ?`, f.Endpoint); err != nil {
				return nil, err
			}
		}
		return deliveries(tx, f)
	})
}

func checkEventID(id string) error { return checkKey("event", id, eventIDMax) }

func deliveries(tx *db.Tx, f DeliveryFilter) ([]Delivery, error) {
	list := []Delivery{}
	query, args := f.query()
	err := tx.Select(&list, query, args...)
	return list, err
}

func (f *DeliveryFilter) query() (query string, args []any) {
	slash := max(strings.LastIndexByte(f.After, '/'), 0) // an event's id may have one, an endpoint's has none
	args = []any{f.After[:slash], strings.TrimPrefix(f.After[slash:], "/")}
	query = deliveriesQuery + `WHERE (d.event_id, d.endpoint_id) > (?, ?)`
	if f.Event != "" {
		query += ` AND d.event_id = ?`
		args = append(args, f.Event)
	}
	if f.Endpoint != "" {
		query += ` AND d.endpoint_id = ?`
		args = append(args, f.Endpoint)
	}
	if f.Status != "" {
		query += ` AND d.status = '` + string(f.Status) + `'` // in the words of an index
	}
	return query + ` ORDER BY d.event_id, d.endpoint_id LIMIT ?`, append(args, f.Limit)
}
