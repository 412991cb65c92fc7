package ledger

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"

	"jobledger/db"
)

// exportFormat is the version of what Export writes.
const exportFormat = 1

// The first line of an export, its other lines by table, and the last. Every line is one JSON object
// whose first member is its type.
type (
	exportHeader struct {
		Type   string `json:"type"`
		Format int    `json:"format"`
		Schema int    `json:"schema_version"`
	}
	exportBalance struct {
		Type      string `json:"type"`
		Owner     string `json:"owner"`
		Available int64  `json:"available"`
		Held      int64  `json:"held"`
		Used      int64  `json:"used"`
		Expired   int64  `json:"expired"`
		Seq       int64  `json:"seq"`
		Head      Hash   `json:"head"`
	}
	exportJob struct {
		Type string `json:"type"`
		Job
		Imported int64 `db:"imported" json:"imported"` // 1: it came from other books
	}
	exportEntry struct {
		Type string `json:"type"`
		Entry
		Lots []Lot `json:"lots"` // those that the entry made, as they are now
	}
	exportAttempt struct {
		Type string `json:"type"`
		Attempt
	}
	exportAnswer struct {
		Type string `json:"type"`
		Answer
	}
	exportReport struct {
		Type string `json:"type"`
		ReportRow
	}
	exportEvent struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Event     string `json:"event"` // its type
		Job       string `json:"job"`
		Owner     string `json:"owner"`
		Payload   JSON   `json:"payload"`
		CreatedAt Time   `json:"created_at"`
	}
	exportEnd struct {
		Type   string           `json:"type"`
		Counts map[string]int64 `json:"counts"` // lines by type
		SHA256 Hash             `json:"sha256"` // of all lines before
	}
)

// exportTypes are the types of the rows, in the order in which they come: each refers only to rows
// before it.
var exportTypes = []string{"balance", "job", "entry", "attempt", "answer", "report", "event"}

// Export writes all that is needed to rebuild the ledger, as it is at one moment, in an order that
// depends on nothing but the content. An export that was cut short has no last line, and cannot be
// restored.
//
// Errors: BUSY if ctx ends; INTERNAL if w fails.
func (l *Ledger) Export(ctx context.Context, w io.Writer) error {
	return l.export(ctx, w, exportTypes, (*exporter).tables)
}

