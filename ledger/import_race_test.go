package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// beside gives a workbench on the same ledger whose statements each wait for do, which writes by another
// handle. Only a server lets two write at once.
func (b *workbench) beside(do func(query string)) *workbench {
	b.Helper()
	other := &workbench{T: b.T, dsn: b.dsn}
	other.Ledger = other.open(ledger.Options{Intercept: func(when db.When, query string) error {
		if when == db.Before && !isControl(query) {
			do(strings.TrimSpace(query))
		}
		return nil
	}})
	return other
}

// An owner or a job that comes into being while an import is under way is found there: the import
// is refused as if it had come later.
func TestImportLosesRaces(t *testing.T) {
	for before, want := range map[string][]string{
		"INSERT INTO balances": {`line 1: owner "demo" is in the ledger`, `line 2: owner "demo" is in the ledger`},
		"INSERT INTO jobs":     {`line 2: job "j" is in the ledger already, of owner "quick"`},
	} {
		dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
			b := &workbench{T: t, dsn: dsn}
			b.Ledger = b.open(ledger.Options{})
			b.give("quick", 7, ofOwner("quick"))
			done := false
			importing := b.beside(func(query string) {
				if done || !strings.HasPrefix(query, before) {
					return
				}
				done = true
				if strings.HasSuffix(before, "balances") {
					b.give("g", 5)
					return
				}
				_, err := b.CreateJob(t.Context(), ledger.JobParams{ID: "j", Owner: "quick", Cost: 7})
				b.ok(err)
			})
			r, err := importing.books(ledger.ImportParams{}, balanceRow(3), jobRow("j", 7, "failed"))
			b.fails(err, ledger.Invalid)
			b.refused(r, want...)
			b.audit()
		})
	}
}

// A ledger may be in use while another is restored into it: the audit at the end of the restore is one
// of a single moment.
func TestRestoreBesideOthers(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		from := &workbench{T: t, dsn: dbtest.SQLite(t)}
		from.Ledger = from.open(ledger.Options{})
		from.busy()
		b := &workbench{T: t, dsn: dsn}
		b.micro.Store(from.micro.Load())
		b.Ledger = b.open(ledger.Options{})
		n := 0
		restored := false // all but the audit
		restoring := b.beside(func(query string) {
			restored = restored || strings.HasPrefix(query, "INSERT INTO events")
			if !restored || strings.HasPrefix(query, "INSERT") || n == 300 {
				return
			}
			n++
			b.give(fmt.Sprint("g", n), 7, ofOwner("other"))
			_, err := b.CreateJob(t.Context(), ledger.JobParams{ID: fmt.Sprint("other", n), Owner: "other", Cost: 5})
			b.ok(err)
		})
		restoring.micro.Store(from.micro.Load())
		_, err := restoring.restore(restoring.Ledger, from.export(from.Ledger), false)
		b.ok(err)
		if n < 20 {
			t.Errorf("the audit has %d statements", n)
		}
		b.audit()
	})
}
