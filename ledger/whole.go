package ledger

import (
	"context"
	"errors"
	"io"
	"slices"

	"jobledger/db"
)

// A copy has what an export must not show and no other ledger has a use for: the tables of the server.
// They come after the types of an export: each refers only to rows before it, and an event that comes
// before its endpoints brings no delivery about.
var wholeTypes = slices.Concat(exportTypes, []string{"token", "endpoint", "delivery", "poll"})

type (
	wholeToken struct {
		Type string `json:"type"`
		Token
		Hash Hash `db:"hash" json:"hash"`
	}
	wholeEndpoint struct {
		Type string `json:"type"`
		endpointRow
	}
	wholeDelivery struct {
		Type string `json:"type"`
		Delivery
		Lease      *string `db:"lease" json:"lease"`
		LeaseUntil *Time   `db:"lease_until" json:"lease_until"`
	}
	wholePoll struct {
		Type       string  `json:"type"`
		Job        string  `db:"job_id"`
		Attempt    int64   `db:"attempt"`
		Provider   string  `db:"provider"`
		NextAt     Time    `db:"next_at"`
		Tries      int64   `db:"tries"`
		Lease      *string `db:"lease"`
		LeaseUntil *Time   `db:"lease_until"`
		LastError  string  `db:"last_error"`
	}
)

// exportWhole writes what Export writes, and the tables of the server.
func (l *Ledger) exportWhole(ctx context.Context, w io.Writer) error {
	return l.export(ctx, w, wholeTypes, func(e *exporter) []func(*db.Tx) error {
		return append(e.tables(), e.tokens, e.endpoints, e.deliveries, e.polls)
	})
}

func (e *exporter) tokens(tx *db.Tx) error {
	return db.Each(tx, func(t *wholeToken) (bool, error) {
		t.Type = "token"
		return e.row("token", t)
	}, `SELECT `+tokenColumns+`, hash FROM tokens ORDER BY id`)
}

func (e *exporter) endpoints(tx *db.Tx) error {
	return db.Each(tx, func(p *wholeEndpoint) (bool, error) {
		p.Type = "endpoint"
		return e.row("endpoint", p)
	}, `SELECT `+endpointColumns+` FROM endpoints ORDER BY id`)
}

func (e *exporter) deliveries(tx *db.Tx) error {
	return db.Each(tx, func(d *wholeDelivery) (bool, error) {
		d.Type = "delivery"
		return e.row("delivery", d)
	}, `SELECT `+deliveryColumns+` FROM deliveries ORDER BY event_id, endpoint_id`)
}

const pollColumns = `job_id, attempt, provider, next_at, tries, lease, lease_until, last_error`

func (e *exporter) polls(tx *db.Tx) error {
	return db.Each(tx, func(p *wholePoll) (bool, error) {
		p.Type = "poll"
		return e.row("poll", p)
	}, `SELECT `+pollColumns+` FROM polls ORDER BY job_id`)
}

// serverRow decodes a row of the server's tables and writes it.
func (r *restorer) serverRow(kind string, text []byte) error {
	switch kind {
	case "token":
		return bringRow(r, text, restoreToken)
	case "endpoint":
		return bringRow(r, text, restoreEndpoint)
	case "delivery":
		return bringRow(r, text, restoreDelivery)
	}
	return bringRow(r, text, restorePoll)
}

// bringRow is keep for rows that cannot be there yet.
func bringRow[T any](r *restorer, text []byte, insert func(*db.Tx, *T) error) error {
	row := new(T)
	if err := strict(text, row); err != nil {
		return r.broken("%v", err)
	}
	err := insert(r.tx, row)
	if errors.Is(err, db.ErrConstraint) {
		return r.broken("contradicts the tables: %v", err)
	}
	if err == nil {
		r.importer.row(&r.r.Imported)
	}
	return err
}

func restoreToken(tx *db.Tx, t *wholeToken) error {
	_, err := tx.Exec(`INSERT INTO tokens (`+tokenColumns+`, hash) VALUES (?, ?, ?, ?, ?, ?)`,
		t.ID, t.Name, t.Scope, t.CreatedAt, t.RevokedAt, []byte(t.Hash))
	return err
}

func restoreEndpoint(tx *db.Tx, p *wholeEndpoint) error {
	_, err := tx.Exec(`INSERT INTO endpoints (`+endpointColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		p.ID, p.URL, p.Secret, p.Types, p.CreatedAt, p.PausedUntil, p.DisabledAt, p.DisabledReason)
	return err
}

func restoreDelivery(tx *db.Tx, d *wholeDelivery) error {
	_, err := tx.Exec(`
		INSERT INTO deliveries (`+deliveryColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.Event, d.Endpoint, d.Job, d.N, d.Status, d.Tries, d.NextAt, d.Lease, d.LeaseUntil, d.LastStatus,
		d.LastError, d.CreatedAt, d.DoneAt)
	return err
}

func restorePoll(tx *db.Tx, p *wholePoll) error {
	_, err := tx.Exec(`INSERT INTO polls (`+pollColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		p.Job, p.Attempt, p.Provider, p.NextAt, p.Tries, p.Lease, p.LeaseUntil, p.LastError)
	return err
}
