package ledger

import (
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"jobledger/db"
)

// EventTypes lists the types that an event can have.
var EventTypes = []string{"job.completed", "job.failed", "job.canceled", "job.timed_out", "job.conflict"}

// The limits of endpoints.
const (
	urlMax          = 2048 // bytes
	secretBytesMin  = 24   // of an endpoint's key
	secretBytesMax  = 64
	secretsMax      = 2 // that sign at the same time
	endpointSecret  = "whsec_"
	secretSeparator = " "
)

// Endpoint is a place that is told of events. It is told of those that are written after it was added,
// while it is enabled.
type Endpoint struct {
	ID             string   `json:"id"`
	URL            string   `json:"url"`
	Types          []string `json:"types"` // in the order of EventTypes; empty: all
	CreatedAt      Time     `json:"created_at"`
	PausedUntil    *Time    `json:"paused_until"` // nothing is sent before; nil: it never asked for a pause
	DisabledAt     *Time    `json:"disabled_at"`  // nil while it is enabled
	DisabledReason string   `json:"disabled_reason"`
	secrets        []string // the newest first
}

// EndpointRequest asks for an endpoint.
type EndpointRequest struct {
	URL    string   // http or https, with a host, without user, password and fragment; up to 2048 bytes
	Secret string   // whsec_ and the base64 of 24 to 64 bytes
	Types  []string // of EventTypes; empty: all
}

// EndpointResult is an endpoint that was asked for.
type EndpointResult struct {
	Endpoint Endpoint `json:"endpoint"`
	Replayed bool     `json:"replayed"`
}

// AddEndpoint adds an endpoint. Its URL is its key: there is one endpoint for each.
//
// Errors: INVALID; IDEMPOTENCY_MISMATCH if the URL has an endpoint with another secret or other types.
func (l *Ledger) AddEndpoint(ctx context.Context, r EndpointRequest) (EndpointResult, error) {
	types, err := checkEventTypes(r.Types)
	if err := firstError(err, checkURL(r.URL), checkSecret(r.Secret)); err != nil {
		return EndpointResult{}, err
	}
	r.Types = types
	return write(ctx, l, func(tx *db.Tx) (EndpointResult, error) { return addEndpoint(tx, r) })
}

func addEndpoint(tx *db.Tx, r EndpointRequest) (EndpointResult, error) {
	e := Endpoint{ID: newID(), URL: r.URL, Types: r.Types, CreatedAt: now(tx)}
	rows, err := tx.Exec(`
		INSERT INTO endpoints (id, url, secret, types, created_at, disabled_reason)
		VALUES (?, ?, ?, ?, ?, '')
		ON CONFLICT (url) DO NOTHING`,
		e.ID, e.URL, r.Secret, joinTypes(e.Types), e.CreatedAt)
	if err != nil || rows == 1 {
		return EndpointResult{Endpoint: e}, err
	}
	first, err := findEndpoint(tx, `url = ?`, r.URL)
	if err != nil {
		return EndpointResult{}, err
	}
	fields := differing(
		field{"secret", slices.Contains(first.secrets, r.Secret)},
		field{"types", slices.Equal(first.Types, r.Types)},
	)
	if fields != nil {
		return EndpointResult{}, mismatch("endpoint "+r.URL, fields)
	}
	return EndpointResult{Endpoint: *first, Replayed: true}, nil
}

// Endpoints lists all endpoints in the order in which they were added, the disabled ones too.
func (l *Ledger) Endpoints(ctx context.Context) ([]Endpoint, error) {
	return read(ctx, l, func(tx *db.Tx) ([]Endpoint, error) {
		list := []Endpoint{}
		err := db.Each(tx, func(r *endpointRow) (bool, error) {
			list = append(list, *r.endpoint())
			return true, nil
		}, `SELECT `+endpointColumns+` FROM endpoints ORDER BY created_at, id`)
		return list, err
	})
}

// RotateEndpoint gives an endpoint a new secret. The one before signs beside it until the next rotation,
// so that the receiver can change over at any time between the two. The newest secret again changes
// nothing.
//
// Errors: INVALID; NOT_FOUND.
func (l *Ledger) RotateEndpoint(ctx context.Context, id, secret string) (Endpoint, error) {
	if err := checkSecret(secret); err != nil {
		return Endpoint{}, err
	}
	return l.changeEndpoint(ctx, id, func(tx *db.Tx, e *Endpoint) error {
		if e.secrets[0] == secret {
			return nil
		}
		secrets := append([]string{secret}, e.secrets...)
		secrets = secrets[:min(len(secrets), secretsMax)]
		_, err := tx.Exec(`UPDATE endpoints SET secret = ? WHERE id = ?`,
			strings.Join(secrets, secretSeparator), e.ID)
		return err
	})
}

