package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// What Preload writes is what the rules would have written: the audit finds nothing, the owner's balance and
// the entries of each kind are the same, and life goes on from there.
func TestPreload(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.ModeHold, ledger.ModeCharge} {
		eachWorkbench(t, func(b *workbench) {
			ctx := b.Context()
			p := ledger.PreloadParams{Owner: "made", Jobs: 11, Cost: 7, Mode: mode, Spare: 5}
			for _, want := range []bool{false, true} {
				replayed, err := b.Preload(ctx, p)
				b.ok(err)
				if replayed != want {
					b.Errorf("replayed is %v, want %v", replayed, want)
				}
			}
			_, err := b.Grant(ctx, ledger.GrantParams{Owner: "lived", Amount: 82, Key: "lived"})
			b.ok(err)
			for n := 1; n <= 11; n++ {
				id := fmt.Sprintf("lived-%06d", n)
				_, err := b.CreateJob(ctx, ledger.JobParams{ID: id, Owner: "lived", Cost: 7, Mode: mode})
				b.ok(err)
				r := ledger.Report{Job: id, Outcome: ledger.Failed, Source: ledger.Callback}
				if n%2 == 1 {
					r.Outcome = ledger.Completed
				}
				_, err = b.Settle(ctx, r)
				b.ok(err)
			}
			if made, lived := pastOf(b, "made"), pastOf(b, "lived"); made != lived {
				b.Errorf("made:\n%s\nlived:\n%s", made, lived)
			}
			balance, err := b.Balance(ctx, ledger.BalanceParams{Owner: "made"})
			b.ok(err)
			if balance.Available != 40 || balance.Used != 42 || balance.Held != 0 {
				b.Errorf("the balance is %+v", balance)
			}
			_, err = b.CreateJob(ctx, ledger.JobParams{ID: "next", Owner: "made", Cost: 40, Mode: mode})
			b.ok(err)
			if s, err := b.Settle(ctx, ledger.Report{
				Job: "next", Outcome: ledger.Failed, Source: ledger.Poll,
			}); err != nil || !s.Won || s.Returned != 40 {
				b.Errorf("a job after the past: %+v, %v", s, err)
			}
		})
	}
}

// pastOf is an owner's journal, jobs and lots, without ids, times and the owner's name.
func pastOf(b *workbench, owner string) string {
	ctx := b.Context()
	entries, err := b.Entries(ctx, ledger.EntryFilter{Owner: owner, Limit: ledger.PageMax})
	b.ok(err)
	jobs, err := b.Jobs(ctx, ledger.JobFilter{Owner: owner, Limit: ledger.PageMax})
	b.ok(err)
	balance, err := b.Balance(ctx, ledger.BalanceParams{Owner: owner, Lots: true})
	b.ok(err)
	var text strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&text, e.EventKey, e.Seq, e.Kind, e.Amount, e.AvailableAfter, e.HeldAfter, e.UsedAfter,
			e.Reason, e.Metadata, len(e.Postings))
	}
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintln(&text, j.ID, j.Cost, j.Mode, j.Status, j.Attempt, j.Submission, *j.SettledCost,
			*j.SettledSource, *j.SettledAttempt, j.Reason, j.Metadata)
	}
	for _, l := range balance.Lots {
		fmt.Fprintln(&text, l.Available, l.Held, l.Used, l.Amount, l.Priority)
	}
	return strings.ReplaceAll(text.String(), owner, "OWNER")
}

func TestPreloadRefuses(t *testing.T) {
	good := ledger.PreloadParams{Owner: "o", Jobs: 1, Cost: 7, Mode: ledger.ModeHold}
	l, err := ledger.Open(t.Context(), dbtest.SQLite(t), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for field, spoil := range map[string]func(*ledger.PreloadParams){
		"jobs":  func(p *ledger.PreloadParams) { p.Jobs = ledger.PreloadMax + 1 },
		"owner": func(p *ledger.PreloadParams) { p.Owner = strings.Repeat("o", 250) },
		"cost":  func(p *ledger.PreloadParams) { p.Cost = 0 },
		"mode":  func(p *ledger.PreloadParams) { p.Mode = "gift" },
		"spare": func(p *ledger.PreloadParams) { p.Spare = ledger.AmountMax },
	} {
		p := good
		spoil(&p)
		_, err := l.Preload(t.Context(), p)
		if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	bare := ledger.PreloadParams{Owner: "o", Cost: 1, Mode: ledger.ModeHold}
	if _, err := l.Preload(t.Context(), bare); err == nil {
		t.Error("an owner without a grant")
	}
	if _, err := l.Preload(t.Context(), good); err != nil {
		t.Error(err)
	}
	for i := range 2 { // the job of one is there: nothing of the other is
		if _, err := l.Grant(t.Context(), ledger.GrantParams{Owner: "p", Amount: 9, Key: "p"}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			_, err = l.CreateJob(t.Context(), ledger.JobParams{ID: "q-000001", Owner: "p", Cost: 1})
		} else {
			good.Owner = "q"
			_, err = l.Preload(t.Context(), good)
		}
		if want := []ledger.Code{"", ledger.IdempotencyMismatch}[i]; err != nil != (want != "") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err = l.Balance(t.Context(), ledger.BalanceParams{Owner: "q"})
	if ledger.CodeOf(err) != ledger.NotFound {
		t.Errorf("half of a past: %v", err)
	}
}
