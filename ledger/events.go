package ledger

import (
	"context"

	"jobledger/db"
)

// EventFilter selects events; they come in the order of their times, and of their ids at the same time.
type EventFilter struct {
	Job   string // empty: of all jobs
	Type  string // of EventTypes; empty: of all types
	After string // the id of the last event of the page before; empty: from the start
	Limit int    // 1 to PageMax
}

const eventColumns = `id, type, job_id, owner, payload, created_at`

// Events lists events. The pages are for reading what is there, not for following what comes: where
// several write at once, an event can be committed after a later one. An [Endpoint] misses none.
//
// Errors: INVALID; NOT_FOUND for an unknown job or After.
func (l *Ledger) Events(ctx context.Context, f EventFilter) ([]Event, error) {
	if err := firstError(
		checkPage(f.Limit), checkAfter(f.After), checkOptionalID("job", f.Job),
		checkOneOf("type", f.Type, append([]string{""}, EventTypes...)...),
	); err != nil {
		return nil, err
	}
	return read(ctx, l, func(tx *db.Tx) ([]Event, error) { return events(tx, f) })
}

func events(tx *db.Tx, f EventFilter) ([]Event, error) {
	list := []Event{}
	if f.Job != "" {
		if _, err := mustFindJob(tx, f.Job); err != nil {
			return nil, err
		}
	}
	var from Time
	if f.After != "" {
		found, err := tx.Get(&from, `SELECT created_at FROM events WHERE id = ?`, f.After)
		if err != nil || !found {
			return nil, firstError(err, noEvent(f.After))
		}
	}
	query, args := f.query(from)
	err := tx.Select(&list, query, args...)
	return list, err
}

func noEvent(id string) error { return fail(NotFound, "there is no event %q", id) }

// query goes through the index of times or, for one job, through that job's ids.
func (f *EventFilter) query(from Time) (query string, args []any) {
	query = `SELECT ` + eventColumns + ` FROM events WHERE (created_at, id) > (?, ?)`
	args = []any{from, f.After}
	if f.Job != "" {
		query += ` AND id IN (` + jobEventsQuery + `)`
		args = append(args, jobEvents(f.Job)...)
	}
	if f.Type != "" {
		query += ` AND type = ?`
		args = append(args, f.Type)
	}
	return query + ` ORDER BY created_at, id LIMIT ?`, append(args, f.Limit)
}

// jobEventsQuery gives the ids of a job's events; its arguments are those of jobEvents.
const jobEventsQuery = `
SELECT id FROM events WHERE id = ?
UNION ALL
SELECT id FROM events WHERE id > ? AND id < ? AND job_id = ?`

// jobEvents are the ids that a job's events can have: one, and a range in which they must be the job's.
// ';' is the character after ':'.
func jobEvents(job string) []any {
	return []any{"settled:" + job, "conflict:" + job + ":", "conflict:" + job + ";", job}
}

// findEvent gives an event, or NOT_FOUND.
func findEvent(tx *db.Tx, id string) (*Event, error) {
	e := new(Event)
	found, err := tx.Get(e, `SELECT `+eventColumns+` FROM events WHERE id = ?`, id)
	if err != nil || !found {
		return nil, firstError(err, noEvent(id))
	}
	return e, nil
}

// ReplayEvent sends an event again, as if it were new: to one endpoint, or to every enabled endpoint that
// takes its type and every one that it was for before. What a sender has at this moment stays as it is.
// It gives the event's deliveries to those endpoints.
//
// Errors: INVALID; NOT_FOUND.
func (l *Ledger) ReplayEvent(ctx context.Context, event, endpoint string) ([]Delivery, error) {
	if err := firstError(checkEventID(event), checkOptionalID("endpoint", endpoint)); err != nil {
		return nil, err
	}
	return write(ctx, l, func(tx *db.Tx) ([]Delivery, error) { return replayEvent(tx, event, endpoint) })
}

func replayEvent(tx *db.Tx, event, endpoint string) ([]Delivery, error) {
	e, err := findEvent(tx, event)
	if err != nil {
		return nil, err
	}
	if endpoint != "" {
		if _, err := findEndpoint(tx, `id = ?`, endpoint); err != nil {
			return nil, err
		}
	}
	_, err = tx.Exec(`
		UPDATE deliveries SET status = 'pending', tries = 0, next_at = ?, done_at = NULL
		WHERE event_id = ? AND (? = '' OR endpoint_id = ?) AND lease IS NULL`,
		now(tx), event, endpoint, endpoint)
	if err != nil {
		return nil, err
	}
	// No delivery is older than its event, even if the clock was set back.
	_, err = tx.Exec(`
		INSERT INTO deliveries (event_id, endpoint_id, job_id, n, status, tries, next_at, last_error, created_at)
		SELECT v.id, e.id, v.job_id, CAST(? AS BIGINT), 'pending', 0, CAST(? AS BIGINT), '',
		       CASE WHEN v.created_at > ? THEN v.created_at ELSE ? END
		FROM events v CROSS JOIN endpoints e
		WHERE v.id = ? AND (e.id = ? OR ? = '' AND e.disabled_at IS NULL
		                    AND (e.types = '' OR e.types LIKE '%,' || v.type || ',%'))
		ON CONFLICT (event_id, endpoint_id) DO NOTHING`,
		e.place(), now(tx), now(tx), now(tx), event, endpoint, endpoint)
	if err != nil {
		return nil, err
	}
	return deliveries(tx, DeliveryFilter{Event: event, Endpoint: endpoint, Limit: PageMax})
}
