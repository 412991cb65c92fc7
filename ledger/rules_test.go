package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

const (
	tick    = time.Microsecond
	century = 100 * 365 * 24 * time.Hour
)

// ofOwner gives a grant another owner than demo.
func ofOwner(owner string) func(*ledger.GrantParams) {
	return func(p *ledger.GrantParams) { p.Owner = owner }
}

// permutations calls do with every order of 0 to n-1.
func permutations(n int, do func(order []int)) {
	var grow func(order []int)
	grow = func(order []int) {
		if len(order) == n {
			do(order)
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				grow(append(slices.Clone(order), i))
			}
		}
	}
	grow(nil)
}

// Priority decides, then expiry with none last, however far away it is, then age.
func TestB79SpendingOrder(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		year9000 := func(p *ledger.GrantParams) {
			p.Expires = ledger.OnTime(time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC))
		}
		terms := []func(*ledger.GrantParams){until(2 * time.Hour), year9000, priority(0), priority(1)}
		permutations(len(terms), func(order []int) {
			owner := fmt.Sprint("owner", order)
			for _, i := range order {
				b.give(fmt.Sprint(owner, i), int64(i)+1, ofOwner(owner), terms[i])
			}
			b.give(owner+"youngest", 5, ofOwner(owner), priority(1))
			p := ledger.JobParams{ID: owner, Owner: owner, Cost: 11}
			_, err := b.CreateJob(b.Context(), p)
			b.ok(err)
			a, err := b.Balance(b.Context(), ledger.BalanceParams{Owner: owner, Lots: true})
			b.ok(err)
			var held []string
			for _, l := range a.Lots {
				held = append(held, fmt.Sprint(l.Held, " of ", l.Amount))
			}
			b.same(held, []string{"1 of 1", "2 of 2", "3 of 3", "4 of 4", "1 of 5"})
		})
	})
}

// B78, B81: a lot is spendable in [effective, expiry), swept or not, to the microsecond.
func TestB78HalfOpenTimes(t *testing.T) {
	const effective, expiry = time.Hour, 2 * time.Hour
	for _, c := range []struct {
		at      time.Duration
		balance string
	}{
		{effective - tick, "0 0 0 0 10"},
		{effective, "10 0 0 0"},
		{effective + tick, "10 0 0 0"},
		{expiry - tick, "10 0 0 0"},
		{expiry, "0 0 0 10"},
		{expiry + tick, "0 0 0 10"},
	} {
		for _, swept := range []bool{false, true} {
			eachWorkbench(t, func(b *workbench) {
				b.give("g", 10, from(effective), until(expiry))
				b.at(c.at)
				if swept {
					r, err := b.Sweep(b.Context(), 10)
					b.ok(err)
					if want := c.at >= expiry; (r.ExpiredLots == 1) != want {
						b.Fatalf("%v: expired %d lots", c.at, r.ExpiredLots)
					}
				}
				b.balance(c.balance)
				b.balance(c.balance, c.at)
				err := b.create("j", 10, ledger.ModeHold)
				if c.balance != "10 0 0 0" {
					b.insufficient(err, 0, 10)
					b.balance(c.balance)
					return
				}
				b.ok(err)
				b.balance("0 10 0 0")
			})
		}
	}
}

// Spending books what has lapsed before it takes anything.
func TestSpendingExpiresFirst(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		lot := b.give("lapses", 4, until(time.Hour))
		b.give("stays", 6)
		b.at(time.Hour)
		b.ok(b.create("j", 5, ledger.ModeCharge))
		entries := b.journal("grant 4: 4 0 0 0", "grant 6: 10 0 0 0", "expire 4: 6 0 0 4", "charge 5: 1 0 5 4")
		if e := entries[2]; e.EventKey != "lot-expire:"+lot.ID+":1" || e.Job != nil {
			b.Fatalf("expiry is %+v", e)
		}
		b.lots("0 0 0 4", "1 0 5 0")
	})
}

