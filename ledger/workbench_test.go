package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// start is where the clock of every workbench stands at first.
var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// workbench is a ledger under test, with a clock that only the test moves.
type workbench struct {
	*testing.T
	*ledger.Ledger
	dsn   string
	micro atomic.Int64 // since start
}

// eachWorkbench runs fn with a new ledger on every engine, and audits the ledger that fn leaves.
func eachWorkbench(t *testing.T, fn func(b *workbench)) {
	t.Helper()
	eachBrokenWorkbench(t, func(b *workbench) {
		fn(b)
		b.audit()
	})
}

// eachBrokenWorkbench is eachWorkbench for tests that leave a damaged ledger behind.
func eachBrokenWorkbench(t *testing.T, fn func(b *workbench)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, dsn string) { fn(newWorkbench(t, dsn)) })
}

func newWorkbench(t *testing.T, dsn string) *workbench {
	t.Helper()
	b := &workbench{T: t, dsn: dsn}
	b.Ledger = b.open(ledger.Options{})
	return b
}

// part says which part of very many like cases a test tries, one in so many: all of them, or a tenth
// where each statement goes to a server.
func (b *workbench) part() int {
	if b.Engine() == "postgres" {
		return 10
	}
	return 1
}

// open opens another handle on the same ledger and clock.
func (b *workbench) open(o ledger.Options) *ledger.Ledger {
	b.Helper()
	o.Clock = func() time.Time { return start.Add(time.Duration(b.micro.Load()) * time.Microsecond) }
	l, err := ledger.Open(b.Context(), b.dsn, o)
	b.ok(err)
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	})
	return l
}

// at sets the clock.
func (b *workbench) at(sinceStart time.Duration) { b.micro.Store(sinceStart.Microseconds()) }

func on(sinceStart time.Duration) ledger.When { return ledger.OnTime(start.Add(sinceStart)) }

func (b *workbench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// fails checks the code of an error, and the fields that it names.
func (b *workbench) fails(err error, code ledger.Code, fields ...string) {
	b.Helper()
	e, coded := errors.AsType[*ledger.Error](err)
	if !coded || e.Code != code {
		b.Fatalf("error is %v (%v), want %s", err, ledger.CodeOf(err), code)
	}
	got := e.Fields
	if e.Field != "" {
		got = []string{e.Field}
	}
	if len(fields) > 0 && !slices.Equal(got, fields) {
		b.Fatalf("%v: names %q, want %q", err, got, fields)
	}
}

// insufficient checks for INSUFFICIENT_CREDITS with its two amounts.
func (b *workbench) insufficient(err error, available, requested int64) {
	b.Helper()
	b.fails(err, ledger.InsufficientCredits)
	e, _ := errors.AsType[*ledger.Error](err)
	if *e.Available != available || *e.Requested != requested {
		b.Fatalf("%v: %d and %d, want %d and %d", err, *e.Available, *e.Requested, available, requested)
	}
}

// give grants credits to demo as a lot with a key.
func (b *workbench) give(key string, amount int64, terms ...func(*ledger.GrantParams)) ledger.Lot {
	b.Helper()
	p := ledger.GrantParams{Owner: "demo", Amount: amount, Key: key}
	for _, set := range terms {
		set(&p)
	}
	r, err := b.Grant(b.Context(), p)
	b.ok(err)
	return r.Lot
}

func priority(n int64) func(*ledger.GrantParams) {
	return func(p *ledger.GrantParams) { p.Priority = n }
}

func from(sinceStart time.Duration) func(*ledger.GrantParams) {
	return func(p *ledger.GrantParams) { p.Effective = on(sinceStart) }
}

func until(sinceStart time.Duration) func(*ledger.GrantParams) {
	return func(p *ledger.GrantParams) { p.Expires = on(sinceStart) }
}

// create tries to make a job of demo.
func (b *workbench) create(id string, cost int64, mode ledger.Mode) error {
	b.Helper()
	_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: id, Owner: "demo", Cost: cost, Mode: mode})
	return err
}

// report tells the ledger of a job's outcome, as a callback does, with an actual cost if one is given.
func (b *workbench) report(job string, outcome ledger.Outcome, cost ...int64) (ledger.Settlement, error) {
	r := ledger.Report{Job: job, Outcome: outcome, Source: ledger.Callback}
	if len(cost) == 1 {
		r.Cost = &cost[0]
	}
	return b.Settle(b.Context(), r)
}

// settle is report where no error is expected; it checks what the observer is told:
// "verdict status returned consumed".
func (b *workbench) settle(want, job string, outcome ledger.Outcome, cost ...int64) {
	b.Helper()
	s, err := b.report(job, outcome, cost...)
	b.ok(err)
	b.told(want, s)
}

func (b *workbench) told(want string, s ledger.Settlement) {
	b.Helper()
	got := fmt.Sprint(s.Verdict, " ", s.Job.Status, " ", s.Returned, " ", s.Consumed)
	if got != want || s.Won != (s.Verdict == ledger.Won) {
		b.Fatalf("%s: told %q (won %t), want %q", s.Job.ID, got, s.Won, want)
	}
	b.balance(buckets(s.Balance))
}

// buckets is a balance as text: available held used expired, and scheduled if there is any.
func buckets(a ledger.Balance) string {
	text := fmt.Sprint(a.Available, a.Held, a.Used, a.Expired)
	if a.Scheduled != 0 {
		text += fmt.Sprint(" ", a.Scheduled)
	}
	return text
}

