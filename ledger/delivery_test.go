package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// TestEventsHaveDeliveries: an event is for the endpoints that are enabled and take its type when it is
// written, whatever the job is called.
func TestEventsHaveDeliveries(t *testing.T) {
	for _, job := range []string{"j", "conflict:j:7", "a/b c", "Ünï%_", strings.Repeat("x", 255)} {
		eachWorkbench(t, func(b *workbench) {
			b.give("g", 9)
			b.endpoint("https://all.example")
			b.endpoint("https://some.example", "job.timed_out", "job.conflict")
			off := b.endpoint("https://off.example")
			_, err := b.DisableEndpoint(b.Context(), off.ID, "not wanted")
			b.ok(err)
			b.ok(b.create(job, 1, ledger.ModeHold))
			b.settle("won failed 1 0", job, ledger.Failed)
			b.settle("conflict failed 1 0", job, ledger.Completed)
			b.endpoint("https://late.example")
			b.settle("conflict failed 1 0", job, ledger.Canceled)
			b.same(b.query(`
				SELECT d.event_id || ' ' || d.n || ' ' || p.url FROM deliveries d JOIN endpoints p ON p.id = d.endpoint_id
				ORDER BY d.n, p.url`), []string{
				"settled:" + job + " 0 https://all.example",
				"conflict:" + job + ":1 1 https://all.example", "conflict:" + job + ":1 1 https://some.example",
				"conflict:" + job + ":2 2 https://all.example", "conflict:" + job + ":2 2 https://late.example",
				"conflict:" + job + ":2 2 https://some.example",
			})
		})
	}
}

// TestB138OrderPerJob: of a job only the first event that is on its way to an endpoint is given to a
// sender, and a dead one keeps no other.
func TestB138OrderPerJob(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.endpoint("https://a.example")
		for _, job := range []string{"j", "k"} {
			b.ok(b.create(job, 1, ledger.ModeHold))
			b.settle("won failed 1 0", job, ledger.Failed)
			b.settle("conflict failed 1 0", job, ledger.Completed)
			b.settle("conflict failed 1 0", job, ledger.Canceled)
		}
		both := b.claim(9, "settled:j to https://a.example", "settled:k to https://a.example")
		b.claim(9)
		b.answer(both[0], 500, time.Minute)
		if d := b.answer(both[1], 500); d.Status != ledger.DeliveryDead || d.DoneAt == nil || *d.LastStatus != 500 {
			b.Fatalf("%+v", d)
		}
		next := b.claim(9, "conflict:"+both[1].Job+":1 to https://a.example")
		if d := b.answer(next[0], 200); d.Status != ledger.DeliveryDelivered || d.LastError != "" {
			b.Fatalf("%+v", d)
		}
		b.answer(b.claim(9, "conflict:"+both[1].Job+":2 to https://a.example")[0], 200)
		b.claim(9)
		b.at(time.Minute)
		b.answer(b.claim(9, "settled:"+both[0].Job+" to https://a.example")[0], 200)
		b.claim(9, "conflict:"+both[0].Job+":1 to https://a.example")
	})
}

// TestDeliveryLease: what is not finished in time is given again, and its late answer changes nothing.
func TestDeliveryLease(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.endpoint("https://a.example")
		b.ok(b.create("j", 1, ledger.ModeHold))
		b.settle("won failed 1 0", "j", ledger.Failed)
		first := b.claim(9, "settled:j to https://a.example")[0]
		b.at(time.Minute - 1)
		b.claim(9)
		b.at(time.Minute)
		second := b.claim(9, "settled:j to https://a.example")[0]
		if second.Tries != 2 || second.Lease == first.Lease {
			b.Fatalf("%+v", second)
		}
		late := ledger.DeliveryAnswer{
			Event: "settled:j", Endpoint: first.Endpoint, Lease: first.Lease, Delivered: true, Status: 200,
		}
		b.unchanged(func() {
			_, err := b.FinishDelivery(b.Context(), late)
			b.fails(err, ledger.NotAllowed)
		})
		b.answer(second, 200)
		b.unchanged(func() {
			late.Lease = second.Lease
			_, err := b.FinishDelivery(b.Context(), late)
			b.fails(err, ledger.NotAllowed)
		})
		late.Event = "settled:nobody"
		_, err := b.FinishDelivery(b.Context(), late)
		b.fails(err, ledger.NotFound)
	})
}

// TestClaimIsFair: a sender gets a few of each endpoint and no more, however many are due.
func TestClaimIsFair(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 99)
		b.endpoint("https://slow.example")
		settle := func(from, to int) {
			for i := from; i < to; i++ {
				job := fmt.Sprint("j", i)
				b.ok(b.create(job, 1, ledger.ModeHold))
				b.settle("won failed 1 0", job, ledger.Failed)
				b.at(time.Duration(i+1) * time.Millisecond)
			}
		}
		settle(0, 9)
		b.endpoint("https://fast.example")
		settle(9, 10)
		list := b.claim(99, "settled:j0 to https://slow.example", "settled:j1 to https://slow.example",
			"settled:j2 to https://slow.example", "settled:j3 to https://slow.example",
			"settled:j9 to https://fast.example")
		b.claim(99)
		b.answer(list[0], 200)
		b.claim(99, "settled:j4 to https://slow.example")
		b.at(10 * time.Minute) // all leases ended
		b.claim(1, "settled:j5 to https://slow.example")
	})
}

