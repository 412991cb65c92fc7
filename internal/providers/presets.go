package providers

import (
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

// presets are what is known of providers. An entry of the file begins as its preset, and what it says
// itself comes on top.
//
// Replicate: replicate.com/docs/topics/webhooks, and its statuses .../topics/predictions/lifecycle.
// fal: docs.fal.ai/model-apis/model-endpoints/webhooks. Its status address says COMPLETED of a request that
// failed, too, and is different for each model, so that there is nothing to poll by default.
func presets() map[string]entry {
	return map[string]entry{
		"replicate": {
			Scheme: string(webhook.Standard),
			Body:   pointers{ID: "/id", Status: "/status"},
			Outcomes: map[string]ledger.Outcome{
				"succeeded": ledger.Completed,
				"failed":    ledger.Failed,
				"canceled":  ledger.Canceled,
				"aborted":   ledger.TimedOut,
			},
			Poll: &pollEntry{
				URL:    "https://api.replicate.com/v1/predictions/{id}",
				Header: "Authorization: Bearer {secret}",
			},
		},
		"fal": {
			Scheme: string(webhook.Ed25519),
			Signature: signatureEntry{
				Header:    "X-Fal-Webhook-Signature",
				Encoding:  string(webhook.Hex),
				Timestamp: "X-Fal-Webhook-Timestamp",
				Content: "{header:X-Fal-Webhook-Request-Id}\n{header:X-Fal-Webhook-User-Id}\n" +
					"{header:X-Fal-Webhook-Timestamp}\n{body_sha256}",
			},
			Body:     pointers{ID: "/request_id", Status: "/status"},
			Outcomes: map[string]ledger.Outcome{"OK": ledger.Completed, "ERROR": ledger.Failed},
		},
	}
}