// balance checks the balance of demo as of now, or as of a time.
func (b *workbench) balance(want string, asOf ...time.Duration) {
	b.Helper()
	p := ledger.BalanceParams{Owner: "demo"}
	if len(asOf) == 1 {
		p.At = on(asOf[0])
	}
	a, err := b.Balance(b.Context(), p)
	b.ok(err)
	if got := buckets(a); got != want {
		b.Fatalf("balance is %s, want %s", got, want)
	}
}

// lots checks the lots of demo in spending order: "available held used expired".
func (b *workbench) lots(want ...string) []ledger.Lot {
	b.Helper()
	a, err := b.Balance(b.Context(), ledger.BalanceParams{Owner: "demo", Lots: true})
	b.ok(err)
	var got []string
	for _, l := range a.Lots {
		got = append(got, fmt.Sprint(l.Available, l.Held, l.Used, l.Expired))
		if l.Available+l.Held+l.Used+l.Expired != l.Amount {
			b.Fatalf("lot does not add up: %+v", l)
		}
	}
	b.same(got, want)
	return a.Lots
}

// journal checks the entries of demo: "kind amount: available held used expired".
func (b *workbench) journal(want ...string) []ledger.Entry {
	b.Helper()
	entries, err := b.Entries(b.Context(), ledger.EntryFilter{Owner: "demo", Limit: 100})
	b.ok(err)
	var got []string
	for i, e := range entries {
		got = append(got, journalLine(e))
		if e.Seq != int64(i)+1 {
			b.Fatalf("entry %d has seq %d", i, e.Seq)
		}
	}
	b.same(got, want)
	return entries
}

func journalLine(e ledger.Entry) string {
	return fmt.Sprintf("%s %d: %d %d %d %d", e.Kind, e.Amount,
		e.AvailableAfter, e.HeldAfter, e.UsedAfter, e.ExpiredAfter)
}

// evidence checks the reports of a job, "source outcome verdict count", and then its events.
func (b *workbench) evidence(job string, want ...string) {
	b.Helper()
	got := b.query(`
		SELECT source || ' ' || outcome || ' ' || verdict || ' ' || count FROM reports WHERE job_id = ?
		ORDER BY 1`, job)
	got = append(got, b.query(`SELECT type FROM events WHERE job_id = ? ORDER BY type = 'job.conflict'`, job)...)
	b.same(got, want)
}

func (b *workbench) same(got, want []string) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Fatalf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// audit fails the test if the ledger's own audit finds anything.
func (b *workbench) audit() {
	b.Helper()
	r, err := b.Audit(b.Context(), ledger.AuditParams{})
	b.ok(err)
	for _, c := range r.Checks {
		if !c.OK {
			b.Errorf("audit: %s: %v", c.Name, c.Violations)
		}
	}
}

// behind runs do on a connection that knows no rules and no foreign keys.
func (b *workbench) behind(do func(ctx context.Context, c *sqlx.DB) error) {
	b.Helper()
	c, err := dbtest.OpenRaw(b.dsn)
	b.ok(err)
	defer c.Close()
	b.ok(do(b.Context(), c))
}

// exec runs statements behind the ledger's back.
func (b *workbench) exec(statements ...string) {
	b.Helper()
	b.behind(func(ctx context.Context, c *sqlx.DB) error {
		for _, statement := range statements {
			if _, err := c.ExecContext(ctx, dbtest.Spell(c, statement)); err != nil {
				return err
			}
		}
		return nil
	})
}

// refuses checks that the tables refuse each of the statements.
func (b *workbench) refuses(statements ...string) {
	b.Helper()
	c, err := dbtest.OpenRuled(b.dsn)
	b.ok(err)
	defer c.Close()
	for _, statement := range statements {
		if _, err := c.ExecContext(b.Context(), statement); err == nil {
			b.Errorf("%s: was not refused", statement)
		}
	}
}

// imported makes of the attempts what an import may leave behind: one that has no answers.
func (b *workbench) imported(change string) {
	b.Helper()
	b.exec(`DROP TRIGGER IF EXISTS answers_no_delete`, `DELETE FROM answers`, change)
}

// query gives the first column of a query's rows.
func (b *workbench) query(query string, args ...any) (list []string) {
	b.Helper()
	b.behind(func(ctx context.Context, c *sqlx.DB) error {
		rows, err := c.QueryContext(ctx, dbtest.Spell(c, query), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			list = append(list, text)
		}
		return rows.Err()
	})
	return list
}

// unchanged runs try and checks that it left every table as it was.
func (b *workbench) unchanged(try func()) {
	b.Helper()
	dump := func() []string {
		return b.query(`
			SELECT owner || available || '/' || held || '/' || used || '/' || expired || '/' || seq FROM balances
			UNION ALL SELECT id || available || '/' || held || '/' || used || '/' || expired FROM lots
			UNION ALL SELECT id || status || updated_at FROM jobs
			UNION ALL SELECT id FROM entries
			UNION ALL SELECT id FROM events
			UNION ALL SELECT job_id || source || outcome || verdict || count || last_at FROM reports
			UNION ALL SELECT job_id || attempt || provider || submission || evidence || operator || COALESCE(
				upstream_id, '') || COALESCE(resolved_at, 0) FROM attempts
			UNION ALL SELECT event_id || endpoint_id || status || tries || '/' || next_at || COALESCE(lease, '')
				FROM deliveries
			UNION ALL SELECT job_id || tries || '/' || next_at || COALESCE(lease, '') FROM polls
			UNION ALL SELECT id || secret || COALESCE(disabled_at, 0) FROM endpoints
			UNION ALL SELECT id || COALESCE(revoked_at, 0) FROM tokens
			ORDER BY 1`)
	}
	before := dump()
	try()
	b.same(dump(), before)
}
