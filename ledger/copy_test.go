package ledger_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// TestCopy: a copy exports the same bytes, whatever the engines, and life goes on in it. Nothing is
// copied onto it.
func TestCopy(t *testing.T) {
	eachPair(t, func(busy, empty *workbench) {
		token, err := busy.CreateToken(busy.Context(), "copied to "+empty.Engine(), ledger.ScopeRead)
		busy.ok(err)
		text := busy.export(busy.Ledger)
		for _, secret := range []string{token.Secret, hookSecret[6:], "token", "endpoint"} {
			if strings.Contains(text, secret) {
				busy.Errorf("the export shows %s", secret)
			}
		}
		size, err := busy.CopySize(busy.Context())
		busy.ok(err)
		var told int64
		r, err := empty.CopyFrom(empty.Context(), busy.Ledger, ledger.ImportParams{
			Progress: func(rows int64) { told = rows },
		})
		empty.ok(err)
		if r.Imported != size || told != size || r.Owners != 2 || r.Replayed != 0 {
			empty.Errorf("copied %+v, told of %d, of %d rows", r, told, size)
		}
		if copied := empty.export(empty.Ledger); copied != text {
			empty.Errorf("the copy exports\n%s\nand the original\n%s", copied, text)
		}
		served := func(b *workbench) []string {
			return slices.DeleteFunc(faultDump(b.T, b.dsn, nil), func(row string) bool {
				table, _, _ := strings.Cut(row, " ")
				return !slices.Contains([]string{"tokens", "endpoints", "deliveries", "polls"}, table)
			})
		}
		if rows := served(busy); len(rows) < 10 {
			busy.Errorf("the server has %d rows", len(rows))
		}
		empty.same(served(empty), served(busy))
		who, err := empty.Authenticate(empty.Context(), token.Secret)
		empty.ok(err)
		if who != token.Token {
			empty.Errorf("%+v, want %+v", who, token.Token)
		}
		empty.unchanged(func() {
			_, err := empty.CopyFrom(empty.Context(), busy.Ledger, ledger.ImportParams{})
			empty.fails(err, ledger.NotAllowed)
		})
		empty.settle("won completed 0 9", "open", ledger.Completed)
	})
}

// TestCopyOfABrokenLedger: what fails its audit is not copied.
func TestCopyOfABrokenLedger(t *testing.T) {
	eachPair(t, func(busy, empty *workbench) {
		busy.exec(`UPDATE balances SET held = held + 1 WHERE owner = 'demo'`)
		_, err := empty.CopyFrom(empty.Context(), busy.Ledger, ledger.ImportParams{})
		empty.fails(err, ledger.Invalid)
		empty.same(empty.query(`SELECT owner FROM balances`), nil)
		busy.exec(`UPDATE balances SET held = held - 1 WHERE owner = 'demo'`)
	})
}

// TestCopyStops: a copy that its caller stops, or whose source fails, leaves the target empty, and
// nothing of it runs on.
func TestCopyStops(t *testing.T) {
	eachPair(t, func(busy, empty *workbench) {
		ctx, stop := context.WithCancel(empty.Context())
		_, err := empty.CopyFrom(ctx, busy.Ledger, ledger.ImportParams{Progress: func(rows int64) {
			if rows == 5 {
				stop()
			}
		}})
		if !errors.Is(err, context.Canceled) && ledger.CodeOf(err) != ledger.Busy {
			empty.Errorf("a stopped copy: %v", err)
		}
		empty.same(empty.query(`SELECT owner FROM balances`), nil)
		_, err = empty.CopyFrom(empty.Context(), busy.Ledger, ledger.ImportParams{})
		empty.ok(err)
	})
}

// TestCopiesRace: of two copies into one empty ledger, the one that comes while the other is at work
// waits for it, and is refused.
func TestCopiesRace(t *testing.T) {
	eachWorkbench(t, func(target *workbench) {
		var sources [2]*workbench
		for i := range sources {
			sources[i] = newWorkbench(target.T, dbtest.SQLite(target.T))
			sources[i].give(fmt.Sprint("g", i), 5, ofOwner(fmt.Sprint("owner", i)))
		}
		into, second := target.open(ledger.Options{}), make(chan error, 1)
		began := false
		_, err := target.CopyFrom(target.Context(), sources[0].Ledger, ledger.ImportParams{Progress: func(int64) {
			if began {
				return
			}
			began = true
			go func() {
				_, err := into.CopyFrom(target.Context(), sources[1].Ledger, ledger.ImportParams{})
				second <- err
			}()
			time.Sleep(300 * time.Millisecond) // the second does all that it can do now
		}})
		target.ok(err)
		target.fails(<-second, ledger.NotAllowed)
		target.same(target.query(`SELECT owner FROM balances`), []string{"owner0"})
	})
}

// TestCopyInUse copies a ledger while it settles jobs: the copy is the ledger at one moment.
func TestCopyInUse(t *testing.T) {
	eachPair(t, func(busy, empty *workbench) {
		job := func(i int) string { return fmt.Sprint("to ", empty.Engine(), i) }
		busy.give("for "+empty.Engine(), 1000)
		for i := range 50 {
			busy.ok(busy.create(job(i), 7, ledger.ModeHold))
		}
		next := 0
		var failed error // not the test's end: this runs where the target writes
		_, err := empty.CopyFrom(empty.Context(), busy.Ledger, ledger.ImportParams{Progress: func(int64) {
			if next < 50 && failed == nil {
				_, failed = busy.report(job(next), ledger.Failed)
				next++
			}
		}})
		empty.ok(errors.Join(err, failed))
		if next < 50 {
			empty.Fatalf("only %d jobs settled meanwhile", next)
		}
		late := empty.query(`SELECT id FROM jobs WHERE id LIKE ? AND status = 'failed'`, "to "+empty.Engine()+"%")
		empty.same(late, nil)
	})
}

// TestCopyThereAndBack moves many jobs from SQLite to PostgreSQL and back: the exports are the same
// bytes. JOBLEDGER_TEST_COPY_JOBS sets how many jobs.
func TestCopyThereAndBack(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		jobs, err := strconv.Atoi(cmp.Or(os.Getenv("JOBLEDGER_TEST_COPY_JOBS"), "2000"))
		b := newWorkbench(t, dbtest.SQLite(t))
		b.ok(err)
		b.give("much", int64(jobs)*7)
		inParallel(64, jobs, func(i int) {
			id := fmt.Sprint("j", i)
			b.ok(b.create(id, 7, []ledger.Mode{ledger.ModeHold, ledger.ModeCharge}[i%2]))
			_, err := b.report(id, ledger.Outcomes[i%len(ledger.Outcomes)])
			b.ok(err)
		})
		there := newWorkbench(t, dsn)
		_, err = there.CopyFrom(t.Context(), b.Ledger, ledger.ImportParams{})
		b.ok(err)
		back := newWorkbench(t, dbtest.SQLite(t))
		r, err := back.CopyFrom(t.Context(), there.Ledger, ledger.ImportParams{})
		b.ok(err)
		if r.Jobs != int64(jobs) || back.export(back.Ledger) != b.export(b.Ledger) {
			t.Errorf("%d jobs came back as %d, or with other bytes", jobs, r.Jobs)
		}
	})
}
