package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"jobledger/db"
)

// Books are the rows of another system's books. The sequences may be run more than once.
type Books struct {
	// Owners has each owner once, with all of the owner's rows.
	Owners iter.Seq2[*OwnerBooks, error]
	// Strays are the refunds whose job is not in these books.
	Strays iter.Seq2[*BookRefund, error]
}

// OwnerBooks are the rows of one owner: a balance or lots, and jobs.
type OwnerBooks struct {
	Owner   string
	Balance *BookBalance // nil if the owner has lots
	Lots    []BookLot
	Jobs    iter.Seq2[*BookJob, error] // in the order in which they were made; may be run more than once
}

// ImportParams says how to import.
type ImportParams struct {
	DryRun   bool             // do all of it, report, and undo it
	Progress func(rows int64) // if set, is told how many rows are done; it must be quick
}

// listMaxImport bounds the rows that a report names; it counts the rest.
const listMaxImport = 100

// errUndone rolls back what a dry run, or an import with refused rows, has written.
var errUndone = errors.New("undone")

// Import brings books that were kept elsewhere into the ledger, as the standard entries that their
// figures follow from: opening grants, holds and charges of the jobs, their settlements, and the
// refunds that the books had made. All rows are imported, or none. Rows that were imported before, with
// the same content, are replayed.
//
// The report is there with an error too. Errors: INVALID if a row is refused; BUSY, also if ctx ends:
// nothing was written then; OUTCOME_UNKNOWN if the answer to the COMMIT is lost: the same import again
// tells; INCONSISTENT.
func (l *Ledger) Import(ctx context.Context, b Books, p ImportParams) (ImportReport, error) {
	return l.bring(ctx, p, func(i *importer) error {
		for o, err := range b.Owners {
			if err := firstError(err, i.ctx.Err()); err != nil {
				return err
			}
			if err := i.owner(o); err != nil {
				return err
			}
		}
		for r, err := range b.Strays {
			if err := firstError(err, i.ctx.Err()); err != nil {
				return err
			}
			if err := i.stray(r); err != nil {
				return err
			}
		}
		return startPolls(i.tx)
	})
}

// importer is one run of an import.
type importer struct {
	ctx context.Context
	tx  *db.Tx
	p   ImportParams
	r   ImportReport
}

// bring runs an import in one transaction, on a snapshot: what it finds when it begins holds until its
// end, though others write. The operation watches ctx itself, between rows, and the caller waits for it:
// so the end of ctx never leaves its outcome unknown. Only a COMMIT without an answer does.
func (l *Ledger) bring(
	ctx context.Context, p ImportParams, work func(*importer) error,
) (ImportReport, error) {
	var r ImportReport
	err := l.db.WriteSnapshot(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		i := &importer{ctx: ctx, tx: tx, p: p}
		i.r.Refused, i.r.Unmatched = []Refusal{}, []UnmatchedRefund{}
		err := work(i)
		r = i.r
		if err == nil && (p.DryRun || len(r.Refused) > 0) {
			err = errUndone
		}
		return err
	})
	if errors.Is(err, errUndone) {
		err = nil
	}
	return r, firstError(wrap(err), r.Err())
}

// row counts a row that is done.
func (i *importer) row(counter *int64) {
	*counter++
	if i.p.Progress != nil {
		i.p.Progress(i.r.Imported + i.r.Replayed)
	}
}

// refused reports how many rows have been refused so far.
func (i *importer) refused() int64 { return int64(len(i.r.Refused)) + i.r.RefusedMore }

func (i *importer) unmatched(r *BookRefund, reason string) {
	i.r.Refunds++
	if len(i.r.Unmatched) == listMaxImport {
		i.r.UnmatchedMore++
		return
	}
	i.r.Unmatched = append(i.r.Unmatched, UnmatchedRefund{r.Place, r.Ref, r.Job, r.Owner, r.Amount, reason})
}

// owner imports the rows of one owner, or finds them imported.
func (i *importer) owner(o *OwnerBooks) error {
	i.r.Owners++
	var one int
	known, err := i.tx.Get(&one, `SELECT 1 FROM balances WHERE owner = ?`, o.Owner)
	if err != nil {
		return err
	}
	before := i.refused()
	plan, err := i.plan(o)
	switch {
	case err != nil || i.refused() > before:
		return err
	case known:
		return i.replay(o, plan)
	}
	if err := insertOwner(i.tx, o.Owner); err != nil {
		return err
	}
	if o.Balance != nil {
		return i.writeBalance(o, plan)
	}
	return i.writeLots(o, plan)
}

// stray finds out why a refund's job is not in the books.
func (i *importer) stray(r *BookRefund) error {
	job, err := findJob(i.tx, r.Job)
	switch {
	case err != nil:
		return err
	case job == nil:
		i.unmatched(r, "there is no such job")
		return nil
	case r.Owner != "" && job.Owner != r.Owner:
		i.unmatched(r, fmt.Sprintf("the job is of owner %q", job.Owner))
		return nil
	}
	e, err := findEntry(i.tx, legacyKey(r.Job, r.Ref))
	switch {
	case err != nil:
		return err
	case e == nil:
		i.r.Refuse(r.Place, fail(NotAllowed,
			"job %q is in the ledger without it: a refund comes in the same file as its job", r.Job))
	case r.Amount != 0 && e.Amount != r.Amount:
		i.r.Refuse(r.Place, mismatch("refund "+r.Ref, []string{"amount"}))
	default:
		i.r.Refunds++
		i.row(&i.r.Replayed)
	}
	return nil
}
