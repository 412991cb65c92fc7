package ledger

import (
	"context"
	"slices"
	"time"

	"jobledger/db"
)

// ClaimedDelivery is a delivery that a sender has until its lease ends, with all that it needs to send it.
type ClaimedDelivery struct {
	Delivery
	Event   Event
	Secrets []string // of the endpoint, the newest first: each signs
	Lease   string   // names the claim
}

// The bounds of a lease.
const (
	leaseMin = time.Second
	leaseMax = time.Hour
)

// deliveriesAtOnce bounds what senders have of one endpoint at any time, so that none has more of a slow
// one than that.
const deliveriesAtOnce = 4

// ClaimDeliveries gives a sender deliveries that are due: at most limit, 1 to PageMax, and at most a few
// per endpoint, those first that waited longest. Of one job and endpoint only the first pending event is
// given, so that they arrive in order. Each counts as a try. A delivery that is not finished within lease,
// a second to an hour, is given again.
//
// Errors: INVALID.
func (l *Ledger) ClaimDeliveries(
	ctx context.Context, limit int, lease time.Duration,
) ([]ClaimedDelivery, error) {
	if err := firstError(checkPage(limit), checkLease(lease)); err != nil {
		return nil, err
	}
	return write(ctx, l, func(tx *db.Tx) ([]ClaimedDelivery, error) { return claimDeliveries(tx, limit, lease) })
}

func checkLease(lease time.Duration) error {
	if lease < leaseMin || lease > leaseMax {
		return InvalidField("lease", "%v is out of range; it takes %v to %v", lease, leaseMin, leaseMax)
	}
	return nil
}

func claimDeliveries(tx *db.Tx, limit int, lease time.Duration) ([]ClaimedDelivery, error) {
	var due []string
	if err := tx.Select(&due, dueEndpointsQuery, now(tx), now(tx)); err != nil {
		return nil, err
	}
	// Senders that come together take their turns at the endpoints' rows, all in one order.
	for _, endpoint := range slices.Sorted(slices.Values(due)) {
		if _, err := tx.Lock(`SELECT 1 FROM endpoints WHERE id = ?`, endpoint); err != nil {
			return nil, err
		}
	}
	list := []ClaimedDelivery{}
	for _, endpoint := range due {
		if len(list) == limit {
			break
		}
		claimed, err := claimOf(tx, endpoint, limit-len(list), lease)
		if err != nil {
			return nil, err
		}
		list = append(list, claimed...)
	}
	return list, nil
}

const (
	// What is on its way has its next_at at the end of its lease.
	dueEndpointsQuery = `
SELECT id FROM (
  SELECT p.id, (SELECT MIN(d.next_at) FROM deliveries d
                WHERE d.endpoint_id = p.id AND d.status = 'pending') AS next_at
  FROM endpoints p
  WHERE p.disabled_at IS NULL AND (p.paused_until IS NULL OR p.paused_until <= ?)) due
WHERE next_at <= ?
ORDER BY next_at, id`

	leasedQuery = `
SELECT COUNT(*) FROM deliveries WHERE endpoint_id = ? AND lease IS NOT NULL AND next_at > ?`

	claimDeliveriesQuery = `
UPDATE deliveries SET lease = ?, lease_until = ?, next_at = ?, tries = tries + 1
WHERE endpoint_id = ? AND status = 'pending' AND next_at <= ? AND event_id IN (
  SELECT d.event_id FROM deliveries d
  WHERE d.endpoint_id = ? AND d.status = 'pending' AND d.next_at <= ?
    AND NOT EXISTS (SELECT 1 FROM deliveries o
                    WHERE o.endpoint_id = d.endpoint_id AND o.job_id = d.job_id AND o.status = 'pending'
                      AND o.n < d.n)
  ORDER BY d.next_at, d.event_id
  LIMIT ?)`

	claimedDeliveriesQuery = `
SELECT d.event_id, d.endpoint_id, d.job_id, d.n, d.status, d.tries, d.next_at, d.last_status, d.last_error,
       d.created_at, d.done_at, v.type, v.owner, v.payload, v.created_at AS event_at
FROM deliveries d
JOIN events v ON v.id = d.event_id
WHERE d.endpoint_id = ? AND d.lease = ?
ORDER BY d.created_at, d.event_id`
)

