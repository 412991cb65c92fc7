package ledger

import (
	"context"
	"io"

	"jobledger/db"
)

// CopyFrom brings all of source, as it is at one moment, into this ledger, which must be empty: with
// the ids, hashes and times that it has, so that both export the same bytes, and with its tokens, endpoints,
// deliveries and polls. The engines may differ.
// It verifies what [Ledger.Restore] verifies, the audit included. All of it arrives, or nothing; source
// can be in use meanwhile.
//
// The report is there with an error too. Errors: NOT_ALLOWED if this ledger is not empty; INVALID if
// source does not hold together; BUSY, also if ctx ends: nothing was written then; OUTCOME_UNKNOWN if the
// answer to the COMMIT is lost: if this ledger has owners then, all of the copy is there.
func (l *Ledger) CopyFrom(ctx context.Context, source *Ledger, p ImportParams) (ImportReport, error) {
	return l.bring(ctx, p, func(i *importer) error {
		if err := i.checkUnused(); err != nil {
			return err
		}
		return i.restore(source.exporting(i.ctx), wholeTypes, l.Engine())
	})
}

// checkUnused refuses a ledger that has an owner, or serves somebody.
func (i *importer) checkUnused() error {
	// Two copies of different books write no row of each other's. Here the later one waits for the
	// earlier, and then looks again: its snapshot is of before.
	_, err := i.tx.Exec(`UPDATE schema_migrations SET applied_at = applied_at WHERE version = 1`)
	if err != nil {
		return err
	}
	var one int
	used, err := i.tx.Get(&one, `
		SELECT 1 FROM balances UNION ALL SELECT 1 FROM tokens UNION ALL SELECT 1 FROM endpoints LIMIT 1`)
	if err == nil && used {
		err = fail(NotAllowed, "the target is in use: only an empty ledger can become a copy")
	}
	return err
}

// exporting gives a function that opens an export of the whole ledger as it is being written.
func (l *Ledger) exporting(ctx context.Context) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		in, out := io.Pipe()
		running := &runningExport{PipeReader: in, ended: make(chan struct{})}
		go func() {
			defer close(running.ended)
			out.CloseWithError(l.exportWhole(ctx, out))
		}()
		return running, nil
	}
}

// runningExport is the reading end of an export.
type runningExport struct {
	*io.PipeReader
	ended chan struct{} // closed when nothing of the export runs any more
}

// Close stops the export if it has not ended, and waits for that.
func (r *runningExport) Close() error {
	err := r.PipeReader.Close()
	<-r.ended
	return err
}

// CopySize counts the rows that [Ledger.CopyFrom] would bring from here now. Errors: BUSY if ctx ends.
func (l *Ledger) CopySize(ctx context.Context) (rows int64, err error) {
	return read(ctx, l, func(tx *db.Tx) (int64, error) {
		var rows int64
		_, err := tx.Get(&rows, `
			SELECT (SELECT COUNT(*) FROM balances) + (SELECT COUNT(*) FROM jobs) +
			       (SELECT COUNT(*) FROM entries) + (SELECT COUNT(*) FROM attempts) +
			       (SELECT COUNT(*) FROM answers) + (SELECT COUNT(*) FROM reports) +
			       (SELECT COUNT(*) FROM events) + (SELECT COUNT(*) FROM tokens) +
			       (SELECT COUNT(*) FROM endpoints) + (SELECT COUNT(*) FROM deliveries) +
			       (SELECT COUNT(*) FROM polls)`)
		return rows, err
	})
}
