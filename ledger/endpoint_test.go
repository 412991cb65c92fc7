package ledger_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
)

func TestEndpoints(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		r := ledger.EndpointRequest{
			URL: "https://a.example/hook?x=1", Secret: hookSecret,
			Types: []string{"job.failed", "job.completed", "job.failed"},
		}
		made, err := b.AddEndpoint(b.Context(), r)
		b.ok(err)
		if made.Replayed || !slices.Equal(made.Endpoint.Types, []string{"job.completed", "job.failed"}) {
			b.Fatalf("%+v", made)
		}
		again, err := b.AddEndpoint(b.Context(), r)
		b.ok(err)
		if !again.Replayed || again.Endpoint.ID != made.Endpoint.ID {
			b.Fatalf("%+v", again)
		}
		other := ledger.EndpointRequest{URL: r.URL, Secret: hookSecret2}
		_, err = b.AddEndpoint(b.Context(), other)
		b.fails(err, ledger.IdempotencyMismatch, "secret", "types")

		e, err := b.DisableEndpoint(b.Context(), made.Endpoint.ID, "HTTP 410")
		b.ok(err)
		b.at(1)
		second, err := b.DisableEndpoint(b.Context(), e.ID, "again")
		b.ok(err)
		if second.DisabledReason != "HTTP 410" || *second.DisabledAt != *e.DisabledAt {
			b.Fatalf("%+v, and then %+v", e, second)
		}
		for range 2 {
			e, err = b.EnableEndpoint(b.Context(), e.ID)
			b.ok(err)
			if e.DisabledAt != nil || e.DisabledReason != "" {
				b.Fatalf("%+v", e)
			}
		}
		b.endpoint("http://127.0.0.1:8080")
		list, err := b.Endpoints(b.Context())
		b.ok(err)
		text, err := json.Marshal(list)
		b.ok(err)
		if len(list) != 2 || list[0].URL != r.URL || len(list[1].Types) != 0 ||
			strings.Contains(string(text), hookSecret[6:]) || !strings.Contains(string(text), `"types":[]`) {
			b.Fatalf("%s", text)
		}
	})
}

// TestRotateEndpoint: two keys sign, the newest first, and a third replaces the oldest.
func TestRotateEndpoint(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 9)
		e := b.endpoint("https://a.example")
		third := "whsec_" + strings.Repeat("A", 32)
		for i, step := range []struct {
			secret string
			want   []string
		}{
			{hookSecret, []string{hookSecret}},
			{hookSecret2, []string{hookSecret2, hookSecret}},
			{hookSecret2, []string{hookSecret2, hookSecret}},
			{third, []string{third, hookSecret2}},
		} {
			_, err := b.RotateEndpoint(b.Context(), e.ID, step.secret)
			b.ok(err)
			job := string(rune('a' + i))
			b.ok(b.create(job, 1, ledger.ModeHold))
			b.settle("won failed 1 0", job, ledger.Failed)
			b.same(b.claim(1, "settled:"+job+" to https://a.example")[0].Secrets, step.want)
		}
	})
}

func TestEndpointsRefused(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for _, url := range []string{
			"", "a.example", "ftp://a.example", "https://", "https:///x", "https://u:p@a.example",
			"https://a.example/#x", "https://a.example/\x00", "https://a.example/ x", "https://ä.example",
			"https://a.example/" + strings.Repeat("x", 2048),
		} {
			_, err := b.AddEndpoint(b.Context(), ledger.EndpointRequest{URL: url, Secret: hookSecret})
			b.fails(err, ledger.Invalid, "url")
		}
		for _, secret := range []string{
			"", "whsec_", hookSecret[6:], hookSecret + "=", "whsec_" + strings.Repeat("A", 28),
			"whsec_" + strings.Repeat("A", 88), hookSecret + " " + hookSecret2, hookSecret + "\n",
		} {
			_, err := b.AddEndpoint(b.Context(), ledger.EndpointRequest{URL: "https://a.example", Secret: secret})
			b.fails(err, ledger.Invalid, "secret")
		}
		_, err := b.AddEndpoint(b.Context(), ledger.EndpointRequest{
			URL: "https://a.example", Secret: hookSecret, Types: []string{"job.started"},
		})
		b.fails(err, ledger.Invalid, "types")
		e := b.endpoint("https://a.example")
		_, err = b.RotateEndpoint(b.Context(), e.ID, "short")
		b.fails(err, ledger.Invalid, "secret")
		_, err = b.DisableEndpoint(b.Context(), e.ID, "")
		b.fails(err, ledger.Invalid, "reason")
		_, err = b.EnableEndpoint(b.Context(), "nowhere")
		b.fails(err, ledger.NotFound)
		_, err = b.EnableEndpoint(b.Context(), "")
		b.fails(err, ledger.Invalid, "id")
	})
}