// claimOf claims deliveries to one endpoint, whose row is locked.
func claimOf(tx *db.Tx, endpoint string, limit int, lease time.Duration) ([]ClaimedDelivery, error) {
	to, err := findEndpoint(tx, `id = ?`, endpoint)
	if err != nil {
		return nil, err
	}
	var busy int
	if _, err := tx.Get(&busy, leasedQuery, endpoint, now(tx)); err != nil {
		return nil, err
	}
	limit = min(limit, deliveriesAtOnce-busy)
	if to.DisabledAt != nil || limit <= 0 {
		return nil, nil
	}
	name, until := newID(), now(tx)+Time(lease.Microseconds())
	rows, err := tx.Exec(claimDeliveriesQuery,
		name, until, until, endpoint, now(tx), endpoint, now(tx), limit)
	if err != nil || rows == 0 {
		return nil, err
	}
	var list []ClaimedDelivery
	err = db.Each(tx, func(r *claimedRow) (bool, error) {
		d := ClaimedDelivery{Delivery: r.Delivery, Secrets: to.secrets, Lease: name}
		d.URL = to.URL
		d.Event = Event{r.Delivery.Event, r.Type, r.Job, r.Owner, r.Payload, r.EventAt}
		list = append(list, d)
		return true, nil
	}, claimedDeliveriesQuery, endpoint, name)
	return list, err
}

// claimedRow is a claimed delivery with its event.
type claimedRow struct {
	Delivery
	Type    string `db:"type"`
	Owner   string `db:"owner"`
	Payload JSON   `db:"payload"`
	EventAt Time   `db:"event_at"`
}

// DeliveryAnswer says how a try went.
type DeliveryAnswer struct {
	Event     string
	Endpoint  string
	Lease     string // that of the claim
	Delivered bool
	Status    int    // of HTTP, 100 to 999; 0: there was no answer
	Error     string // what went wrong, up to 1024 bytes; empty if it was delivered
	RetryAt   Time   // of a failed one: when to try again; 0: never, it is dead
	PauseTill Time   // nothing goes to the endpoint before; 0: no pause
}

// FinishDelivery records how a try went.
//
// Errors: INVALID; NOT_FOUND; NOT_ALLOWED if the lease is not the delivery's any more, as another sender
// has it or it has ended: nothing changes then.
func (l *Ledger) FinishDelivery(ctx context.Context, a DeliveryAnswer) (Delivery, error) {
	if err := a.check(); err != nil {
		return Delivery{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (Delivery, error) { return finishDelivery(tx, a) })
}

func (a *DeliveryAnswer) check() error {
	if a.Status != 0 && (a.Status < 100 || a.Status > 999) {
		return InvalidField("status", "%d is out of range; it takes 100 to 999", a.Status)
	}
	for field, at := range map[string]Time{"retry_at": a.RetryAt, "pause_till": a.PauseTill} {
		if at < 0 || at > timeMax {
			return InvalidField(field, "is before 1970 or after 9999")
		}
	}
	return firstError(
		checkEventID(a.Event), CheckID("endpoint", a.Endpoint), CheckID("lease", a.Lease),
		checkText("error", a.Error),
	)
}

func finishDelivery(tx *db.Tx, a DeliveryAnswer) (Delivery, error) {
	status, next, done, last := DeliveryDelivered, now(tx), new(now(tx)), new(int64(a.Status))
	switch {
	case a.Delivered:
	case a.RetryAt == 0:
		status = DeliveryDead
	default:
		status, next, done = DeliveryPending, a.RetryAt, nil
	}
	if a.Status == 0 {
		last = nil
	}
	rows, err := tx.Exec(`
		UPDATE deliveries
		SET status = ?, lease = NULL, lease_until = NULL, next_at = ?, last_status = ?, last_error = ?, done_at = ?
		WHERE event_id = ? AND endpoint_id = ? AND lease = ?`,
		status, next, last, a.Error, done, a.Event, a.Endpoint, a.Lease)
	if err != nil {
		return Delivery{}, err
	}
	var d Delivery
	found, err := tx.Get(&d, deliveriesQuery+`WHERE d.event_id = ? AND d.endpoint_id = ?`, a.Event, a.Endpoint)
	switch {
	case err != nil:
		return Delivery{}, err
	case !found:
		return Delivery{}, fail(NotFound, "there is no delivery of event %q to endpoint %q", a.Event, a.Endpoint)
	case rows == 0:
		return Delivery{}, fail(NotAllowed, "the delivery of event %q is not under this lease any more (%s)",
			a.Event, d.Status)
	}
	if a.PauseTill > now(tx) {
		_, err = tx.Exec(`
			UPDATE endpoints SET paused_until = ?
			WHERE id = ? AND (paused_until IS NULL OR paused_until < ?)`, a.PauseTill, a.Endpoint, a.PauseTill)
	}
	return d, err
}