// B82: credits that come back to a lapsed lot expire at once, each time under a key of its own; the
// expiry belongs to the job only for the job's own credits.
func TestB82ReturnAfterExpiry(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		lot := b.give("g", 10, until(time.Hour))
		other := b.give("other", 2, until(time.Hour), priority(1))
		b.ok(b.create("first", 3, ledger.ModeHold))
		b.ok(b.create("second", 4, ledger.ModeHold))
		b.ok(b.create("used", 1, ledger.ModeHold))
		b.at(time.Hour)
		b.settle("won failed 3 0", "first", ledger.Failed)
		b.settle("won completed 3 1", "second", ledger.Completed, 1)
		b.settle("won completed 0 1", "used", ledger.Completed)
		b.lots("0 0 2 8", "0 0 0 2")
		entries := b.journal("grant 10: 10 0 0 0", "grant 2: 12 0 0 0", "hold 3: 9 3 0 0", "hold 4: 5 7 0 0",
			"hold 1: 4 8 0 0", "release 3: 7 5 0 0", "expire 5: 2 5 0 5", "expire 2: 0 5 0 7",
			"consume 1: 0 4 1 7", "release 3: 3 1 1 7", "expire 3: 0 1 1 10", "consume 1: 0 0 2 10")
		names := strings.NewReplacer(lot.ID, "LOT", other.ID, "OTHER")
		var got []string
		for _, e := range entries {
			if e.Kind != ledger.KindExpire {
				continue
			}
			job := "-"
			if e.Job != nil {
				job = *e.Job
			}
			got = append(got, names.Replace(e.EventKey)+" "+job)
		}
		b.same(got, []string{"lot-expire:LOT:1 first", "lot-expire:OTHER:1 -", "lot-expire:LOT:2 second"})
	})
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10, until(time.Hour))
		b.ok(b.create("j", 7, ledger.ModeCharge))
		b.at(time.Hour + time.Second)
		_, err := b.Sweep(b.Context(), 10)
		b.ok(err)
		b.settle("won failed 7 0", "j", ledger.Failed)
		b.lots("0 0 0 3", "0 0 0 7")
		b.journal("grant 10: 10 0 0 0", "charge 7: 3 0 7 0", "expire 3: 0 0 7 3", "refund 7: 7 0 0 3",
			"expire 7: 0 0 0 10")
	})
}

// B76: a job's credits are those of its own entry, in spending order; refunds keep priority and times.
func TestB76PartialCompletion(t *testing.T) {
	for _, c := range []struct {
		mode    ledger.Mode
		outcome ledger.Outcome
		cost    []int64
		told    string
		lots    []string
		journal []string
	}{
		{ledger.ModeHold, ledger.Completed, []int64{6}, "won completed 6 6",
			[]string{"0 0 4 0", "3 0 2 0", "6 0 0 0"}, []string{"consume 6: 3 6 6 0", "release 6: 9 0 6 0"}},
		{ledger.ModeHold, ledger.Completed, []int64{0}, "won completed 12 0",
			[]string{"4 0 0 0", "5 0 0 0", "6 0 0 0"}, []string{"release 12: 15 0 0 0"}},
		{ledger.ModeHold, ledger.Completed, nil, "won completed 0 12",
			[]string{"0 0 4 0", "0 0 5 0", "3 0 3 0"}, []string{"consume 12: 3 0 12 0"}},
		{ledger.ModeHold, ledger.Failed, nil, "won failed 12 0",
			[]string{"4 0 0 0", "5 0 0 0", "6 0 0 0"}, []string{"release 12: 15 0 0 0"}},
		{ledger.ModeCharge, ledger.Completed, []int64{6}, "won completed 6 6",
			[]string{"0 0 4 0", "0 0 2 0", "3 0 0 0", "3 0 0 0", "3 0 0 0"}, []string{"refund 6: 9 0 6 0"}},
		{ledger.ModeCharge, ledger.Completed, []int64{12}, "won completed 0 12",
			[]string{"0 0 4 0", "0 0 5 0", "3 0 3 0"}, nil},
		{ledger.ModeCharge, ledger.Canceled, nil, "won canceled 12 0",
			[]string{"0 0 0 0", "4 0 0 0", "0 0 0 0", "5 0 0 0", "3 0 0 0", "3 0 0 0"},
			[]string{"refund 12: 15 0 0 0"}},
	} {
		eachWorkbench(t, func(b *workbench) {
			b.give("third", 6, priority(2), until(time.Hour))
			b.give("first", 4)
			b.give("second", 5, priority(1), from(0), until(2*time.Hour))
			b.ok(b.create("j", 12, c.mode))
			b.settle(c.told, "j", c.outcome, c.cost...)
			begin := []string{"grant 6: 6 0 0 0", "grant 4: 10 0 0 0", "grant 5: 15 0 0 0", "hold 12: 3 12 0 0"}
			if c.mode == ledger.ModeCharge {
				begin[3] = "charge 12: 3 0 12 0"
			}
			b.journal(append(begin, c.journal...)...)
			terms := map[int64]string{0: "0 9223372036854775807", 1: "0 7200000000", 2: "0 3600000000"}
			for _, l := range b.lots(c.lots...) {
				got := fmt.Sprint(sinceStart(l.EffectiveAt, 0), sinceStart(l.ExpiresAt, never))
				if got != terms[l.Priority] || (l.EffectiveAt != nil) != (l.Priority == 1) {
					b.Fatalf("terms of lot %+v are %s", l, got)
				}
			}
		})
	}
}

