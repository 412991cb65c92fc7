package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

func TestEventPages(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 99)
		var want, failed []string
		for i := range 7 {
			job := fmt.Sprint("j", 6-i) // the order of the times is not that of the ids
			b.ok(b.create(job, 1, ledger.ModeHold))
			outcome, told := ledger.Completed, "won completed 0 1"
			if i%2 == 1 {
				outcome, told = ledger.Failed, "won failed 1 0"
				failed = append(failed, "settled:"+job)
			}
			if i != 3 { // two at the same time
				b.at(time.Duration(i) * time.Second)
			}
			b.settle(told, job, outcome)
			want = append(want, "settled:"+job)
		}
		want[2], want[3] = want[3], want[2]
		b.at(time.Minute)
		b.settle("conflict completed 0 1", "j6", ledger.Failed)
		want = append(want, "conflict:j6:1")
		for _, limit := range []int{1, 2, 100} {
			b.same(b.events(ledger.EventFilter{Limit: limit}), want)
			b.same(b.events(ledger.EventFilter{Limit: limit, Type: "job.failed"}), failed)
			b.same(b.events(ledger.EventFilter{Limit: limit, Job: "j6"}), []string{"settled:j6", "conflict:j6:1"})
			both := ledger.EventFilter{Limit: limit, Job: "j6", Type: "job.conflict"}
			b.same(b.events(both), []string{"conflict:j6:1"})
		}
	})
}

// events gives the ids of all events of a filter, page by page.
func (b *workbench) events(f ledger.EventFilter) (ids []string) {
	b.Helper()
	for {
		list, err := b.Events(b.Context(), f)
		b.ok(err)
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		if len(list) < f.Limit {
			return ids
		}
		f.After = list[len(list)-1].ID
	}
}

func TestDeliveryPages(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.served()
		b.ok(b.create("a/b", 1, ledger.ModeHold)) // its event's id has a slash
		b.settle("won completed 0 1", "a/b", ledger.Completed)
		endpoints, err := b.Endpoints(b.Context())
		b.ok(err)
		one, two := endpoints[0].ID, endpoints[1].ID
		all := []string{
			"conflict:s1:1 pending", "conflict:s1:1 pending", "settled:a/b pending", "settled:s1 delivered",
			"settled:s1 dead", "settled:s2 pending",
		}
		for i := range 3 {
			b.same(b.pages(ledger.DeliveryFilter{Limit: i + 1}), all)
		}
		b.same(b.pages(ledger.DeliveryFilter{Limit: 1, Status: ledger.DeliveryDead}), []string{"settled:s1 dead"})
		b.same(b.pages(ledger.DeliveryFilter{Limit: 1, Endpoint: two}),
			[]string{"conflict:s1:1 pending", "settled:s1 dead"})
		b.same(b.pages(ledger.DeliveryFilter{Limit: 1, Event: "settled:s1", Endpoint: one}),
			[]string{"settled:s1 delivered"})
	})
}

// pages gives all deliveries of a filter, page by page.
func (b *workbench) pages(f ledger.DeliveryFilter) (lines []string) {
	b.Helper()
	for {
		list, err := b.Deliveries(b.Context(), f)
		b.ok(err)
		for _, d := range list {
			lines = append(lines, fmt.Sprint(d.Event, " ", d.Status))
		}
		if len(list) < f.Limit {
			return lines
		}
		f.After = list[len(list)-1].Key()
	}
}

// TestReplay: what was delivered or is dead begins again, and what was never for an endpoint can be.
func TestReplay(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		one := b.endpoint("https://one.example")
		b.endpoint("https://two.example", "job.failed")
		for _, job := range []string{"j", "k"} {
			b.ok(b.create(job, 1, ledger.ModeHold))
		}
		b.settle("won failed 1 0", "j", ledger.Failed)
		list := b.claim(9, "settled:j to https://one.example", "settled:j to https://two.example")
		b.answer(list[0], 500)
		b.answer(list[1], 204)
		third := b.endpoint("https://three.example", "job.conflict")
		b.endpoint("https://four.example")
		off := b.endpoint("https://off.example")
		_, err := b.DisableEndpoint(b.Context(), off.ID, "HTTP 410")
		b.ok(err)
		b.claim(9)
		again, err := b.ReplayEvent(b.Context(), "settled:j", "")
		b.ok(err)
		if len(again) != 3 || again[0].DoneAt != nil {
			b.Fatalf("%+v", again)
		}
		b.claim(9, "settled:j to https://four.example", "settled:j to https://one.example",
			"settled:j to https://two.example")
		b.unchanged(func() { // they are with a sender
			_, err := b.ReplayEvent(b.Context(), "settled:j", "")
			b.ok(err)
		})
		again, err = b.ReplayEvent(b.Context(), "settled:j", third.ID) // though it takes other types
		b.ok(err)
		if len(again) != 1 || again[0].Endpoint != third.ID {
			b.Fatalf("%+v", again)
		}
		b.settle("conflict failed 1 0", "j", ledger.Completed)
		again, err = b.ReplayEvent(b.Context(), "conflict:j:1", off.ID)
		b.ok(err)
		if len(again) != 1 || again[0].N != 1 {
			b.Fatalf("%+v", again)
		}
		_, err = b.ReplayEvent(b.Context(), "settled:nobody", "")
		b.fails(err, ledger.NotFound)
		_, err = b.ReplayEvent(b.Context(), "settled:j", "nowhere")
		b.fails(err, ledger.NotFound)
		_, err = b.ReplayEvent(b.Context(), "", one.ID)
		b.fails(err, ledger.Invalid, "event")
	})
}

