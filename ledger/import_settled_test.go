package ledger_test

import (
	"regexp"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// TestImportOfSettledJobs: what the books had settled is never paid again, with a balance or with lots, and
// what the owner has available is what the books say.
func TestImportOfSettledJobs(t *testing.T) {
	const settled = `"settled_cost":0,` + rejected
	for name, c := range map[string]struct {
		rows    []string
		balance string
	}{
		"a balance": {[]string{balanceRow(3), jobRow("j", 7, "failed", settled)}, "3 0 0 4"},
		"a charge, a part among refunds": {
			[]string{balanceRow(9), jobRow("j", 7, "canceled", settled), refundRow("r", "j", 2)}, "9 0 0 0",
		},
		"a hold, a part among refunds": {[]string{
			balanceRow(9), jobRow("j", 7, "failed", settled, `"mode":"hold"`), refundRow("r", "j", 2),
		}, "9 0 0 0"},
		"lots": {
			[]string{lotRow("a", `"available":7,"used":1`), jobRow("j", 7, "timed_out", settled)}, "7 0 1 0",
		},
		"lots, a charge": {[]string{
			lotRow("a", `"available":7`), jobRow("j", 7, "failed", settled, `"mode":"charge"`),
			refundRow("r", "j", 2),
		}, "7 0 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorkbench(t, func(b *workbench) {
				b.imports(c.rows...)
				b.balance(c.balance)
				s, err := b.SettleLegacy(b.Context(), "j")
				b.ok(err)
				if s.Won || s.Consumed != 0 {
					b.Errorf("settled again: %+v", s)
				}
				b.balance(c.balance)
			})
		})
	}
}

// TestImportedAnswers: what the books knew of an attempt is kept as its answer, so that the audit finds a
// change of it; what they did not know is not.
func TestImportedAnswers(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.imports(balanceRow(0), jobRow("a", 7, "pending", handles), jobRow("r", 7, "failed", rejected),
			jobRow("s", 7, "pending", `"submission":"submitting"`), jobRow("u", 7, "failed"),
			jobRow("v", 7, "failed", `"submission":"uncertain","evidence":"timeout"`))
		b.same(b.query(`SELECT job_id || ' ' || n || ' ' || submission || ' ' || evidence FROM answers ORDER BY 1`),
			[]string{"a 1 accepted ", "r 1 rejected 400 from the provider", "v 1 uncertain timeout"})
		b.audit()
		text := b.export(b.Ledger)
		dbtest.Each(b.T, func(t *testing.T, dsn string) {
			other, err := ledger.Open(t.Context(), dsn, ledger.Options{})
			b.ok(err)
			defer other.Close()
			_, err = b.restore(other, text, false)
			b.ok(err)
			if b.export(other) != text {
				t.Error("the export of what was restored differs")
			}
		})
		b.exec(`UPDATE attempts SET evidence = 'forged' WHERE job_id IN ('a', 'r', 'v')`)
		r, err := b.Audit(b.Context(), ledger.AuditParams{})
		b.ok(err)
		found := 0
		for _, c := range r.Checks {
			found += len(c.Violations)
		}
		if found != 3 {
			b.Errorf("the audit finds %d of 3 changes: %+v", found, r)
		}
		b.exec(`UPDATE attempts SET evidence = (SELECT w.evidence FROM answers w WHERE w.job_id = attempts.job_id)
			WHERE evidence = 'forged'`)
	})
}

// TestImportOfRefundsInAnyOrder: the order of the refunds' rows is no part of what they say.
func TestImportOfRefundsInAnyOrder(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		rows := []string{balanceRow(5), jobRow("j", 7, "failed"), refundRow("a", "j", 2), refundRow("b", "j", 3)}
		b.imports(rows...)
		rows[2], rows[3] = rows[3], rows[2]
		r, err := b.books(ledger.ImportParams{}, rows...)
		b.ok(err)
		if r.Replayed != 4 {
			b.Errorf("%+v", r)
		}
	})
}

// TestImportOfHalfHandles: an upstream id without a provider is kept as evidence, and is nobody's alone.
func TestImportOfHalfHandles(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		const half = `"upstream_id":"u"`
		b.imports(balanceRow(0), jobRow("a", 7, "failed", half), jobRow("b", 7, "failed", half, rejected))
		got := b.query(`
			SELECT job_id || ' ' || COALESCE(upstream_id, '-') || ' ' || evidence FROM attempts ORDER BY 1`)
		want := `a - upstream id "u" .*\nb - 400 from the provider; upstream id "u" `
		if text := strings.Join(got, "\n"); !regexp.MustCompile(want).MatchString(text) {
			b.Errorf("got %s", text)
		}
	})
}
