package ledger_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobledger/db"
	"jobledger/internal/books"
	"jobledger/ledger"
)

// books imports rows of JSON, without their braces, one per line.
func (b *workbench) books(p ledger.ImportParams, rows ...string) (ledger.ImportReport, error) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "books.jsonl")
	text := "{" + strings.Join(rows, "}\n{") + "}\n"
	b.ok(os.WriteFile(file, []byte(text), 0o600))
	s, err := books.Open(b.Context(), file, nil, books.Options{})
	b.ok(err)
	b.ok(s.Refused.Err())
	defer func() { b.ok(s.Close()) }()
	return b.Import(b.Context(), s.Books(), p)
}

// imports imports rows that must not be refused, and then again, which must change nothing.
func (b *workbench) imports(rows ...string) ledger.ImportReport {
	b.Helper()
	dry, err := b.books(ledger.ImportParams{DryRun: true}, rows...)
	b.ok(err)
	r, err := b.books(ledger.ImportParams{}, rows...)
	b.ok(err)
	b.unchanged(func() {
		again, err := b.books(ledger.ImportParams{}, rows...)
		b.ok(err)
		if again.Imported != 0 || again.Replayed != r.Imported || again.Credits != 0 {
			b.Fatalf("imported %+v, and again %+v", r, again)
		}
	})
	if fmt.Sprint(dry) != fmt.Sprint(r) {
		b.Fatalf("dry run %+v, then %+v", dry, r)
	}
	return r
}

// Rows of demo's books.
func balanceRow(available int) string {
	return fmt.Sprintf(`"type":"balance","owner":"demo","available":%d`, available)
}

func jobRow(id string, cost int, status string, more ...string) string {
	return fmt.Sprintf(`"type":"job","id":"%s","owner":"demo","cost":%d,"status":"%s"`, id, cost, status) +
		strings.Join(append([]string{""}, more...), ",")
}

func refundRow(ref, job string, amount int) string {
	return fmt.Sprintf(`"type":"refund","ref":"%s","job":"%s","owner":"demo","amount":%d`, ref, job, amount)
}

func lotRow(ref, figures string) string {
	return fmt.Sprintf(`"type":"lot","owner":"demo","ref":"%s",%s`, ref, figures)
}

const rejected = `"submission":"rejected","evidence":"400 from the provider"`

func TestImportOfBalances(t *testing.T) {
	for name, c := range map[string]struct {
		rows    []string
		balance string // of demo
		jobs    string // id status settled_cost submission, of each
		entries string
	}{
		"nothing":         {[]string{balanceRow(0)}, "0 0 0 0", "", ""},
		"a balance alone": {[]string{balanceRow(7)}, "7 0 0 0", "", "grant 7"},
		"completed": {[]string{balanceRow(3), jobRow("j", 7, "completed")}, "3 0 7 0",
			"j completed 7 unknown", "grant 10,charge 7"},
		"open, charged": {[]string{jobRow("j", 7, "pending"), balanceRow(3)}, "3 0 7 0",
			"j pending - unknown", "grant 10,charge 7"},
		"open, held, with handles": {[]string{balanceRow(3),
			jobRow("j", 7, "processing", `"mode":"hold","provider":"p","upstream_id":"u"`)}, "3 7 0 0",
			"j processing - accepted", "grant 10,hold 7"},
		"failed and returned": {[]string{balanceRow(7), jobRow("j", 7, "failed"), refundRow("r", "j", 7)},
			"7 0 0 0",
			"j failed 0 unknown", "grant 7,charge 7,refund 7"},
		"failed hold, returned": {[]string{balanceRow(7), jobRow("j", 7, "failed", `"mode":"hold"`),
			refundRow("r", "j", 7)}, "7 0 0 0", "j failed 0 unknown", "grant 7,hold 7,release 7"},
		"failed and not returned": {[]string{balanceRow(0), jobRow("j", 7, "failed", rejected)}, "0 0 7 0",
			"j failed - rejected", "grant 7,charge 7"},
		"partly returned": {[]string{balanceRow(5), jobRow("j", 7, "failed"), refundRow("a", "j", 2),
			refundRow("b", "j", 3)}, "5 0 2 0", "j failed - unknown", "grant 7,charge 7,refund 2,refund 3"},
		"cost less in the end": {[]string{balanceRow(9), jobRow("j", 7, "completed", `"settled_cost":4`)},
			"9 0 4 0",
			"j completed 4 unknown", "grant 13,charge 7,refund 3"},
		"cost less, a part returned": {[]string{balanceRow(9), jobRow("j", 7, "completed", `"settled_cost":4`),
			refundRow("r", "j", 1)}, "9 0 4 0", "j completed 4 unknown", "grant 13,charge 7,refund 1,refund 2"},
		"completed, a part returned": {[]string{balanceRow(3), jobRow("j", 7, "completed"), refundRow("r", "j", 3)},
			"3 0 4 0", "j completed 4 unknown", "grant 7,charge 7,refund 3"},
		"returned, then spent elsewhere": {[]string{balanceRow(1), jobRow("j", 7, "canceled",
			`"submission":"none"`),
			refundRow("r", "j", 7)}, "1 0 0 6", "j canceled 0 none", "grant 7,charge 7,refund 7,revoke 6"},
		"in the order of their times": {[]string{balanceRow(0),
			jobRow("b", 7, "completed", `"created_at":"2026-02-01T00:00:00Z"`),
			jobRow("a", 7, "failed", `"created_at":"2026-01-01T00:00:00Z"`), refundRow("r", "a", 7)}, "0 0 7 0",
			"a failed 0 unknown,b completed 7 unknown", "grant 7,charge 7,refund 7,charge 7"},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorkbench(t, func(b *workbench) {
				b.imports(c.rows...)
				b.balance(c.balance)
				b.same(b.query(jobsQuery), split(c.jobs))
				b.same(b.query(`SELECT kind || ' ' || amount FROM entries ORDER BY seq`), split(c.entries))
			})
		})
	}
}