// B64, B55: an actual cost is 0 to the cost of the job.
func TestB64CostAboveTheHold(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		for _, mode := range []ledger.Mode{ledger.ModeHold, ledger.ModeCharge} {
			b.ok(b.create(string(mode), 5, mode))
			b.unchanged(func() {
				for _, cost := range []int64{-1, 6, ledger.AmountMax, ledger.AmountMax + 1} {
					_, err := b.report(string(mode), ledger.Completed, cost)
					b.fails(err, ledger.Invalid, "cost")
				}
				_, err := b.report(string(mode), ledger.Failed, 5)
				b.fails(err, ledger.Invalid, "cost")
			})
			b.settle("won completed 0 5", string(mode), ledger.Completed, 5)
		}
	})
}

// B51, B52: what is held cannot be held again, from however many sides.
func TestB51ParallelHolds(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 50)
		errs := make([]error, 60)
		handles := []*ledger.Ledger{b.Ledger, b.open(ledger.Options{}), b.open(ledger.Options{})}
		inParallel(6, len(errs), func(i int) {
			p := ledger.JobParams{ID: fmt.Sprint("j", i), Owner: "demo", Cost: 10}
			_, errs[i] = handles[i%3].CreateJob(b.Context(), p)
		})
		refused := 0
		for _, err := range errs {
			if err != nil {
				b.insufficient(err, 0, 10)
				refused++
			}
		}
		if refused != 55 {
			b.Fatalf("%d holds were refused, want 55", refused)
		}
		b.lots("0 50 0 0")
	})
}

