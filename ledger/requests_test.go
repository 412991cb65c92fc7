package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// B85: the same key with other content is refused, and the answer names what differs; B61, B88: the
// same content is answered as at first, whenever it comes.
func TestB85GrantReplays(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		first := ledger.GrantParams{Owner: "demo", Amount: 7, Key: "k", Priority: 1,
			Effective: ledger.After(time.Hour), Expires: ledger.After(24 * time.Hour),
			Reason: "welcome", Metadata: `{"a": 1}`}
		r, err := b.Grant(b.Context(), first)
		b.ok(err)
		b.at(100 * 24 * time.Hour)
		again := func(change func(p *ledger.GrantParams)) error {
			p := first
			change(&p)
			got, err := b.Grant(b.Context(), p)
			if err == nil && (!got.Replayed || got.Lot.ID != r.Lot.ID) {
				b.Fatalf("not a replay: %+v", got)
			}
			return err
		}
		b.unchanged(func() {
			b.ok(again(func(*ledger.GrantParams) {}))
			b.ok(again(func(p *ledger.GrantParams) { p.Metadata = `{"a":1}` }))
			b.ok(again(func(p *ledger.GrantParams) { p.Expires = on(24 * time.Hour) }))
			for field, change := range map[string]func(p *ledger.GrantParams){
				"owner":     func(p *ledger.GrantParams) { p.Owner = "Demo" },
				"amount":    func(p *ledger.GrantParams) { p.Amount = 8 },
				"priority":  func(p *ledger.GrantParams) { p.Priority = 0 },
				"effective": func(p *ledger.GrantParams) { p.Effective = ledger.When{} },
				"expires":   func(p *ledger.GrantParams) { p.Expires = ledger.After(24*time.Hour + tick) },
				"reason":    func(p *ledger.GrantParams) { p.Reason = "" },
				"metadata":  func(p *ledger.GrantParams) { p.Metadata = `{"a":2}` },
			} {
				b.fails(again(change), ledger.IdempotencyMismatch, field)
			}
			b.fails(again(func(p *ledger.GrantParams) { p.Amount, p.Reason = 1, "x" }),
				ledger.IdempotencyMismatch, "amount", "reason")
		})
	})
}

// B85, B88, B90: as for grants; B30: nor is a job that ended paid or begun again.
func TestB90JobReplays(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		b.give("h", 10, ofOwner("other"))
		first := ledger.JobParams{ID: "j", Owner: "demo", Cost: 7, Mode: ledger.ModeHold,
			Deadline: ledger.After(time.Hour), Metadata: `{"a":1}`}
		again := func(change func(p *ledger.JobParams)) error {
			p := first
			change(&p)
			got, err := b.CreateJob(b.Context(), p)
			if err == nil && (!got.Replayed || got.Job.ID != "j") {
				b.Fatalf("not a replay: %+v", got)
			}
			return err
		}
		_, err := b.CreateJob(b.Context(), first)
		b.ok(err)
		for _, ended := range []bool{false, true} {
			if ended {
				b.settle("won failed 7 0", "j", ledger.Failed)
			}
			b.at(100 * time.Hour)
			b.unchanged(func() {
				b.ok(again(func(*ledger.JobParams) {}))
				b.ok(again(func(p *ledger.JobParams) { p.Mode = "" }))
				b.ok(again(func(p *ledger.JobParams) { p.Deadline = on(time.Hour) }))
				for field, change := range map[string]func(p *ledger.JobParams){
					"owner":    func(p *ledger.JobParams) { p.Owner = "other" },
					"cost":     func(p *ledger.JobParams) { p.Cost = 1000 },
					"mode":     func(p *ledger.JobParams) { p.Mode = ledger.ModeCharge },
					"deadline": func(p *ledger.JobParams) { p.Deadline = ledger.When{} },
					"metadata": func(p *ledger.JobParams) { p.Metadata = "" },
				} {
					b.fails(again(change), ledger.IdempotencyMismatch, field)
				}
			})
		}
	})
}

func TestB85RevokeReplays(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		lot := b.give("g", 10)
		b.give("h", 10, ofOwner("other"))
		first := ledger.RevokeParams{Owner: "demo", Amount: 6, Key: "k", Reason: "mistake", Lot: lot.ID}
		r, err := b.Revoke(b.Context(), first)
		b.ok(err)
		again := func(change func(p *ledger.RevokeParams)) error {
			p := first
			change(&p)
			got, err := b.Revoke(b.Context(), p)
			if err == nil && (!got.Replayed || got.Entry.ID != r.Entry.ID) {
				b.Fatalf("not a replay: %+v", got)
			}
			return err
		}
		b.unchanged(func() {
			b.ok(again(func(*ledger.RevokeParams) {}))
			for field, change := range map[string]func(p *ledger.RevokeParams){
				"owner":  func(p *ledger.RevokeParams) { p.Owner = "other" },
				"amount": func(p *ledger.RevokeParams) { p.Amount = 5 },
				"reason": func(p *ledger.RevokeParams) { p.Reason = "fraud" },
				"lot":    func(p *ledger.RevokeParams) { p.Lot = "" },
			} {
				b.fails(again(change), ledger.IdempotencyMismatch, field)
			}
		})
	})
}

