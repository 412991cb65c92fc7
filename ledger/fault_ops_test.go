package ledger_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// faultTime is when the operations under test run: after what is prepared an hour earlier is due.
var faultTime = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

type faultOperation struct {
	name string
	code ledger.Code // what the operation answers when nothing is wrong; empty: no error
	run  func(context.Context, *ledger.Ledger) error
}

// faultOperations are the write operations on the database that faultStart prepares.
var faultOperations = []faultOperation{
	{"grant, new owner", "", faultGrant("new")},
	{"grant, known owner", "", faultGrant("plain")},
	{"create, hold", "", faultCreate("plain", 7, ledger.ModeHold)},
	{"create, charge", "", faultCreate("plain", 7, ledger.ModeCharge)},
	{"create, expires lots on the way", "", faultCreate("lapsing", 40, ledger.ModeHold)},
	{"create, refused", ledger.InsufficientCredits, faultCreate("lapsing", 51, ledger.ModeHold)},
	{"hold completed below its cost", "", faultSettle("hold-1", ledger.Completed, 3)},
	{"hold failed", "", faultSettle("hold-1", ledger.Failed, -1)},
	{"charge failed", "", faultSettle("charge-1", ledger.Failed, -1)},
	{"charge completed below its cost", "", faultSettle("charge-1", ledger.Completed, 4)},
	{"released into a lapsed lot", "", faultSettle("held", ledger.Failed, -1)},
	{"refunded into a lapsed lot", "", faultSettle("charged", ledger.Failed, -1)},
	{"duplicate", "", faultSettle("done", ledger.Completed, -1)},
	{"conflict", "", faultSettle("done", ledger.Failed, -1)},
	{"stale", ledger.StaleAttempt, func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Settle(ctx, ledger.Report{
			Job: "hold-1", Outcome: ledger.Failed, Source: ledger.Poll, Attempt: 9,
		})
		return err
	}},
	{"cancel", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Cancel(ctx, "hold-2", "not wanted")
		return err
	}},
	{"sweep", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Sweep(ctx, 100)
		return err
	}},
	{"revoke", "", faultRevoke("plain", 50)},
	{"revoke, expires lots on the way", "", faultRevoke("lapsing", 45)},
	{"submit", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Submit(ctx, "hold-2", "provider")
		return err
	}},
	{"accepted", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Accepted(ctx, "submitted", 1, "upstream-1")
		return err
	}},
	{"rejected", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Rejected(ctx, "submitted", 1, "no such model", false)
		return err
	}},
	{"rejected, to retry", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Rejected(ctx, "submitted", 1, "later", true)
		return err
	}},
	{"uncertain", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Uncertain(ctx, "submitted", 1, "connection reset")
		return err
	}},
	{"reconcile accept", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.ReconcileAccept(ctx, ledger.Reconciliation{
			Job: "submitted", UpstreamID: "upstream-1", Evidence: "seen in the console", Operator: "sue",
		})
		return err
	}},
	{"reconcile reject", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.ReconcileReject(ctx, ledger.Reconciliation{
			Job: "submitted", Evidence: "ticket 4711", Operator: "sue",
		})
		return err
	}},
}

func faultGrant(owner string) func(context.Context, *ledger.Ledger) error {
	return func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Grant(ctx, ledger.GrantParams{Owner: owner, Amount: 30, Key: "to " + owner})
		return err
	}
}

func faultCreate(owner string, cost int64, mode ledger.Mode) func(context.Context, *ledger.Ledger) error {
	return func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.CreateJob(ctx, ledger.JobParams{ID: "created", Owner: owner, Cost: cost, Mode: mode})
		return err
	}
}

func faultSettle(job string, o ledger.Outcome, cost int64) func(context.Context, *ledger.Ledger) error {
	r := ledger.Report{Job: job, Outcome: o, Source: ledger.Callback, Reason: "as reported"}
	if cost >= 0 {
		r.Cost = &cost
	}
	return func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Settle(ctx, r)
		return err
	}
}

func faultRevoke(owner string, amount int64) func(context.Context, *ledger.Ledger) error {
	return func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Revoke(ctx, ledger.RevokeParams{Owner: owner, Amount: amount, Key: "take", Reason: "test"})
		return err
	}
}

