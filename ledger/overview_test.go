package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"jobledger/ledger"
)

// A survey counts every job once, and shows the conflicts from the latest on and what nobody knows from
// the oldest on.
func TestSurvey(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 100)
		for i, id := range []string{"z", "a", "m"} {
			b.at(time.Duration(i) * time.Minute)
			b.ok(b.create(id, 7, ledger.ModeHold))
			_, err := b.Submit(b.Context(), id, "acme")
			b.ok(err)
		}
		for i, id := range []string{"c1", "c2"} {
			b.at(time.Duration(10+i) * time.Minute)
			b.ok(b.create(id, 7, ledger.ModeHold))
			b.settle("won failed 7 0", id, ledger.Failed)
			b.settle("conflict failed 7 0", id, ledger.Completed)
		}
		b.ok(b.create("p", 7, ledger.ModeHold))
		b.at(time.Hour)
		s, err := b.Survey(b.Context(), 2)
		b.ok(err)
		if got := fmt.Sprint(s.Owners, s.Jobs, s.Conflicts, s.Backlog.Open, s.Backlog.Reconcile, s.At); got !=
			"1 map[failed:2 pending:1 processing:3] 2 4 3 2030-01-01T01:00:00.000000Z" {
			t.Error(got)
		}
		var unresolved, conflicts []string
		for _, u := range s.Unresolved {
			unresolved = append(unresolved, fmt.Sprint(u.Job, " ", u.AgeSeconds))
		}
		for _, c := range s.Latest {
			conflicts = append(conflicts, fmt.Sprint(c.Job, " ", c.Owner, " ", c.Outcome, " ", c.Reported))
		}
		b.same(unresolved, []string{"z 3600", "a 3540"})
		b.same(conflicts, []string{"c2 demo failed completed", "c1 demo failed completed"})
		_, err = b.Survey(b.Context(), 0)
		b.fails(err, ledger.Invalid, "limit")
	})
}

// The lots that lapse soon come in the order in which they lapse; one that has nothing to lose, one that
// lapses later and one that never does are not among them.
func TestExpiringLots(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("never", 1)
		b.give("late", 2, until(72*time.Hour))
		b.give("soon", 3, until(2*time.Hour))
		b.give("spent", 4, until(90*time.Minute))
		b.ok(b.create("j", 4, ledger.ModeCharge))
		b.give("due", 5, until(100*time.Minute))
		b.at(101 * time.Minute)
		list, err := b.ExpiringLots(b.Context(), 24*time.Hour, 10)
		b.ok(err)
		var got []string
		for _, l := range list {
			got = append(got, fmt.Sprint(l.Available, " ", l.ExpiresAt))
		}
		b.same(got, []string{"5 2030-01-01T01:40:00.000000Z", "3 2030-01-01T02:00:00.000000Z"})
		_, err = b.ExpiringLots(b.Context(), time.Hour, ledger.PageMax+1)
		b.fails(err, ledger.Invalid, "limit")
		_, err = b.Sweep(b.Context(), ledger.PageMax)
		b.ok(err)
	})
}

// A statement has the last entries, the latest first, and a history that ends with the last entry and has
// no more points than were asked for.
func TestStatement(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for i := range 10 {
			b.at(time.Duration(i) * time.Minute)
			b.give(fmt.Sprint("g", i), int64(i+1))
		}
		ask := func(before int64, limit, points int) (ledger.Statement, string) {
			b.Helper()
			s, err := b.Statement(b.Context(), ledger.StatementParams{
				Owner: "demo", Before: before, Limit: limit, Points: points,
			})
			b.ok(err)
			text := fmt.Sprint(s.Balance.Available, " of ", s.Seq, ":")
			for _, e := range s.Entries {
				text += fmt.Sprintf(" %d(%d)", e.Seq, len(e.Postings))
			}
			text += " |"
			for _, h := range s.History {
				text += fmt.Sprint(" ", h.Seq, "=", h.Available)
			}
			return s, text
		}
		b.same(func() (list []string) {
			for _, p := range [][3]int{{0, 2, 10}, {9, 3, 4}, {2, 5, 1}, {1, 5, 3}} {
				_, text := ask(int64(p[0]), p[1], p[2])
				list = append(list, text)
			}
			return list
		}(), []string{
			"55 of 10: 10(1) 9(1) | 1=1 2=3 3=6 4=10 5=15 6=21 7=28 8=36 9=45 10=55",
			"55 of 10: 8(1) 7(1) 6(1) | 1=1 4=10 7=28 10=55",
			"55 of 10: 1(1) | 10=55",
			"55 of 10: | 2=3 6=21 10=55",
		})
		s, _ := ask(0, 1, 5)
		if last := s.History[len(s.History)-1]; last.At.String() != "2030-01-01T00:09:00.000000Z" {
			t.Errorf("the last point is at %s", last.At)
		}
		for field, p := range map[string]ledger.StatementParams{
			"owner":  {Owner: "", Limit: 1, Points: 1},
			"limit":  {Owner: "demo", Limit: 0, Points: 1},
			"points": {Owner: "demo", Limit: 1, Points: 0},
			"before": {Owner: "demo", Limit: 1, Points: 1, Before: -1},
		} {
			_, err := b.Statement(b.Context(), p)
			b.fails(err, ledger.Invalid, field)
		}
		_, err := b.Statement(b.Context(), ledger.StatementParams{Owner: "nobody", Limit: 1, Points: 1})
		b.fails(err, ledger.NotFound)
	})
}
