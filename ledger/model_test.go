package ledger_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"pgregory.net/rapid"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// The property test makes modelRuns runs, spread over modelWorkers ledgers, and a tenth of them where
// each statement goes to a server. With -short, rapid makes a fifth of the checks that it is given, of half
// the length.
const (
	modelRuns    = 1000
	modelWorkers = 8
)

// TestModel drives every operation of a ledger and of the model, and compares all that can be seen
// after each step.
func TestModel(t *testing.T) {
	c := dbtest.StartCampaign(t, "T36", modelRuns)
	each := max(c.Wanted/modelWorkers, 1)
	c.All(each * modelWorkers) // on SQLite
	if testing.Short() {
		setChecks(t, 5*each)
	} else {
		setChecks(t, each)
	}
	for w := range modelWorkers {
		t.Run(fmt.Sprint("ledger", w), func(t *testing.T) {
			t.Parallel()
			eachWorkbench(t, func(b *workbench) {
				run, part := 0, b.part()
				rapid.Check(b.T, func(rt *rapid.T) {
					if run++; run%part == 0 {
						newDrive(rt, b, run).run()
					}
					if b.Engine() == "sqlite" {
						c.Done(true)
					}
				})
			})
		})
	}
}

// setChecks sets the number of checks of rapid for one test, if the command line does not.
func setChecks(t *testing.T, n int) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if err := checks.Value.Set(fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(before) })
}

// drive is one run: a ledger and a model that get the same operations. All runs of a worker share
// one ledger; each has owners, jobs and keys of its own, and a time long after those before it.
type drive struct {
	*rapid.T
	b       *workbench
	m       *model
	prefix  string
	seen    map[string][]ledger.Lot // as last listed
	past    []snapshot              // while the clock only went forwards
	highest int64
}

// snapshot is what an owner was shown at a time.
type snapshot struct {
	at    int64
	owner string
	text  string
}

func newDrive(rt *rapid.T, b *workbench, run int) *drive {
	b.at(time.Duration(run) * time.Hour)
	d := &drive{T: rt, b: b, m: newModel(b.micro.Load()), prefix: fmt.Sprintf("run%07d/", run),
		seen: map[string][]ledger.Lot{}, highest: b.micro.Load()}
	for more := true; more; { // what earlier runs left
		r, err := b.Sweep(d.ctx(), ledger.PageMax)
		d.ok(err)
		more = r.More
	}
	return d
}

func (d *drive) ctx() context.Context { return d.b.Context() }

func (d *drive) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *drive) run() {
	d.Repeat(map[string]func(*rapid.T){
		"":        func(*rapid.T) { d.compare() },
		"grant":   func(*rapid.T) { d.grant() },
		"grant2":  func(*rapid.T) { d.grant() },
		"create":  func(*rapid.T) { d.create() },
		"create2": func(*rapid.T) { d.create() },
		"create3": func(*rapid.T) { d.create() },
		"settle":  func(*rapid.T) { d.settle() },
		"settle2": func(*rapid.T) { d.settle() },
		"settle3": func(*rapid.T) { d.settle() },
		"cancel":  func(*rapid.T) { d.cancel() },
		"sweep":   func(*rapid.T) { d.sweep() },
		"revoke":  func(*rapid.T) { d.revoke() },
		"clock":   func(*rapid.T) { d.moveClock() },
		"clock2":  func(*rapid.T) { d.moveClock() },
	})
	d.compareHistory()
}

// compare checks balances, lots and jobs as they are, and balances as they were.
func (d *drive) compare() {
	for owner, o := range d.m.owners {
		a, err := d.b.Balance(d.ctx(), ledger.BalanceParams{Owner: owner, Lots: true})
		d.ok(err)
		d.shows(a)
		d.compareLots(a, o.ordered())
		if d.m.now >= d.highest {
			d.past = append(d.past, snapshot{d.m.now, owner, buckets(a)})
		}
	}
	jobs, err := d.b.Jobs(d.ctx(), ledger.JobFilter{After: d.prefix, Limit: 100})
	d.ok(err)
	if len(jobs) != len(d.m.jobs) {
		d.Fatalf("%d jobs, want %d", len(jobs), len(d.m.jobs))
	}
	for i := range jobs {
		d.compareJob(&jobs[i])
	}
}

