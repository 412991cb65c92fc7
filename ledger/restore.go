package ledger

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"reflect"
	"slices"

	"jobledger/db"
)

// lineMax bounds one line of an export: an entry with very many postings.
const lineMax = 64 << 20

// Restore brings what [Ledger.Export] wrote back, with the ids, hashes and times that it had. It
// verifies each owner's hash chain on the way, that the export is complete and unchanged, and in the
// end, by an audit, that the ledger holds together. All of it is restored, or nothing. Rows that are
// there already with the same content are replayed; with other content they are refused.
//
// open opens the export; it may be called more than once. The report is there with an error too.
// Errors: as of [Ledger.Import].
func (l *Ledger) Restore(
	ctx context.Context, open func() (io.ReadCloser, error), p ImportParams,
) (ImportReport, error) {
	return l.bring(ctx, p, func(i *importer) error { return i.restore(open, exportTypes, l.Engine()) })
}

// restore reads an export to its end, writes its rows, and audits what came of it.
func (i *importer) restore(open func() (io.ReadCloser, error), types []string, engine string) error {
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	r := &restorer{importer: i, types: types, counts: make(map[string]int64), sum: sha256.New()}
	if err := r.read(in); err != nil || i.refused() > 0 {
		return err
	}
	if err := startPolls(i.tx); err != nil {
		return err
	}
	return r.audit(engine)
}

// restorer is one run of a restore.
type restorer struct {
	*importer
	number int64 // of the line at work
	sum    hash.Hash
	counts map[string]int64
	types  []string // those that it takes, in order
	phase  int      // index in types
	ended  bool
	owner  string // whose chain it is in
	seq    int64
	head   Hash
}

// errBroken stops the reading of an export that makes no sense from here on; the refusal says why.
var errBroken = errors.New("the export is broken")

func (r *restorer) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), lineMax)
	for lines.Scan() {
		r.number++
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.line(lines.Bytes()); err != nil {
			if errors.Is(err, errBroken) {
				return nil
			}
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		r.number++
		r.refuse("has more than %d bytes", lineMax)
	case err != nil:
		return fmt.Errorf("read the export: %w", err)
	case !r.ended:
		r.refuse("the export ends here, without its last line: it is incomplete")
	}
	return nil
}

func (r *restorer) refuse(format string, args ...any) {
	r.r.Refuse(Place{Line: r.number}, fail(Invalid, format, args...))
}

// broken refuses the line and all that come after it.
func (r *restorer) broken(format string, args ...any) error {
	r.refuse(format, args...)
	return errBroken
}

// line takes one line of the export.
func (r *restorer) line(text []byte) error {
	var head struct{ Type string }
	if err := json.Unmarshal(text, &head); err != nil {
		return r.broken("is not a JSON object: %v", err)
	}
	switch {
	case r.ended:
		return r.broken("comes after the last line of the export")
	case r.number == 1:
		if err := r.header(text); err != nil {
			return err
		}
	case head.Type == "end":
		return r.end(text)
	default:
		phase := slices.Index(r.types, head.Type)
		if phase < r.phase {
			return r.broken("type %q is unknown, or out of order", shorten(head.Type))
		}
		r.phase = phase
		if err := r.row(head.Type, text); err != nil {
			return err
		}
		r.counts[head.Type]++
	}
	r.sum.Write(text)
	r.sum.Write([]byte("\n"))
	return nil
}

func (r *restorer) header(text []byte) error {
	var h exportHeader
	switch err := strict(text, &h); {
	case err != nil || h.Type != "export":
		return r.broken("is not the first line of an export")
	case h.Format != exportFormat || h.Schema != SchemaVersion():
		return r.broken("the export has format %d and schema version %d; this program reads %d and %d",
			h.Format, h.Schema, exportFormat, SchemaVersion())
	}
	return nil
}

func (r *restorer) end(text []byte) error {
	var e exportEnd
	if err := strict(text, &e); err != nil {
		return r.broken("is not the last line of an export: %v", err)
	}
	r.ended = true
	for _, kind := range r.types {
		r.counts[kind] += 0
	}
	switch {
	case !maps.Equal(e.Counts, r.counts):
		return r.broken("counts %v, and the export has %v: it is incomplete", e.Counts, r.counts)
	case !bytes.Equal(e.SHA256, r.sum.Sum(nil)):
		return r.broken("the export was changed after it was written: its SHA-256 is another one")
	}
	return nil
}

// strict decodes an object that has no field too much.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// row decodes a row and writes it.
func (r *restorer) row(kind string, text []byte) error {
	switch kind {
	case "balance":
		r.r.Owners++
		return keep(r, text, insertBalance, sameBalance)
	case "job":
		r.r.Jobs++
		return keep(r, text, restoreJob, sameJob)
	case "entry":
		return r.entry(text)
	case "attempt":
		return keep(r, text, restoreAttempt, sameAttempt)
	case "answer":
		return keep(r, text, restoreAnswer, sameAnswer)
	case "report":
		return keep(r, text, restoreReport, sameReport)
	case "event":
		return keep(r, text, restoreEvent, sameEvent)
	}
	return r.serverRow(kind, text)
}

// keep inserts a row, or compares it with the one that has its key.
func keep[T any](
	r *restorer, text []byte, insert func(*db.Tx, *T) (int64, error), find func(*db.Tx, *T) (*T, error),
) error {
	row := new(T)
	if err := strict(text, row); err != nil {
		return r.broken("%v", err)
	}
	rows, err := insert(r.tx, row)
	if errors.Is(err, db.ErrConstraint) {
		return r.broken("contradicts the tables: %v", err)
	}
	if err != nil {
		return err
	}
	if rows == 1 {
		r.importer.row(&r.r.Imported)
		return nil
	}
	there, err := find(r.tx, row)
	if err != nil {
		return err
	}
	if there == nil || !reflect.DeepEqual(there, row) {
		r.refuse("is in the ledger already, with other content")
		return nil
	}
	r.importer.row(&r.r.Replayed)
	return nil
}

// entry verifies an entry against the one before it, and writes it with its lots and postings.
func (r *restorer) entry(text []byte) error {
	var e exportEntry
	if err := strict(text, &e); err != nil {
		return r.broken("%v", err)
	}
	if e.Owner != r.owner {
		r.owner, r.seq, r.head = e.Owner, 0, chainStart
	}
	var job *Job
	if e.Job != nil {
		var err error
		if job, err = findJob(r.tx, *e.Job); err != nil {
			return err
		}
	}
	if want := digest(r.head, &e.Entry, e.Lots, job); e.Seq != r.seq+1 || !bytes.Equal(want, e.Hash) {
		return r.broken("entry %s does not follow from the one before it: seq %d, hash %x, expected %d, %x",
			shorten(e.ID), e.Seq, []byte(e.Hash), r.seq+1, []byte(want))
	}
	r.seq, r.head = e.Seq, e.Hash
	before := r.r.Imported
	err := keep(r, text, restoreEntry, sameEntry)
	if e.Kind == KindGrant && r.r.Imported > before {
		r.r.Credits += e.Amount
	}
	if e.Kind == KindRefund {
		r.r.Refunds++
	}
	return err
}

// audit refuses an export from which no sound ledger can be rebuilt.
func (r *restorer) audit(engine string) error {
	a := newAuditor(r.tx, engine)
	report, err := a.audit(AuditParams{})
	if err != nil {
		return err
	}
	for _, c := range report.Checks {
		if !c.OK {
			r.refuse("the ledger would not hold together: %s: %v", c.Name, c.Violations[0])
		}
	}
	return nil
}
