package books

import (
	"strings"
)

// Maps lists the mappings of known schemas.
var Maps = []string{"seed1", "seed2", "seed3"}

// table is one table of a known schema.
type table struct {
	name     string
	required []string // columns
	optional []string
	// row gives the record that a row stands for; with an empty kind, none.
	row func(v values) *record
}

// values are the values of one row that are not empty.
type values map[string]string

// take gives the values under the names that they have in the books' own rows: "name" or "name=column".
func (v values) take(kind string, names ...string) *record {
	r := &record{kind: kind, mapped: true, values: make(map[string]string)}
	for _, name := range names {
		name, column, renamed := strings.Cut(name, "=")
		if !renamed {
			column = name
		}
		if text := v[column]; text != "" {
			r.values[name] = text
		}
	}
	return r
}

var mappings = map[string][]table{
	"seed1": {
		{name: "balances", required: []string{"owner", "credits"}, row: func(v values) *record {
			return v.take(balanceKind, "owner", "available=credits")
		}},
		{
			name:     "jobs",
			required: []string{"id", "owner", "charged_cost", "status"},
			optional: []string{"submission", "provider", "upstream_id", "evidence", "reason", "created_at"},
			row: func(v values) *record {
				r := v.take(jobKind, "id", "owner", "cost=charged_cost", "status", "submission", "provider",
					"upstream_id", "evidence", "reason", "created_at")
				r.values["mode"] = "charge"
				return r.moments("created_at")
			},
		},
		{name: "refunds", required: []string{"event_key", "owner", "amount"}, row: func(v values) *record {
			r := v.take(refundKind, "ref=event_key", "owner", "amount")
			return r.set("job", jobOf(v["event_key"]))
		}},
	},
	"seed2": {
		{
			name:     "credit",
			required: []string{"id", "user_id", "total", "used", "remaining", "held", "status"},
			optional: []string{"priority", "start_at", "end_at"},
			row:      creditRow,
		},
		{
			name:     "generation",
			required: []string{"id", "user_id", "credits_cost", "status"},
			optional: []string{"submission", "provider", "upstream_id", "evidence", "reason", "created_at"},
			row: func(v values) *record {
				r := v.take(jobKind, "id", "owner=user_id", "cost=credits_cost", "status", "submission",
					"provider", "upstream_id", "evidence", "reason", "created_at")
				return r.moments("created_at").word("status", map[string]string{
					"queued": "pending", "processing": "processing", "completing": "processing",
					"succeeded": "completed", "failed": "failed", "timeout": "timed_out",
				})
			},
		},
		{
			name:     "credit_transaction",
			required: []string{"generation_id", "type"},
			optional: []string{"id", "user_id", "amount"},
			row: func(v values) *record {
				if v["type"] != "refund" {
					return &record{}
				}
				r := v.take(refundKind, "ref=id", "job=generation_id", "owner=user_id", "amount")
				r.brief = true
				if v["id"] == "" {
					r.numbered = "refund:" + v["generation_id"] + ":"
				}
				return r
			},
		},
	},
	"seed3": {
		{name: "balances", required: []string{"userId", "balance"}, row: func(v values) *record {
			return v.take(balanceKind, "owner=userId", "available=balance")
		}},
		{
			name:     "jobs",
			required: []string{"id", "userId", "creditsReserved", "creditsActual", "status", "submissionOutcome"},
			optional: []string{"provider", "upstreamId", "errorCode", "errorMessage", "createdAt"},
			row:      asyncJobRow,
		},
		{
			name:     "transactions",
			required: []string{"id", "userId", "type", "amount"},
			optional: []string{"remainingAmount", "jobId"},
			row:      transactionRow,
		},
	},
}