// DisableEndpoint stops sending to an endpoint: what is on its way waits until it is enabled again, and
// what is written meanwhile is not for it. One that is disabled already keeps its reason.
//
// Errors: INVALID; NOT_FOUND.
func (l *Ledger) DisableEndpoint(ctx context.Context, id, reason string) (Endpoint, error) {
	if err := CheckEvidence("reason", reason); err != nil {
		return Endpoint{}, err
	}
	return l.changeEndpoint(ctx, id, func(tx *db.Tx, e *Endpoint) error {
		if e.DisabledAt != nil {
			return nil
		}
		at := now(tx)
		e.DisabledAt, e.DisabledReason = &at, reason
		_, err := tx.Exec(`UPDATE endpoints SET disabled_at = ?, disabled_reason = ? WHERE id = ?`,
			at, reason, e.ID)
		return err
	})
}

// EnableEndpoint lets an endpoint be told of events again, at once.
//
// Errors: INVALID; NOT_FOUND.
func (l *Ledger) EnableEndpoint(ctx context.Context, id string) (Endpoint, error) {
	return l.changeEndpoint(ctx, id, func(tx *db.Tx, e *Endpoint) error {
		if e.DisabledAt == nil && e.PausedUntil == nil {
			return nil
		}
		e.DisabledAt, e.DisabledReason, e.PausedUntil = nil, "", nil
		_, err := tx.Exec(`
			UPDATE endpoints SET disabled_at = NULL, disabled_reason = '', paused_until = NULL WHERE id = ?`, e.ID)
		return err
	})
}

// changeEndpoint locks an endpoint and changes it.
func (l *Ledger) changeEndpoint(
	ctx context.Context, id string, change func(*db.Tx, *Endpoint) error,
) (Endpoint, error) {
	if err := CheckID("id", id); err != nil {
		return Endpoint{}, err
	}
	return write(ctx, l, func(tx *db.Tx) (Endpoint, error) {
		if _, err := tx.Lock(`SELECT 1 FROM endpoints WHERE id = ?`, id); err != nil {
			return Endpoint{}, err
		}
		e, err := findEndpoint(tx, `id = ?`, id)
		if err != nil {
			return Endpoint{}, err
		}
		return *e, change(tx, e)
	})
}

// endpointRow is an endpoint as its columns are.
type endpointRow struct {
	ID             string `db:"id"`
	URL            string `db:"url"`
	Secret         string `db:"secret"`
	Types          string `db:"types"`
	CreatedAt      Time   `db:"created_at"`
	PausedUntil    *Time  `db:"paused_until"`
	DisabledAt     *Time  `db:"disabled_at"`
	DisabledReason string `db:"disabled_reason"`
}

const endpointColumns = `id, url, secret, types, created_at, paused_until, disabled_at, disabled_reason`

func (r *endpointRow) endpoint() *Endpoint {
	return &Endpoint{
		ID: r.ID, URL: r.URL, Types: splitTypes(r.Types), CreatedAt: r.CreatedAt, PausedUntil: r.PausedUntil,
		DisabledAt: r.DisabledAt, DisabledReason: r.DisabledReason,
		secrets: strings.Split(r.Secret, secretSeparator),
	}
}

// findEndpoint gives the endpoint of which a condition holds, or NOT_FOUND.
func findEndpoint(tx *db.Tx, condition, value string) (*Endpoint, error) {
	var r endpointRow
	found, err := tx.Get(&r, `SELECT `+endpointColumns+` FROM endpoints WHERE `+condition, value)
	if err == nil && !found {
		err = fail(NotFound, "there is no endpoint %q", shorten(value))
	}
	if err != nil {
		return nil, err
	}
	return r.endpoint(), nil
}

// joinTypes writes types so that a query finds one by the commas around it.
func joinTypes(types []string) string {
	if len(types) == 0 {
		return ""
	}
	return "," + strings.Join(types, ",") + ","
}

func splitTypes(joined string) []string {
	if joined == "" {
		return []string{}
	}
	return strings.Split(strings.Trim(joined, ","), ",")
}

// checkEventTypes gives the types once each, in the order of EventTypes.
func checkEventTypes(types []string) ([]string, error) {
	for _, t := range types {
		if err := checkOneOf("types", t, EventTypes...); err != nil {
			return nil, err
		}
	}
	chosen := []string{}
	for _, t := range EventTypes {
		if slices.Contains(types, t) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

func checkURL(text string) error {
	if len(text) > urlMax {
		return InvalidField("url", "has %d bytes; it takes at most %d", len(text), urlMax)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' }):
		return InvalidField("url", "is not a URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return InvalidField("url", "is not http://... or https://... with a host")
	case u.User != nil:
		return InvalidField("url", "has a user or password; the signature is what the receiver checks")
	case u.Fragment != "":
		return InvalidField("url", "has a fragment, which is never sent")
	}
	return nil
}

func checkSecret(secret string) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, endpointSecret))
	if err != nil || !strings.HasPrefix(secret, endpointSecret) || strings.ContainsAny(secret, "\r\n") ||
		len(key) < secretBytesMin || len(key) > secretBytesMax {
		return InvalidField("secret", "is not %s and the base64 of %d to %d bytes",
			endpointSecret, secretBytesMin, secretBytesMax)
	}
	return nil
}
