package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"jobledger/ledger"
)

// observers are six that speak of one attempt. Four of them say how it ended.
var observers = []struct {
	name    string
	outcome ledger.Outcome
	source  ledger.Source
}{
	{"submitted", "", ""},
	{"progress", "processing", ledger.Poll},
	{"succeeded", ledger.Completed, ledger.Callback},
	{"failed", ledger.Failed, ledger.Callback},
	{"canceled", ledger.Canceled, ledger.Operator},
	{"expired", ledger.TimedOut, ledger.Poll},
}

// B44: 36 ordered pairs of observers and 720 orders of all six: the job ends as the first of those
// said who say how, with that one's credits, whatever else is said before and after.
func TestB44EveryOrderOfObservers(t *testing.T) {
	var orders [][]int
	for i := range observers {
		for k := range observers {
			orders = append(orders, []int{i, k})
		}
	}
	every := 0
	permutations(len(observers), func(order []int) {
		if every++; !testing.Short() || every%12 == 0 {
			orders = append(orders, order)
		}
	})
	ends := map[ledger.Outcome]int64{}
	for _, order := range orders {
		ends[firstEnd(order)]++
	}
	if len(orders) != 36+720 && !testing.Short() || len(ends) != 5 {
		t.Fatalf("%d orders: %v", len(orders), ends)
	}
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 7*int64(len(orders)))
		inParallel(8, len(orders), func(i int) { // each order by itself, and eight of them at a time
			if err := b.observe(fmt.Sprint("j", orders[i]), orders[i]); err != nil {
				b.Errorf("order %v: %v", orders[i], err)
			}
		})
		open, completed := ends[""], ends[ledger.Completed]
		returned := int64(len(orders)) - open - completed
		b.balance(fmt.Sprint(7*returned+2*completed, " ", 7*open, " ", 5*completed, " 0"))
	})
}

// firstEnd is the first outcome in an order; empty: none.
func firstEnd(order []int) ledger.Outcome {
	for _, i := range order {
		if o := observers[i].outcome; o != "" && o != "processing" {
			return o
		}
	}
	return ""
}

// observe lets the observers speak in an order, and gives what one of them is told wrongly.
func (b *workbench) observe(job string, order []int) error {
	if err := b.create(job, 7, ledger.ModeHold); err != nil {
		return err
	}
	if _, err := b.Submit(b.Context(), job, "acme"); err != nil {
		return err
	}
	var ended ledger.Outcome
	for _, i := range order {
		o := observers[i]
		if o.outcome == "" {
			r, err := b.Accepted(b.Context(), job, 1, job)
			if err != nil || (r.Settlement != nil) != (ended != "") {
				return fmt.Errorf("%s was told %+v, %w", o.name, r, err)
			}
			continue
		}
		r := ledger.Report{Job: job, Outcome: o.outcome, Source: o.source, Attempt: 1}
		if cost := int64(5); o.outcome == ledger.Completed {
			r.Cost = &cost
		}
		s, err := b.Settle(b.Context(), r)
		if o.outcome == "processing" {
			if ledger.CodeOf(err) != ledger.Invalid {
				return fmt.Errorf("%s was told %+v, %w", o.name, s, err)
			}
			continue
		}
		want := ledger.Conflict
		switch ended {
		case "":
			ended, want = o.outcome, ledger.Won
		case o.outcome:
			want = ledger.Duplicate
		}
		consumed := map[bool]int64{true: 5}[ended == ledger.Completed]
		if err != nil || s.Verdict != want || s.Job.Status != ledger.Status(ended) || s.Consumed != consumed ||
			s.Returned != 7-consumed {
			return fmt.Errorf("%s was told %+v, %w; want %s", o.name, s, err, want)
		}
	}
	return nil
}

// B89: a key is for ever: more than a year and a sweep later, everything that was asked once is
// answered as it was, and moves nothing.
func TestB89KeysDoNotExpire(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		b.rejected("rejected", "j", 1, "no capacity", true)
		b.mark("j", "acme", 2)
		b.uncertain("uncertain", "j", 2, "timeout")
		r := ledger.Reconciliation{Job: "j", UpstreamID: "u2", Evidence: "seen", Operator: "sue"}
		b.reconciled("accepted", false, r)
		report := ledger.Report{Job: "j", Outcome: ledger.Completed, Source: ledger.Callback, Attempt: 2}
		_, err := b.Settle(b.Context(), report)
		b.ok(err)
		b.at(400 * 24 * time.Hour)
		_, err = b.Sweep(b.Context(), ledger.PageMax)
		b.ok(err)
		b.unchanged(func() {
			b.pending("j")
			b.rejected("accepted replayed: duplicate completed, completed 0 7", "j", 1, "no capacity", true)
			b.accepted("accepted replayed: duplicate completed, completed 0 7", "j", 2, "u2")
			b.reconciled("accepted replayed: duplicate completed, completed 0 7", false, r)
		})
		s, err := b.Settle(b.Context(), report)
		b.ok(err)
		b.told("duplicate completed 0 7", s)
		b.journal("grant 7: 7 0 0 0", "hold 7: 0 7 0 0", "consume 7: 0 0 7 0")
	})
}