func (l *Ledger) export(
	ctx context.Context, w io.Writer, types []string, tables func(*exporter) []func(*db.Tx) error,
) error {
	_, err := read(ctx, l, func(tx *db.Tx) (struct{}, error) {
		e := newExporter(w, types)
		if err := e.line(exportHeader{"export", exportFormat, SchemaVersion()}); err != nil {
			return struct{}{}, err
		}
		for _, table := range tables(e) {
			if err := table(tx); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, e.end()
	})
	return err
}

// tables write the rows of an export, by type.
func (e *exporter) tables() []func(*db.Tx) error {
	return []func(*db.Tx) error{e.balances, e.jobs, e.entries, e.attempts, e.answers, e.reports, e.events}
}

type exporter struct {
	out    *bufio.Writer
	sum    hash.Hash
	json   *json.Encoder // writes to both
	counts map[string]int64
}

func newExporter(w io.Writer, types []string) *exporter {
	e := &exporter{out: bufio.NewWriterSize(w, 1<<16), sum: sha256.New(), counts: make(map[string]int64)}
	for _, kind := range types {
		e.counts[kind] = 0
	}
	e.json = json.NewEncoder(io.MultiWriter(e.out, e.sum))
	e.json.SetEscapeHTML(false)
	return e
}

func (e *exporter) line(value any) error {
	if err := e.json.Encode(value); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

// row writes a row and counts it.
func (e *exporter) row(kind string, value any) (more bool, err error) {
	e.counts[kind]++
	return true, e.line(value)
}

func (e *exporter) end() error {
	if err := e.line(exportEnd{"end", e.counts, e.sum.Sum(nil)}); err != nil {
		return err
	}
	if err := e.out.Flush(); err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

func (e *exporter) balances(tx *db.Tx) error {
	return db.Each(tx, func(a *account) (bool, error) {
		return e.row("balance", exportBalance{
			"balance", a.Owner, a.Available, a.Held, a.Used, a.Expired, a.Seq, a.Head,
		})
	}, `SELECT owner, available, held, used, expired, seq, head FROM balances ORDER BY owner`)
}

func (e *exporter) jobs(tx *db.Tx) error {
	return db.Each(tx, func(j *exportJob) (bool, error) {
		j.Type = "job"
		return e.row("job", j)
	}, `SELECT `+jobColumns+`, imported FROM jobs ORDER BY id`)
}

func (e *exporter) attempts(tx *db.Tx) error {
	return db.Each(tx, func(a *Attempt) (bool, error) {
		return e.row("attempt", exportAttempt{"attempt", *a})
	}, `SELECT `+attemptColumns+` FROM attempts ORDER BY job_id, attempt`)
}

func (e *exporter) answers(tx *db.Tx) error {
	return db.Each(tx, func(a *Answer) (bool, error) {
		return e.row("answer", exportAnswer{"answer", *a})
	}, `SELECT `+answerColumns+` FROM answers ORDER BY job_id, attempt, n`)
}

const reportColumns = `job_id, attempt, source, outcome, upstream_id, verdict, count, first_at, last_at,
	detail`

func (e *exporter) reports(tx *db.Tx) error {
	return db.Each(tx, func(r *ReportRow) (bool, error) {
		return e.row("report", exportReport{"report", *r})
	}, `SELECT `+reportColumns+` FROM reports
		ORDER BY job_id, source, outcome, verdict, attempt, upstream_id`)
}

func (e *exporter) events(tx *db.Tx) error {
	return db.Each(tx, func(v *Event) (bool, error) {
		return e.row("event", exportEvent{"event", v.ID, v.Type, v.Job, v.Owner, v.Payload, v.CreatedAt})
	}, `SELECT `+eventColumns+` FROM events ORDER BY id`)
}

// exportedPosting is a posting with its entry and, if the entry made the lot, that lot.
type exportedPosting struct {
	Entry
	Lot       *string `db:"lot_id"`
	Part      *int64  `db:"part"`
	Made      *string `db:"made"`
	LotOwner  *string `db:"lot_owner"`
	Available *int64  `db:"available"`
	Held      *int64  `db:"held"`
	Used      *int64  `db:"used"`
	Expired   *int64  `db:"expired"`
	LotAmount *int64  `db:"lot_amount"`
	Priority  *int64  `db:"priority"`
	Effective *Time   `db:"effective_at"`
	Expires   *Time   `db:"expires_at"`
}

var exportedEntriesQuery = `
SELECT ` + qualified("e", entryColumns) + `,
       p.lot_id, p.amount AS part, l.id AS made, l.owner AS lot_owner, l.available, l.held, l.used,
       l.expired, l.amount AS lot_amount, l.priority, l.effective_at, l.expires_at
FROM entries e
LEFT JOIN postings p ON p.entry_id = e.id
LEFT JOIN lots l ON l.id = p.lot_id AND l.entry_id = e.id
ORDER BY e.owner, e.seq, p.lot_id`

// entries writes each owner's journal in the order of its chain, so that it can be verified on the way
// in.
func (e *exporter) entries(tx *db.Tx) error {
	var current *exportEntry
	finish := func() error {
		if current == nil {
			return nil
		}
		_, err := e.row("entry", current)
		return err
	}
	err := db.Each(tx, func(p *exportedPosting) (bool, error) {
		if current == nil || current.ID != p.ID {
			if err := finish(); err != nil {
				return false, err
			}
			current = &exportEntry{Type: "entry", Entry: p.Entry, Lots: []Lot{}}
			current.Postings = []Posting{}
		}
		if p.Lot != nil {
			current.Postings = append(current.Postings, Posting{*p.Lot, *p.Part})
		}
		if p.Made != nil {
			current.Lots = append(current.Lots, Lot{
				*p.Made, *p.LotOwner, p.ID, *p.Available, *p.Held, *p.Used, *p.Expired, *p.LotAmount,
				*p.Priority, p.Effective, p.Expires,
			})
		}
		return true, nil
	}, exportedEntriesQuery)
	return firstError(err, finish())
}