// faultStart makes what every case begins with: one owner with plain credits and jobs, one whose first
// lot lapses before faultTime, with jobs that it pays.
func faultStart(t *testing.T, dsn string) *filled {
	t.Helper()
	l := faultOpen(t, dsn, ledger.Options{Clock: func() time.Time { return faultTime.Add(-2 * time.Hour) }})
	soon := ledger.After(time.Hour)
	steps := []error{
		faultGrant("plain-first")(t.Context(), l),
	}
	step := func(_ any, err error) { steps = append(steps, err) }
	step(l.Grant(t.Context(), ledger.GrantParams{Owner: "plain", Amount: 100, Key: "plain"}))
	step(l.Grant(t.Context(), ledger.GrantParams{Owner: "lapsing", Amount: 20, Key: "lapsing", Expires: soon}))
	step(l.Grant(t.Context(), ledger.GrantParams{Owner: "lapsing", Amount: 50, Key: "lasting", Priority: 1}))
	for _, p := range []ledger.JobParams{
		{ID: "hold-1", Owner: "plain", Cost: 7}, {ID: "hold-2", Owner: "plain", Cost: 5},
		{ID: "done", Owner: "plain", Cost: 6}, {ID: "submitted", Owner: "plain", Cost: 4},
		{ID: "charge-1", Owner: "plain", Cost: 9, Mode: ledger.ModeCharge},
		{ID: "held", Owner: "lapsing", Cost: 3}, {ID: "late", Owner: "lapsing", Cost: 2, Deadline: soon},
		{ID: "charged", Owner: "lapsing", Cost: 4, Mode: ledger.ModeCharge},
		{ID: "taken", Owner: "plain", Cost: 1}, {ID: "asked", Owner: "plain", Cost: 1},
		{ID: "later", Owner: "plain", Cost: 1}, {ID: "gone", Owner: "plain", Cost: 1},
	} {
		step(l.CreateJob(t.Context(), p))
	}
	step(l.Submit(t.Context(), "submitted", "provider"))
	for _, job := range []string{"taken", "asked", "later"} {
		step(l.Submit(t.Context(), job, "provider"))
		step(l.Accepted(t.Context(), job, 1, "upstream of "+job))
	}
	step(l.CreateToken(t.Context(), "first", ledger.ScopeWrite))
	dbtest.Exec(t, dsn, faultEndpoints)
	steps = append(steps, faultSettle("done", ledger.Completed, -1)(t.Context(), l),
		faultSettle("gone", ledger.Failed, -1)(t.Context(), l), l.Close())
	dbtest.Exec(t, dsn, faultLeases...)
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
	if l.Engine() == "postgres" {
		dbtest.Exec(t, dsn, keepTables)
		return &filled{dsn: dsn}
	}
	image, err := os.ReadFile(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return &filled{image: image, dir: memoryDir(t)}
}

func faultOpen(t *testing.T, dsn string, o ledger.Options) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// memoryDir makes a directory that is not on a disk, where the system has such a place. Tests that
// commit many thousand times use it; what they look for does not depend on the disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "jobledger-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

var idPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// faultDump gives every row of every table, in order, with "new" for each id that is not in known
// and without hashes: so that two runs of one operation give the same dump.
func faultDump(t *testing.T, dsn string, known map[string]bool) (lines []string) {
	t.Helper()
	pool := dbtest.Raw(t, dsn)
	defer pool.Close()
	query := `SELECT name FROM sqlite_schema WHERE type = 'table'`
	if pool.DriverName() == "pgx" {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`
	}
	var tables []string
	if err := pool.Select(&tables, query); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for _, row := range faultRows(t, pool.DB, `SELECT * FROM `+table) {
			delete(row, "hash")
			delete(row, "head")
			line := idPattern.ReplaceAllStringFunc(fmt.Sprint(table, " ", row), func(id string) string {
				if known == nil || known[id] {
					return id
				}
				return "new"
			})
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

func faultRows(t *testing.T, pool *sql.DB, query string) (list []map[string]any) {
	t.Helper()
	rows, err := pool.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, places := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, c := range columns {
			row[c] = values[i]
		}
		list = append(list, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}