// B14: what failed has left nothing behind, and its key is free.
func TestB14FailureBurnsNoKey(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		grant := ledger.GrantParams{Owner: "demo", Amount: 5, Key: "k", Expires: on(0)}
		_, err := b.Grant(b.Context(), grant)
		b.fails(err, ledger.Invalid, "expires")
		b.fails(b.create("j", 7, ledger.ModeHold), ledger.NotFound)
		b.give("k", 5, until(time.Hour))
		b.give("due", 2, until(time.Minute))
		b.at(time.Minute)
		revoke := ledger.RevokeParams{Owner: "demo", Amount: 6, Key: "k", Reason: "mistake"}
		b.unchanged(func() {
			b.insufficient(b.create("j", 7, ledger.ModeHold), 5, 7)
			_, err = b.report("j", ledger.Completed)
			b.fails(err, ledger.NotFound)
			_, err = b.Revoke(b.Context(), revoke)
			b.insufficient(err, 5, 6)
		})
		revoke.Amount = 1
		_, err = b.Revoke(b.Context(), revoke)
		b.ok(err)
		b.ok(b.create("j", 4, ledger.ModeHold))
		b.balance("0 4 0 3")
	})
}

// The code that is first in the list wins when a request is wrong in two ways.
func TestPrecedenceOfCodes(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		b.ok(b.create("done", 5, ledger.ModeHold))
		b.settle("won failed 5 0", "done", ledger.Failed)
		settle := func(job string, attempt int64, cost ...int64) error {
			r := ledger.Report{Job: job, Outcome: ledger.Completed, Source: ledger.Poll, Attempt: attempt}
			if len(cost) == 1 {
				r.Cost = &cost[0]
			}
			_, err := b.Settle(b.Context(), r)
			return err
		}
		grant := func(p ledger.GrantParams) error {
			_, err := b.Grant(b.Context(), p)
			return err
		}
		job := func(p ledger.JobParams) error {
			_, err := b.CreateJob(b.Context(), p)
			return err
		}
		revoke := func(p ledger.RevokeParams) error {
			_, err := b.Revoke(b.Context(), p)
			return err
		}
		for _, c := range []struct {
			name string
			err  error
			want ledger.Code
		}{
			{"bad outcome of no job", b.outcome("none", "unknown"), ledger.Invalid},
			{"negative cost of no job", settle("none", 0, -1), ledger.Invalid},
			{"cost above the hold, other attempt", settle("done", 3, 6), ledger.Invalid},
			{"no job, other attempt", settle("none", 3), ledger.NotFound},
			{"other attempt, other outcome", settle("done", 3), ledger.StaleAttempt},
			{"bad cost, no owner", job(ledger.JobParams{ID: "j", Owner: "none"}), ledger.Invalid},
			{"no owner, too much", job(ledger.JobParams{ID: "j", Owner: "none", Cost: 99}), ledger.NotFound},
			{"known id, too much", job(ledger.JobParams{ID: "done", Owner: "demo", Cost: 99}),
				ledger.IdempotencyMismatch},
			{"known key, bad amount", grant(ledger.GrantParams{Owner: "demo", Key: "g"}), ledger.Invalid},
			{"known key, expiry has passed", grant(ledger.GrantParams{Owner: "demo", Amount: 10, Key: "g",
				Expires: on(0)}), ledger.IdempotencyMismatch},
			{"no reason, no owner", revoke(ledger.RevokeParams{Owner: "none", Amount: 1, Key: "r"}), ledger.Invalid},
			{"no lot, too much", revoke(ledger.RevokeParams{Owner: "demo", Amount: 99, Key: "r", Reason: "x",
				Lot: "none"}), ledger.NotFound},
		} {
			if got := ledger.CodeOf(c.err); got != c.want {
				b.Errorf("%s: %s (%v), want %s", c.name, got, c.err, c.want)
			}
		}
	})
}

// outcome reports an outcome of a job.
func (b *workbench) outcome(job string, outcome ledger.Outcome) error {
	_, err := b.report(job, outcome)
	return err
}

// B91, B92: the same limits for every id; what is distinct by a byte is distinct.
func TestB91Ids(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		long := strings.Repeat("é", 127) + "x" // 255 bytes
		for _, id := range []string{"", " ", "\t", "\u00a0", "a\x00b", "a\nb", "a\x7f", "a\u0085b",
			" a", "a ", "a\u2003", long + "x", "\xff", "a\xc0\xaf"} {
			b.unchanged(func() {
				for field, p := range map[string]ledger.GrantParams{
					"owner": {Owner: id, Amount: 1, Key: "k"},
					"key":   {Owner: "demo", Amount: 1, Key: id},
				} {
					_, err := b.Grant(b.Context(), p)
					b.fails(err, ledger.Invalid, field)
				}
				b.fails(b.create(id, 1, ledger.ModeHold), ledger.Invalid, "id")
				b.fails(b.outcome(id, ledger.Failed), ledger.Invalid, "job")
				_, err := b.Revoke(b.Context(), ledger.RevokeParams{Owner: "demo", Amount: 1, Key: id, Reason: "x"})
				b.fails(err, ledger.Invalid, "key")
			})
		}
		for _, id := range []string{"Job1", "job1", "j\u00f6b1", "jo\u0308b1", "job 1", "%", "_", "'", long} {
			b.give(id, 1)
			b.ok(b.create(id, 1, ledger.ModeHold))
		}
		b.balance("10 9 0 0")
	})
}