func (d *drive) compareLots(a ledger.Balance, want []*modelLot) {
	d.Helper()
	d.seen[a.Owner] = a.Lots
	if len(a.Lots) != len(want) {
		d.Fatalf("%s has %d lots, want %d", a.Owner, len(a.Lots), len(want))
	}
	for i, l := range a.Lots {
		got := modelLot{l.Priority, sinceStart(l.EffectiveAt, 0), sinceStart(l.ExpiresAt, never),
			l.Available, l.Held, l.Used, l.Expired}
		if got != *want[i] {
			d.Fatalf("%s: lot %d is %+v, want %+v", a.Owner, i, got, *want[i])
		}
	}
}

func sinceStart(t *ledger.Time, none int64) int64 {
	if t == nil {
		return none
	}
	return int64(*t) - start.UnixMicro()
}

func (d *drive) compareJob(got *ledger.Job) {
	d.Helper()
	j := d.m.jobs[got.ID]
	text := fmt.Sprint(got.Owner, got.Cost, got.Mode, got.Status, sinceStart(got.Deadline, never),
		sinceStart(&got.CreatedAt, 0), sinceStart(&got.UpdatedAt, 0), got.SettledCost != nil)
	want := fmt.Sprint(j.owner, j.cost, j.mode, j.status, j.due(), j.created, j.updated, !j.open())
	if got.SettledCost != nil {
		text += fmt.Sprint(*got.SettledCost, *got.SettledSource, *got.SettledAttempt, sinceStart(got.SettledAt, 0))
		want += fmt.Sprint(j.settled, j.source, 0, j.updated)
	}
	if text != want {
		d.Fatalf("job %s is %s, want %s", got.ID, text, want)
	}
}

// compareHistory checks what a run leaves behind: owners, journal, reports, and balances as of its
// past.
func (d *drive) compareHistory() {
	balances, err := d.b.Balances(d.ctx(), d.prefix, 10)
	d.ok(err)
	if len(balances) != len(d.m.owners) {
		d.Fatalf("%d owners, want %d", len(balances), len(d.m.owners))
	}
	for _, a := range balances {
		d.shows(a)
	}
	for owner, o := range d.m.owners {
		entries, err := d.b.Entries(d.ctx(), ledger.EntryFilter{Owner: owner, Limit: ledger.PageMax})
		d.ok(err)
		var got []string
		for _, e := range entries {
			got = append(got, journalLine(e))
		}
		if !slices.Equal(got, o.journal) {
			d.Fatalf("journal of %s:\n%s\nwant:\n%s", owner, strings.Join(got, "\n"), strings.Join(o.journal, "\n"))
		}
	}
	d.compareReports()
	d.comparePast()
}

// comparePast checks balances as of earlier moments, each as it was shown last at that moment.
func (d *drive) comparePast() {
	for i, s := range d.past {
		if slices.ContainsFunc(d.past[i+1:], func(l snapshot) bool { return l.at == s.at && l.owner == s.owner }) {
			continue
		}
		at := on(time.Duration(s.at) * time.Microsecond)
		a, err := d.b.Balance(d.ctx(), ledger.BalanceParams{Owner: s.owner, At: at})
		d.ok(err)
		if buckets(a) != s.text {
			d.Fatalf("as of %d, %s had %s, want %s", s.at, s.owner, buckets(a), s.text)
		}
	}
}

func (d *drive) compareReports() {
	reports := map[string]int{}
	events := 0
	d.b.behind(func(ctx context.Context, c *sqlx.DB) error {
		rows, err := c.QueryContext(ctx, c.Rebind(`
			SELECT job_id || ' ' || source || ' ' || outcome || ' ' || verdict || ' ' || attempt, count,
			       (SELECT COUNT(*) FROM events WHERE job_id BETWEEN ? AND ?)
			FROM reports WHERE job_id BETWEEN ? AND ?`), d.prefix, d.prefix+"~", d.prefix, d.prefix+"~")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var key string
			var count int
			if err := rows.Scan(&key, &count, &events); err != nil {
				return err
			}
			reports[key] = count
		}
		return rows.Err()
	})
	if !maps.Equal(reports, d.m.reports) {
		d.Fatalf("reports are %v, want %v", reports, d.m.reports)
	}
	for key := range reports {
		if strings.Contains(key, " won ") || strings.Contains(key, " conflict ") {
			events--
		}
	}
	if events != 0 {
		d.Fatalf("%d events too many", events)
	}
}
