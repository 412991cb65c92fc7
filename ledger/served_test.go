package ledger_test

import (
	"fmt"
	"slices"
	"time"

	"jobledger/ledger"
)

// hookSecret and hookSecret2 are keys of 24 bytes and more.
const (
	hookSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	hookSecret2 = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD5tpUKvI="
)

// endpoint adds an endpoint.
func (b *workbench) endpoint(url string, types ...string) ledger.Endpoint {
	b.Helper()
	r, err := b.AddEndpoint(b.Context(), ledger.EndpointRequest{URL: url, Secret: hookSecret, Types: types})
	b.ok(err)
	return r.Endpoint
}

// claim claims deliveries for a minute and checks which: "event to url".
func (b *workbench) claim(limit int, want ...string) []ledger.ClaimedDelivery {
	b.Helper()
	list, err := b.ClaimDeliveries(b.Context(), limit, time.Minute)
	b.ok(err)
	got := []string{}
	for _, d := range list {
		got = append(got, d.Event.ID+" to "+d.URL)
		if d.Event.Job != d.Job || d.Event.Payload == "" || len(d.Secrets) == 0 || d.Lease == "" {
			b.Fatalf("claimed %+v", d)
		}
	}
	slices.Sort(got)
	b.same(got, want)
	return list
}

// answer finishes a try with an HTTP status: 2xx delivers, anything else is tried again after a time, or
// never if there is none.
func (b *workbench) answer(d ledger.ClaimedDelivery, status int, again ...time.Duration) ledger.Delivery {
	b.Helper()
	a := ledger.DeliveryAnswer{
		Event: d.Event.ID, Endpoint: d.Endpoint, Lease: d.Lease, Status: status, Delivered: status/100 == 2,
	}
	if !a.Delivered {
		a.Error = fmt.Sprint("the answer was ", status)
	}
	if len(again) == 1 {
		a.RetryAt = ledger.At(start.Add(again[0]))
	}
	done, err := b.FinishDelivery(b.Context(), a)
	b.ok(err)
	return done
}

// deliveries checks all deliveries of a filter: "event to url: status, tries".
func (b *workbench) deliveries(f ledger.DeliveryFilter, want ...string) {
	b.Helper()
	f.Limit = ledger.PageMax
	list, err := b.Deliveries(b.Context(), f)
	b.ok(err)
	var got []string
	for _, d := range list {
		got = append(got, fmt.Sprintf("%s to %s: %s, %d", d.Event, d.URL, d.Status, d.Tries))
	}
	b.same(got, want)
}

// served leaves something of every kind in the tables of the server: tokens, endpoints, and deliveries in
// every state, of two jobs that are settled and one that was reported twice.
func (b *workbench) served() {
	b.Helper()
	for _, name := range []string{"app", "old"} {
		_, err := b.CreateToken(b.Context(), name, ledger.ScopeWrite)
		b.ok(err)
	}
	_, err := b.RevokeToken(b.Context(), "old")
	b.ok(err)
	first := b.endpoint("https://one.example/hook")
	b.endpoint("https://two.example/hook", "job.failed", "job.conflict")
	gone := b.endpoint("https://gone.example/hook")
	_, err = b.DisableEndpoint(b.Context(), gone.ID, "HTTP 410")
	b.ok(err)
	_, err = b.RotateEndpoint(b.Context(), first.ID, hookSecret2)
	b.ok(err)
	for _, job := range []string{"s1", "s2"} {
		b.ok(b.create(job, 1, ledger.ModeHold))
	}
	b.settle("won failed 1 0", "s1", ledger.Failed)
	b.settle("conflict failed 1 0", "s1", ledger.Completed)
	const one, two = "settled:s1 to https://one.example/hook", "settled:s1 to https://two.example/hook"
	for _, d := range b.claim(9, one, two) {
		if d.Endpoint == first.ID {
			b.answer(d, 204)
		} else {
			b.answer(d, 500)
		}
	}
	b.settle("won completed 0 1", "s2", ledger.Completed)
	if list, err := b.ClaimDeliveries(b.Context(), 1, time.Minute); err != nil || len(list) != 1 {
		b.Fatal(list, err)
	}
}
