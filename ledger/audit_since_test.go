package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// mark audits the whole ledger and gives its checkpoints.
func mark(b *workbench, since map[string]ledger.Checkpoint) map[string]ledger.Checkpoint {
	b.Helper()
	marks := map[string]ledger.Checkpoint{}
	r, err := b.Audit(b.Context(), ledger.AuditParams{
		Since: since, Mark: func(c ledger.Checkpoint) error { marks[c.Owner] = c; return nil },
	})
	b.ok(err)
	if !r.OK {
		b.Fatalf("%+v", r)
	}
	return marks
}

// found names the checks that an audit since checkpoints finds broken.
func found(b *workbench, since map[string]ledger.Checkpoint) (names []string, problems string) {
	b.Helper()
	r, err := b.Audit(b.Context(), ledger.AuditParams{Since: since, Mark: func(ledger.Checkpoint) error {
		return nil
	}})
	b.ok(err)
	for _, c := range r.Checks {
		if !c.OK {
			names = append(names, c.Name)
			problems += fmt.Sprint(c.Violations)
		}
	}
	return names, problems
}

// What came after a checkpoint is audited, from where it stood, and what it leaves out it names.
func TestAuditSince(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 100)
		for i := range 4 {
			b.ok(b.create(fmt.Sprint("early", i), 7, ledger.ModeHold))
			b.settle("won failed 7 0", fmt.Sprint("early", i), ledger.Failed)
		}
		first := mark(b, nil)
		if c := first["demo"]; len(first) != 1 || c.Seq != 9 || len(c.Head) != 32 {
			t.Fatalf("checkpoints %+v", first)
		}
		b.give("h", 5)
		b.ok(b.create("late", 7, ledger.ModeCharge))
		_, err := b.Grant(b.Context(), ledger.GrantParams{Owner: "new", Amount: 9, Key: "new"})
		b.ok(err)
		second := mark(b, first)
		if second["demo"].Seq != 11 || second["new"].Seq != 1 || len(second) != 2 {
			t.Errorf("checkpoints %+v", second)
		}
		mark(b, second)                         // nothing is new
		mark(b, map[string]ledger.Checkpoint{}) // everything is
		r, err := b.Audit(b.Context(), ledger.AuditParams{Since: second})
		b.ok(err)
		whole, err := b.Audit(b.Context(), ledger.AuditParams{})
		b.ok(err)
		all := len(r.Checks) + len(r.NotChecked)
		if len(whole.NotChecked) != 0 || all != len(whole.Checks) || len(r.Checks) < 7 {
			t.Errorf("checked %d, not checked %q, of %d", len(r.Checks), r.NotChecked, len(whole.Checks))
		}
		_, err = b.Audit(b.Context(), ledger.AuditParams{Since: second, Quiescent: true})
		b.fails(err, ledger.Invalid, "since")
	})
}

// A checkpoint that the journal does not lead through is found, whichever way they differ.
func TestAuditSinceFindsAnotherPast(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ledger.Checkpoint)
		check  string
		says   string
	}{
		"another hash":     {func(c *ledger.Checkpoint) { c.Head[5]++ }, "hash-chain", "that of the checkpoint"},
		"an earlier one":   {func(c *ledger.Checkpoint) { c.Seq-- }, "hash-chain", "hash of entry 2"},
		"one that is lost": {func(c *ledger.Checkpoint) { c.Seq += 3 }, "journal-sequence", "expected at least 6"},
		"another owner":    {func(c *ledger.Checkpoint) { c.Owner = "gone" }, "balances-journal", "no balance"},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorkbench(t, func(b *workbench) {
				b.give("g", 100)
				b.give("h", 100)
				b.give("i", 100)
				at := mark(b, nil)["demo"]
				c.change(&at)
				names, problems := found(b, map[string]ledger.Checkpoint{at.Owner: at})
				if !strings.Contains(strings.Join(names, " "), c.check) || !strings.Contains(problems, c.says) {
					t.Errorf("found %q: %s", names, problems)
				}
			})
		})
	}
}

// Damage behind the checkpoint is found, before it is not: that is what a whole audit is for.
func TestAuditSinceFindsNewDamage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		b := newWorkbench(t, dsn)
		b.give("g", 100)
		b.give("h", 10)
		since := mark(b, nil)
		b.give("i", 1)
		damage := func(key string) {
			raw := dbtest.Raw(t, dsn)
			for _, where := range []string{"", " ON entries"} { // each is one engine's
				_, _ = raw.Exec("DROP TRIGGER entries_no_update" + where)
			}
			dbtest.Exec(t, dsn, `UPDATE entries SET reason = 'x' WHERE event_key = 'grant:`+key+`'`)
		}
		damage("g")
		if names, problems := found(b, since); len(names) != 0 {
			t.Errorf("in the past: %q %s", names, problems)
		}
		if r, err := b.Audit(b.Context(), ledger.AuditParams{}); err != nil || r.OK {
			t.Errorf("a whole audit finds nothing, %v", err)
		}
		damage("i")
		if names, problems := found(b, since); len(names) != 1 || names[0] != "hash-chain" {
			t.Errorf("behind the checkpoint: %q %s", names, problems)
		}
	})
}

// A balance that was set back to the checkpoint does not hide the entries that came after it.
func TestAuditSinceFindsABalanceSetBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		b := newWorkbench(t, dsn)
		b.give("g", 100)
		since := mark(b, nil)
		const (
			kept = `CREATE TABLE kept AS SELECT available, held, used, expired, seq, head FROM balances`
			back = `UPDATE balances SET available = (SELECT available FROM kept), held = (SELECT held FROM kept),
				used = (SELECT used FROM kept), expired = (SELECT expired FROM kept),
				seq = (SELECT seq FROM kept), head = (SELECT head FROM kept)`
		)
		dbtest.Exec(t, dsn, kept)
		b.give("h", 5)
		b.ok(b.create("late", 7, ledger.ModeHold))
		dbtest.Exec(t, dsn, back)
		names, problems := found(b, since)
		if len(names) != 1 || names[0] != "balances-journal" || !strings.Contains(problems, "expected 3 entries") {
			t.Errorf("found %q: %s", names, problems)
		}
	})
}

// What an audit since checkpoints did not read it does not vouch for; what it could not read is broken.
func TestAuditSinceAndStorage(t *testing.T) {
	dsn := dbtest.SQLite(t)
	b := newWorkbench(t, dsn)
	b.give("g", 100)
	since := mark(b, nil)
	r, err := b.Audit(b.Context(), ledger.AuditParams{Since: since})
	b.ok(err)
	if !r.OK || !slices.Contains(r.NotChecked, "storage") {
		t.Errorf("nothing is damaged: %+v", r)
	}
	b.give("h", 5)
	dbtest.Exec(t, dsn, `ALTER TABLE entries RENAME COLUMN reason TO reasons`)
	r, err = b.Audit(b.Context(), ledger.AuditParams{Since: since})
	b.ok(err)
	if r.OK || r.Checks[0].Name != "storage" || r.Checks[0].OK || slices.Contains(r.NotChecked, "storage") {
		t.Errorf("a column is gone: %+v", r)
	}
}