const jobsQuery = `
	SELECT id || ' ' || status || ' ' || COALESCE(CAST(settled_cost AS TEXT), '-') || ' ' || submission
	FROM jobs
	ORDER BY id`

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func TestImportOfLots(t *testing.T) {
	const past, future = `"expires_at":"2029-12-31T00:00:00Z"`, `"expires_at":"2031-01-01T00:00:00Z"`
	for name, c := range map[string]struct {
		rows []string
		lots []string // available held used expired
		jobs string
	}{
		"no jobs": {[]string{lotRow("b", `"available":1,"held":2,"used":3,"expired":4,"priority":5,"amount":10`),
			lotRow("a", `"available":9`)}, []string{"9 0 0 0", "1 2 3 4"},
			"import:held:b processing - unknown,import:used:b completed 3 unknown"},
		"jobs explain all": {[]string{lotRow("a", `"available":1,"held":7,"used":7,`+future),
			jobRow("done", 7, "completed"), jobRow("open", 7, "pending"), jobRow("back", 9, "failed"),
			refundRow("r", "back", 9)}, []string{"1 7 7 0"},
			"back failed 0 unknown,done completed 7 unknown,open pending - unknown"},
		"jobs explain a part": {[]string{lotRow("a", `"used":9`), jobRow("j", 7, "completed")}, []string{"0 0 9 0"},
			"import:used:a completed 2 unknown,j completed 7 unknown"},
		"over several lots": {[]string{lotRow("a", `"priority":1,"used":4,"available":2`),
			lotRow("b", `"used":5,"available":4`), jobRow("j", 11, "completed", `"settled_cost":9`)},
			[]string{"4 0 5 0", "2 0 4 0"}, "j completed 9 unknown"},
		"what lapsed": {[]string{lotRow("a", `"available":4,"used":3,"expired":2,`+past), jobRow("done", 3,
			"completed"),
			jobRow("x", 9, "failed"), jobRow("y", 6, "failed"), refundRow("r", "x", 9), refundRow("s", "y", 6)},
			[]string{"0 0 3 6"}, "done completed 3 unknown,x failed 0 unknown,y failed 0 unknown"},
		"held, never paid back": {[]string{lotRow("a", `"held":7,"available":1`), jobRow("j", 7, "timed_out")},
			[]string{"1 7 0 0"}, "j timed_out - unknown"},
		"used, never paid back": {[]string{lotRow("a", `"used":7`), jobRow("j", 7, "failed", rejected)},
			[]string{"0 0 7 0"}, "j failed - rejected"},
		"the open job comes first": {[]string{lotRow("a", `"used":7,"held":7`), jobRow("a", 7, "failed"),
			jobRow("b", 7, "pending")}, []string{"0 7 7 0"}, "a failed - unknown,b pending - unknown"},
		"a charge, partly returned": {[]string{lotRow("a", `"used":5,"available":9,`+future), jobRow("j", 7,
			"failed"),
			refundRow("r", "j", 2)}, []string{"7 0 5 0", "2 0 0 0"}, "j failed - unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorkbench(t, func(b *workbench) {
				b.imports(c.rows...)
				b.lots(c.lots...)
				b.same(b.query(jobsQuery), split(c.jobs))
			})
		})
	}
}