// TestReplayAfterTheClockWasSetBack: a delivery is not older than its event all the same, as the audit of
// the workbench demands.
func TestReplayAfterTheClockWasSetBack(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		b.ok(b.create("j", 1, ledger.ModeHold))
		b.at(time.Hour)
		b.settle("won failed 1 0", "j", ledger.Failed)
		for now, want := range map[time.Duration]time.Duration{1: time.Hour, 2 * time.Hour: 2 * time.Hour} {
			b.at(now)
			late := b.endpoint(fmt.Sprint("https://", want, ".example"))
			again, err := b.ReplayEvent(b.Context(), "settled:j", late.ID)
			b.ok(err)
			if len(again) != 1 || again[0].CreatedAt != ledger.At(start.Add(want)) {
				b.Fatalf("%+v", again)
			}
		}
	})
}

// TestListsRefuse: a place in a list, or a name, that cannot be one is refused before any engine sees it.
func TestListsRefuse(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for _, bad := range []string{"a\x00b", "\xff", " a", strings.Repeat("a", 400)} {
			lists := map[string]error{}
			_, lists["jobs"] = b.Jobs(b.Context(), ledger.JobFilter{After: bad, Limit: 1})
			_, lists["unresolved"] = b.UnresolvedJobs(b.Context(), bad, 1)
			_, lists["entries"] = b.Entries(b.Context(), ledger.EntryFilter{After: bad, Limit: 1})
			_, lists["balances"] = b.Balances(b.Context(), bad, 1)
			_, lists["events"] = b.Events(b.Context(), ledger.EventFilter{After: bad, Limit: 1})
			_, lists["deliveries"] = b.Deliveries(b.Context(), ledger.DeliveryFilter{After: bad, Limit: 1})
			for _, err := range lists {
				b.fails(err, ledger.Invalid, "after")
			}
			_, err := b.Jobs(b.Context(), ledger.JobFilter{Owner: bad, Limit: 1})
			b.fails(err, ledger.Invalid, "owner")
			_, err = b.Entries(b.Context(), ledger.EntryFilter{Owner: bad, Limit: 1})
			b.fails(err, ledger.Invalid, "owner")
			_, err = b.Entries(b.Context(), ledger.EntryFilter{Job: bad, Limit: 1})
			b.fails(err, ledger.Invalid, "job")
			_, err = b.Events(b.Context(), ledger.EventFilter{Job: bad, Limit: 1})
			b.fails(err, ledger.Invalid, "job")
			_, err = b.Deliveries(b.Context(), ledger.DeliveryFilter{Event: bad, Limit: 1})
			b.fails(err, ledger.Invalid, "event")
			_, err = b.Deliveries(b.Context(), ledger.DeliveryFilter{Endpoint: bad, Limit: 1})
			b.fails(err, ledger.Invalid, "endpoint")
		}
		_, err := b.Events(b.Context(), ledger.EventFilter{After: "settled:nobody", Limit: 1})
		b.fails(err, ledger.NotFound)
		_, err = b.Events(b.Context(), ledger.EventFilter{Job: "nobody", Limit: 1})
		b.fails(err, ledger.NotFound)
		_, err = b.Events(b.Context(), ledger.EventFilter{Type: "job.started", Limit: 1})
		b.fails(err, ledger.Invalid, "type")
		_, err = b.Deliveries(b.Context(), ledger.DeliveryFilter{After: "nothing", Limit: 1})
		b.fails(err, ledger.Invalid, "after")
		_, err = b.Deliveries(b.Context(), ledger.DeliveryFilter{Status: "lost", Limit: 1})
		b.fails(err, ledger.Invalid, "status")
		_, err = b.Deliveries(b.Context(), ledger.DeliveryFilter{Event: "settled:nobody", Limit: 1})
		b.fails(err, ledger.NotFound)
		_, err = b.Deliveries(b.Context(), ledger.DeliveryFilter{Endpoint: "nowhere", Limit: 1})
		b.fails(err, ledger.NotFound)
	})
}
