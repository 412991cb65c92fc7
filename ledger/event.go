package ledger

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"jobledger/db"
)

// Event is a follow-up for another system, written by the transaction that it speaks of.
type Event struct {
	ID        string `db:"id" json:"id"`
	Type      string `db:"type" json:"type"` // "job." and the outcome, or "job.conflict"
	Job       string `db:"job_id" json:"job"`
	Owner     string `db:"owner" json:"owner"`
	Payload   JSON   `db:"payload" json:"payload"`
	CreatedAt Time   `db:"created_at" json:"created_at"`
}

// settledPayload is what the event of a settlement says.
type settledPayload struct {
	Job      string  `json:"job"`
	Owner    string  `json:"owner"`
	Outcome  Outcome `json:"outcome"`
	Cost     int64   `json:"cost"`
	Consumed int64   `json:"consumed"`
	Returned int64   `json:"returned"`
	Source   Source  `json:"source"`
	Attempt  int64   `json:"attempt"`
	Reason   string  `json:"reason"`
	At       Time    `json:"settled_at"`
}

func settledEvent(s *Settlement) *Event {
	j := &s.Job
	return newEvent("settled:"+j.ID, "job."+string(j.Status), j, settledPayload{
		Job:      j.ID,
		Owner:    j.Owner,
		Outcome:  Outcome(j.Status),
		Cost:     j.Cost,
		Consumed: s.Consumed,
		Returned: s.Returned,
		Source:   *j.SettledSource,
		Attempt:  *j.SettledAttempt,
		Reason:   j.Reason,
		At:       *j.SettledAt,
	})
}

// conflictPayload is what the event of a contradicting report says.
type conflictPayload struct {
	Job      string  `json:"job"`
	Owner    string  `json:"owner"`
	Outcome  Outcome `json:"outcome"`
	Reported Outcome `json:"reported"`
	Source   Source  `json:"source"`
	Attempt  int64   `json:"attempt"`
	Reason   string  `json:"reason"`
}

func conflictEvent(j *Job, r *Report, n int64) *Event {
	return newEvent(fmt.Sprintf("conflict:%s:%d", j.ID, n), "job.conflict", j, conflictPayload{
		Job:      j.ID,
		Owner:    j.Owner,
		Outcome:  Outcome(j.Status),
		Reported: r.Outcome,
		Source:   r.Source,
		Attempt:  r.Attempt,
		Reason:   r.Reason,
	})
}

// Contradiction reads what an event of type job.conflict says. Error: INCONSISTENT if it says something
// else.
func (e *Event) Contradiction() (Contradiction, error) {
	var p conflictPayload
	if err := json.Unmarshal([]byte(e.Payload), &p); err != nil {
		return Contradiction{}, fail(Inconsistent, "the payload of event %q cannot be read", e.ID)
	}
	return Contradiction{
		Event: e.ID, Job: e.Job, Owner: e.Owner, Outcome: p.Outcome, Reported: p.Reported, Source: p.Source,
		Reason: p.Reason, At: e.CreatedAt,
	}, nil
}

// announceConflict writes the event of a report that contradicts a settlement.
func announceConflict(tx *db.Tx, j *Job, r *Report) error {
	var n int64
	_, err := tx.Get(&n, `SELECT COUNT(*) FROM events WHERE id > ? AND id < ? AND job_id = ?`,
		jobEvents(j.ID)[1:]...)
	if err != nil {
		return err
	}
	return insertEvent(tx, conflictEvent(j, r, n+1))
}

// place is the event's place among those of its job.
func (e *Event) place() (n int64) {
	if e.Type == "job.conflict" {
		n, _ = strconv.ParseInt(e.ID[strings.LastIndexByte(e.ID, ':')+1:], 10, 64)
	}
	return n
}

func newEvent(id, kind string, j *Job, payload any) *Event {
	return &Event{ID: id, Type: kind, Job: j.ID, Owner: j.Owner, Payload: mustJSON(payload)}
}

func insertEvent(tx *db.Tx, e *Event) error {
	e.CreatedAt = now(tx)
	_, err := tx.Exec(`
		INSERT INTO events (`+eventColumns+`)
		VALUES (?, ?, ?, ?, ?, ?)`,
		e.ID, e.Type, e.Job, e.Owner, e.Payload, e.CreatedAt)
	return err
}

// mustJSON encodes a value of this package, which cannot fail.
func mustJSON(v any) JSON {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return JSON(b)
}