// TestImportRefusals names every row that keeps the books out, and writes nothing.
func TestImportRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		rows []string
		want []string
	}{
		"refunds above the cost": {[]string{balanceRow(9), jobRow("j", 7, "failed"), refundRow("a", "j", 5),
			refundRow("b", "j", 3)}, []string{`line 4: job "j" cost 7 and its refunds are 8`}},
		"a refund of an open job": {[]string{balanceRow(9), jobRow("j", 7, "pending"), refundRow("a", "j", 7)},
			[]string{`line 3: job "j" is pending and has a refund`}},
		"more returned than left": {[]string{balanceRow(9), jobRow("j", 7, "completed", `"settled_cost":5`),
			refundRow("a", "j", 3)}, []string{`line 3: .*5 of 7 in the end and its refunds are 3`}},
		"a hold returned in part": {[]string{balanceRow(9), jobRow("j", 7, "failed", `"mode":"hold"`),
			refundRow("a", "j", 3)}, []string{`line 2: .*part of a hold`}},
		"failed, not returned, never submitted": {[]string{balanceRow(9),
			jobRow("j", 7, "failed", `"submission":"none"`)}, []string{`line 2: submission: .*unknown, or rejected`}},
		"both": {[]string{balanceRow(9), lotRow("a", `"used":1`)},
			[]string{`line 1: owner "demo" has lots too`}},
		"neither": {[]string{jobRow("j", 7, "failed")}, []string{`line 1: .*neither a balance nor lots`}},
		"every one": {[]string{jobRow("a", 7, "failed"), jobRow("b", 7, "failed")}, []string{"line 1: ",
			"line 2: "}},
		"too much": {[]string{balanceRow(ledger.AmountMax), jobRow("j", 1, "completed")},
			[]string{`line 1: .*more than`}},
		"not used": {[]string{lotRow("a", `"available":9`), jobRow("j", 7, "completed")},
			[]string{`line 2: .*7 of 7.*used`}},
		"not held": {[]string{lotRow("a", `"used":9`), jobRow("j", 7, "pending")},
			[]string{`line 2: .*7 of 7.*held`}},
		"no room": {[]string{lotRow("a", `"used":9`), jobRow("j", 10, "failed"), refundRow("r", "j", 10)},
			[]string{`line 2: .*1 of 10`}},
		"one handle": {[]string{balanceRow(0), jobRow("a", 7, "failed", handles), jobRow("b", 7, "failed",
			handles)}, []string{`line 3: upstream id "u" .* job "a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorkbench(t, func(b *workbench) {
				b.unchanged(func() {
					r, err := b.books(ledger.ImportParams{}, c.rows...)
					b.fails(err, ledger.Invalid)
					b.refused(r, c.want...)
				})
			})
		})
	}
}

const handles = `"provider":"p","upstream_id":"u"`

func (b *workbench) refused(r ledger.ImportReport, want ...string) {
	b.Helper()
	if len(r.Refused) != len(want) {
		b.Fatalf("refused %v, want %q", r.Refused, want)
	}
	for i, f := range r.Refused {
		if got := f.Place.String() + ": " + f.Reason; !regexp.MustCompile(want[i]).MatchString(got) {
			b.Errorf("refused %q, want %q", got, want[i])
		}
	}
}

// TestImportIntoUse refuses books that contradict a ledger that is in use, and replays those that do not,
// however far their jobs have come.
func TestImportIntoUse(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		rows := []string{balanceRow(3), jobRow("j", 7, "pending"), jobRow("k", 7, "failed"), refundRow("r", "k", 7)}
		b.imports(rows...)
		b.settle("won failed 7 0", "j", ledger.Failed)
		b.give("live", 5)
		for _, c := range []struct {
			want string
			rows []string
		}{
			{"", rows},
			{`line 1: .*differs in available`, append([]string{balanceRow(4)}, rows[1:]...)},
			{`line 1: .*with other jobs`, []string{balanceRow(3), rows[1]}},
			{`line 2: job "j" .*other content`, []string{rows[0], jobRow("j", 7, "processing"), rows[2], rows[3]}},
			{`line 5: .*job "l" is not`,
				append(slices.Clone(rows), jobRow("l", 1, "failed"), refundRow("t", "l", 1))},
			{`line 1: .*comes in the same file`, []string{refundRow("s", "j", 3)}},
			{`line 1: .*differs in amount`, []string{refundRow("r", "k", 3)}},
			{"", rows[3:]},
			{"", []string{`"type":"refund","ref":"s","job":"j","owner":"other","amount":3`}},
		} {
			b.unchanged(func() {
				r, err := b.books(ledger.ImportParams{}, c.rows...)
				if c.want == "" {
					b.ok(err)
				} else {
					b.fails(err, ledger.Invalid)
					b.refused(r, c.want)
				}
			})
		}
		r, err := b.books(ledger.ImportParams{},
			`"type":"balance","owner":"other","available":1`,
			`"type":"job","id":"j","owner":"other","cost":7,"status":"failed"`)
		b.fails(err, ledger.Invalid)
		b.refused(r, `line 2: job "j" is in the ledger already, of owner "demo"`)
	})
}

// TestImportOfLotsIntoUse does the same where the books have lots.
func TestImportOfLotsIntoUse(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		const a, c = `"available":5,"used":4,"priority":1`, `"expires_at":"2031-01-01T00:00:00Z","held":2`
		b.imports(lotRow("a", a), lotRow("c", c), jobRow("j", 3, "completed"))
		b.ok(b.create("live", 5, ledger.ModeCharge))
		for _, changed := range []struct{ want, a, c string }{
			{"", a, c},
			{"line 1: .*differs in figures", `"available":6,"used":3,"priority":1`, c},
			{"line 1: .*differs in priority", `"available":5,"used":4`, c},
			{"line 2: .*differs in expires_at", a, `"expires_at":"2031-01-02T00:00:00Z","held":2`},
		} {
			b.unchanged(func() {
				r, err := b.books(ledger.ImportParams{}, lotRow("a", changed.a), lotRow("c", changed.c),
					jobRow("j", 3, "completed"))
				if changed.want == "" {
					b.ok(err)
				} else {
					b.fails(err, ledger.Invalid)
					b.refused(r, changed.want)
				}
			})
		}
		r, err := b.books(ledger.ImportParams{}, lotRow("new", a))
		b.fails(err, ledger.Invalid)
		b.refused(r, `line 1: owner "demo" is in the ledger already, and lot "new" is not`)
		r, err = b.books(ledger.ImportParams{}, strings.Replace(lotRow("a", a), "demo", "other", 1))
		b.fails(err, ledger.Invalid)
		b.refused(r, `line 1: lot "a" is in the ledger already, of owner "demo"`)
	})
}

// TestImportStops when its context ends, and has written nothing.
func TestImportStops(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		ctx, cancel := context.WithCancel(b.Context())
		b.unchanged(func() {
			_, err := b.Import(ctx, ledger.Books{
				Owners: func(yield func(*ledger.OwnerBooks, error) bool) {
					for i := range 100 {
						o := ledger.OwnerBooks{Owner: fmt.Sprint(i), Jobs: func(func(*ledger.BookJob, error) bool) {}}
						o.Balance = &ledger.BookBalance{Owner: o.Owner, Available: 5}
						if i == 10 {
							cancel()
						}
						if !yield(&o, nil) {
							return
						}
					}
				},
			}, ledger.ImportParams{})
			b.fails(err, ledger.Busy)
		})
	})
}

// failingAt opens a ledger whose n-th statement that is not of a transaction itself fails.
func (b *workbench) failingAt(n *int, when db.When) *ledger.Ledger {
	return b.open(ledger.Options{Intercept: func(w db.When, query string) error {
		if isControl(query) || w != when {
			return nil
		}
		if *n--; *n == 0 {
			return errInjected
		}
		return nil
	}})
}

// TestSettleLegacyFaults: whatever statement fails, the refund and the accounting happen together, and a
// retry finishes what a failure undid.
func TestSettleLegacyFaults(t *testing.T) {
	for _, when := range []db.When{db.Before, db.After} {
		for statement, fired := 1, true; fired; statement++ {
			eachWorkbench(t, func(b *workbench) {
				b.imports(balanceRow(2), jobRow("j", 7, "failed", rejected), refundRow("r", "j", 2))
				n := statement
				_, err := b.failingAt(&n, when).SettleLegacy(b.Context(), "j")
				if fired = err != nil; fired && statement == 100 {
					b.Fatal(err)
				} else if fired {
					b.journal("grant 7: 7 0 0 0", "charge 7: 0 0 7 0", "refund 2: 2 0 5 0")
					b.same(b.query(jobsQuery), []string{"j failed - rejected"})
				} else if statement < 10 {
					b.Fatalf("only %d statements", statement)
				}
				s, err := b.SettleLegacy(b.Context(), "j")
				b.ok(err)
				if s.Won != fired || s.Returned != 5 || buckets(s.Balance) != "7 0 0 0" {
					b.Fatalf("statement %d, fault %t: %+v", statement, fired, s)
				}
			})
		}
	}
}
