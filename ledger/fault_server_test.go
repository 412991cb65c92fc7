package ledger_test

import (
	"context"
	"fmt"
	"time"

	"jobledger/ledger"
)

// What the operations of the server meet. The ids of the endpoints and the name of the leases are given,
// so that one call of an operation needs no other.
const (
	faultLease     = "the lease"
	faultEndpoints = `
		INSERT INTO endpoints (id, url, secret, types, created_at, disabled_at, disabled_reason)
		VALUES ('on', 'https://a.example', '` + hookSecret + `', '', 1, NULL, ''),
		       ('off', 'https://off.example', '` + hookSecret + `', '', 1, 1, 'not wanted')`
)

var faultLeases = []string{
	`UPDATE deliveries SET lease = '` + faultLease + `', lease_until = 1, tries = 1
		WHERE event_id = 'settled:done'`,
	`UPDATE deliveries SET status = 'dead', tries = 10, done_at = created_at WHERE event_id = 'settled:gone'`,
	`UPDATE polls SET lease = '` + faultLease + `', lease_until = 1, tries = 1 WHERE job_id = 'asked'`,
	fmt.Sprintf(`UPDATE polls SET next_at = %d WHERE job_id = 'later'`, ledger.At(faultTime.Add(time.Hour))),
}

// faultServerOperations are the write operations of the server, on the same database.
var faultServerOperations = []faultOperation{
	{"settled, polled and told of", "", faultSettle("taken", ledger.Failed, -1)},
	{"create token", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.CreateToken(ctx, "second", ledger.ScopeRead)
		return err
	}},
	{"revoke token", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.RevokeToken(ctx, "first")
		return err
	}},
	{"add endpoint", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.AddEndpoint(ctx, ledger.EndpointRequest{URL: "https://b.example", Secret: hookSecret})
		return err
	}},
	{"rotate endpoint", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.RotateEndpoint(ctx, "on", hookSecret2)
		return err
	}},
	{"disable endpoint", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.DisableEndpoint(ctx, "on", "not wanted")
		return err
	}},
	{"enable endpoint", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.EnableEndpoint(ctx, "off")
		return err
	}},
	{"claim deliveries", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.ClaimDeliveries(ctx, 9, time.Minute)
		return err
	}},
	{"finish delivery", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.FinishDelivery(ctx, ledger.DeliveryAnswer{
			Event: "settled:done", Endpoint: "on", Lease: faultLease, Status: 429, Error: "slow down",
			RetryAt: ledger.At(faultTime), PauseTill: ledger.At(faultTime.Add(time.Hour)),
		})
		return err
	}},
	{"replay event", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.ReplayEvent(ctx, "settled:gone", "")
		return err
	}},
	{"claim polls", "", func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.ClaimPolls(ctx, []string{"provider"}, 9, time.Minute)
		return err
	}},
	{"finish poll", "", func(ctx context.Context, l *ledger.Ledger) error {
		return l.FinishPoll(ctx, ledger.PollAnswer{
			Job: "asked", Lease: faultLease, NextAt: ledger.At(faultTime.Add(2 * time.Hour)),
		})
	}},
	{"wake poll", "", func(ctx context.Context, l *ledger.Ledger) error { return l.WakePoll(ctx, "later") }},
}