// B65: amounts are 1 to 2^53-1, and a direction is a verb.
func TestB65Amounts(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", ledger.AmountMax)
		b.unchanged(func() {
			for _, n := range []int64{0, -1, -5, ledger.AmountMax + 1, -1 << 63} {
				_, err := b.Grant(b.Context(), ledger.GrantParams{Owner: "demo", Amount: n, Key: "k"})
				b.fails(err, ledger.Invalid, "amount")
				b.fails(b.create("j", n, ledger.ModeHold), ledger.Invalid, "cost")
				_, err = b.Revoke(b.Context(), ledger.RevokeParams{Owner: "demo", Amount: n, Key: "k", Reason: "x"})
				b.fails(err, ledger.Invalid, "amount")
			}
		})
		b.ok(b.create("j", ledger.AmountMax, ledger.ModeHold))
	})
	for _, text := range []string{"", "0", "-1", "+1", "010", "00", "1e3", "5.0", "0x10", "1_000",
		"1,000", " 1", "1 ", "９", "9007199254740992", "99999999999999999999"} {
		if n, err := ledger.ParseAmount("amount", text); ledger.CodeOf(err) != ledger.Invalid {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
	for text, want := range map[string]int64{"1": 1, "10": 10, "9007199254740991": ledger.AmountMax} {
		if n, err := ledger.ParseAmount("amount", text); n != want || err != nil {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
}

func TestOtherLimits(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		pad := func(n int) string { return strings.Repeat("x", n) }
		object := func(n int) ledger.JSON { return ledger.JSON(`{"k":"` + pad(n-len(`{"k":""}`)) + `"}`) }
		good := ledger.GrantParams{Owner: "demo", Amount: 1, Reason: pad(1024), Metadata: object(4096)}
		for i, c := range []struct {
			field  string
			change func(p *ledger.GrantParams)
		}{
			{"", func(*ledger.GrantParams) {}},
			{"reason", func(p *ledger.GrantParams) { p.Reason = pad(1025) }},
			{"reason", func(p *ledger.GrantParams) { p.Reason = "a\x00" }},
			{"reason", func(p *ledger.GrantParams) { p.Reason = "\xff" }},
			{"metadata", func(p *ledger.GrantParams) { p.Metadata = object(4097) }},
			{"metadata", func(p *ledger.GrantParams) { p.Metadata = `[]` }},
			{"metadata", func(p *ledger.GrantParams) { p.Metadata = `null` }},
			{"metadata", func(p *ledger.GrantParams) { p.Metadata = `{} {}` }},
			{"metadata", func(p *ledger.GrantParams) { p.Metadata = "{\"a\":\"\xff\"}" }},
			{"priority", func(p *ledger.GrantParams) { p.Priority = -1 }},
			{"priority", func(p *ledger.GrantParams) { p.Priority = ledger.AmountMax + 1 }},
			{"expires", func(p *ledger.GrantParams) { p.Expires = ledger.After(-tick) }},
			{"expires", func(p *ledger.GrantParams) { p.Expires = ledger.After(0) }},
			{"expires", func(p *ledger.GrantParams) { p.Expires = ledger.OnTime(time.UnixMicro(-1)) }},
			{"effective", func(p *ledger.GrantParams) { p.Effective = ledger.OnTime(start.AddDate(9000, 0, 0)) }},
			{"effective", func(p *ledger.GrantParams) { p.Effective, p.Expires = on(time.Hour), on(time.Hour) }},
		} {
			p := good
			p.Key = fmt.Sprint("k", i)
			c.change(&p)
			if _, err := b.Grant(b.Context(), p); c.field != "" {
				b.fails(err, ledger.Invalid, c.field)
			} else {
				b.ok(err)
			}
		}
		_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: "j", Owner: "demo", Cost: 1, Mode: "free"})
		b.fails(err, ledger.Invalid, "mode")
		_, err = b.Settle(b.Context(), ledger.Report{Job: "j", Outcome: ledger.Failed, Source: ledger.Sweeper})
		b.fails(err, ledger.Invalid, "source")
		for _, limit := range []int{-1, 0, ledger.PageMax + 1} {
			_, err = b.Sweep(b.Context(), limit)
			b.fails(err, ledger.Invalid, "limit")
		}
		b.same(b.query(`SELECT COUNT(*) FROM entries`), []string{"1"})
	})
}