// B68, B69: a revocation takes what is available, from the lot that is named or in spending order.
func TestB69Revoke(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("a", 4, until(time.Hour))
		second := b.give("b", 5, until(2*time.Hour))
		later := b.give("c", 6, from(3*time.Hour))
		foreign := b.give("d", 9, ofOwner("other"))
		b.ok(b.create("j", 2, ledger.ModeHold))
		revoke := func(key string, amount int64, lot string) error {
			_, err := b.Revoke(b.Context(), ledger.RevokeParams{
				Owner: "demo", Amount: amount, Key: key, Reason: "mistake", Lot: lot})
			return err
		}
		b.unchanged(func() {
			b.insufficient(revoke("k", 8, ""), 7, 8)
			b.insufficient(revoke("k", 6, second.ID), 5, 6)
			b.fails(revoke("k", 1, foreign.ID), ledger.NotFound)
			b.fails(revoke("k", 1, "no such lot"), ledger.NotFound)
		})
		b.ok(revoke("k", 3, ""))
		b.lots("0 2 0 2", "4 0 0 1", "6 0 0 0")
		b.ok(revoke("l", 2, second.ID))
		b.ok(revoke("m", 1, later.ID))
		b.lots("0 2 0 2", "2 0 0 3", "5 0 0 1")
		b.ok(revoke("m", 1, later.ID))
		b.at(2 * time.Hour)
		b.unchanged(func() { b.insufficient(revoke("n", 1, second.ID), 0, 1) })
		b.settle("won completed 0 2", "j", ledger.Completed)
		b.balance("0 0 2 8 5")
		b.journal("grant 4: 4 0 0 0", "grant 5: 9 0 0 0", "grant 6: 15 0 0 0", "hold 2: 13 2 0 0",
			"revoke 3: 10 2 0 3", "revoke 2: 8 2 0 5", "revoke 1: 7 2 0 6", "consume 2: 7 0 2 6")
	})
}

func TestBalanceAsOf(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.at(time.Hour)
		b.give("g", 10, until(4*time.Hour))
		b.give("scheduled", 3, from(3*time.Hour))
		b.at(2 * time.Hour)
		b.ok(b.create("j", 7, ledger.ModeCharge))
		b.at(5 * time.Hour)
		b.settle("won completed 3 4", "j", ledger.Completed, 4)
		for _, c := range []struct {
			at   time.Duration
			want string
		}{
			{time.Hour - tick, "0 0 0 0"},
			{time.Hour, "10 0 0 0 3"},
			{2*time.Hour - tick, "10 0 0 0 3"},
			{2 * time.Hour, "3 0 7 0 3"},
			{3 * time.Hour, "6 0 7 0"},
			{4*time.Hour - tick, "6 0 7 0"},
			{4 * time.Hour, "3 0 7 3"}, // lapsed, and not booked until the job ended
			{5*time.Hour - tick, "3 0 7 3"},
			{5 * time.Hour, "3 0 4 6"},
			{century, "3 0 4 6"},
		} {
			b.balance(c.want, c.at)
		}
		_, err := b.Balance(b.Context(), ledger.BalanceParams{Owner: "nobody", At: on(time.Hour)})
		b.fails(err, ledger.NotFound)
		_, err = b.Balance(b.Context(), ledger.BalanceParams{Owner: "demo", At: on(time.Hour), Lots: true})
		b.fails(err, ledger.Invalid, "lots")
	})
}

// A clock that is set back leaves the books right: what was booked stays, and what was spent from a
// lot returns to it even if its time has, by that clock, not come.
func TestClockGoesBack(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.ModeHold, ledger.ModeCharge} {
		eachWorkbench(t, func(b *workbench) {
			b.give("g", 10, from(time.Hour), until(3*time.Hour))
			b.give("lapses", 2, until(2*time.Hour))
			b.at(2 * time.Hour)
			b.ok(b.create("j", 7, mode))
			b.at(time.Hour - tick)
			b.settle("won failed 7 0", "j", ledger.Failed)
			b.balance("0 0 0 2 10")
			b.insufficient(b.create("k", 1, mode), 0, 1)
			b.at(time.Hour)
			b.balance("10 0 0 2")
			b.ok(b.create("k", 10, mode))
		})
	}
}

func TestOwnerTotalIsBounded(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", ledger.AmountMax-5)
		b.ok(b.create("j", ledger.AmountMax-5, ledger.ModeCharge))
		b.give("h", 4, from(time.Hour))
		b.unchanged(func() {
			_, err := b.Grant(b.Context(), ledger.GrantParams{Owner: "demo", Amount: 2, Key: "k"})
			b.fails(err, ledger.Invalid, "amount")
		})
		b.give("k", 1)
		b.settle("won failed 9007199254740986 0", "j", ledger.Failed)
		b.balance("9007199254740987 0 0 0 4")
	})
}