// TestPausedAndDisabled: an endpoint that asked for a pause, or is disabled, gets nothing until then, and
// then what waited.
func TestPausedAndDisabled(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		e := b.endpoint("https://a.example")
		for _, job := range []string{"j", "k"} {
			b.ok(b.create(job, 1, ledger.ModeHold))
			b.settle("won failed 1 0", job, ledger.Failed)
		}
		d := b.claim(1, "settled:j to https://a.example")[0]
		until := ledger.At(start.Add(time.Hour))
		for _, pause := range []ledger.Time{until, until - 1} { // the longer pause stays
			_, err := b.FinishDelivery(b.Context(), ledger.DeliveryAnswer{
				Event: d.Event.ID, Endpoint: d.Endpoint, Lease: d.Lease, Status: 429, Error: "slow down",
				RetryAt: ledger.At(start), PauseTill: pause,
			})
			if err != nil && ledger.CodeOf(err) != ledger.NotAllowed {
				b.Fatal(err)
			}
		}
		b.at(time.Hour - 1)
		b.claim(9)
		b.at(time.Hour)
		_, err := b.DisableEndpoint(b.Context(), e.ID, "HTTP 410")
		b.ok(err)
		b.claim(9)
		waits, err := b.Backlog(b.Context())
		b.ok(err)
		if waits.Pending != 0 || waits.OldestPending != nil {
			b.Fatalf("%+v", waits)
		}
		_, err = b.EnableEndpoint(b.Context(), e.ID)
		b.ok(err)
		b.claim(9, "settled:j to https://a.example", "settled:k to https://a.example")
	})
}

func TestBacklog(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.served()
		for _, job := range []string{"taken", "lost", "new"} {
			b.ok(b.create(job, 1, ledger.ModeHold))
		}
		for _, job := range []string{"taken", "lost"} {
			_, err := b.Submit(b.Context(), job, "p")
			b.ok(err)
		}
		_, err := b.Accepted(b.Context(), "taken", 1, "u1")
		b.ok(err)
		got, err := b.Backlog(b.Context())
		b.ok(err)
		oldest := ledger.At(start)
		if got.OldestPending == nil || *got.OldestPending != oldest {
			b.Fatalf("%+v", got)
		}
		got.OldestPending = nil
		if want := (ledger.Backlog{Pending: 3, Dead: 1, Polls: 1, Open: 3, Reconcile: 1}); got != want {
			b.Fatalf("%+v, want %+v", got, want)
		}
	})
}

func TestDeliveriesRefused(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for _, c := range []struct {
			field string
			limit int
			lease time.Duration
		}{
			{"limit", 0, time.Minute}, {"limit", ledger.PageMax + 1, time.Minute},
			{"lease", 1, 0}, {"lease", 1, 2 * time.Hour},
		} {
			_, err := b.ClaimDeliveries(b.Context(), c.limit, c.lease)
			b.fails(err, ledger.Invalid, c.field)
			_, err = b.ClaimPolls(b.Context(), nil, c.limit, c.lease)
			b.fails(err, ledger.Invalid, c.field)
		}
		good := ledger.DeliveryAnswer{Event: "e", Endpoint: "p", Lease: "l"}
		for field, spoil := range map[string]func(*ledger.DeliveryAnswer){
			"event":      func(a *ledger.DeliveryAnswer) { a.Event = "" },
			"endpoint":   func(a *ledger.DeliveryAnswer) { a.Endpoint = "\x00" },
			"lease":      func(a *ledger.DeliveryAnswer) { a.Lease = "" },
			"status":     func(a *ledger.DeliveryAnswer) { a.Status = 99 },
			"error":      func(a *ledger.DeliveryAnswer) { a.Error = "\xff" },
			"retry_at":   func(a *ledger.DeliveryAnswer) { a.RetryAt = -1 },
			"pause_till": func(a *ledger.DeliveryAnswer) { a.PauseTill = 1 << 62 },
		} {
			a := good
			spoil(&a)
			_, err := b.FinishDelivery(b.Context(), a)
			b.fails(err, ledger.Invalid, field)
		}
	})
}

// TestServerRules: the tables refuse what the operations never do.
func TestServerRules(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.served()
		b.refuses(
			`DELETE FROM tokens`, `DELETE FROM endpoints`, `DELETE FROM deliveries`,
			`UPDATE tokens SET hash = (SELECT hash FROM tokens WHERE name = 'old') WHERE name = 'app'`,
			`UPDATE tokens SET scope = 'operator'`, `UPDATE tokens SET revoked_at = NULL`,
			`UPDATE endpoints SET url = 'https://other.example'`, `UPDATE endpoints SET types = ''`,
			`UPDATE deliveries SET n = 9`, `UPDATE deliveries SET job_id = 's2'`,
			`UPDATE deliveries SET status = 'dead' WHERE status = 'delivered'`,
			`UPDATE deliveries SET status = 'pending', done_at = NULL WHERE status = 'delivered'`,
			`UPDATE deliveries SET tries = 0 WHERE status = 'dead'`,
			`UPDATE deliveries SET done_at = 1 WHERE status = 'pending'`,
			`UPDATE deliveries SET lease = NULL WHERE lease IS NOT NULL`,
			`INSERT INTO deliveries SELECT 'settled:nobody', id, 'j', 0, 'pending', 0, 0, NULL, NULL, NULL, '', 0, NULL
				FROM endpoints`,
			`INSERT INTO polls (job_id, attempt, provider, next_at, tries, last_error)
				VALUES ('nobody', 1, 'p', 0, 0, '')`,
		)
	})
}
