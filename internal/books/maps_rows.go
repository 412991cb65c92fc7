package books

import (
	"strconv"
	"strings"
	"time"

	"jobledger/ledger"
)

// creditRow maps a row of credits whose figures must agree with each other.
func creditRow(v values) *record {
	r := v.take(lotKind, "owner=user_id", "ref=id", "amount=total", "used", "held", "priority",
		"effective_at=start_at", "expires_at=end_at").moments("effective_at", "expires_at")
	remaining, held := r.number(v, "remaining"), r.number(v, "held")
	used, total := r.number(v, "used"), r.number(v, "total")
	left := remaining - held
	switch {
	case r.err != nil:
	case used+remaining != total:
		r.fail(ledger.InvalidField("total", "%d is not used %d + remaining %d", total, used, remaining))
	case left < 0:
		r.fail(ledger.InvalidField("held", "%d is more than remaining, %d", held, remaining))
	case v["status"] == "expired":
		r.set("expired", strconv.FormatInt(left, 10))
	case v["status"] == "active" || left == 0:
		r.set("available", strconv.FormatInt(left, 10))
	default:
		r.fail(ledger.InvalidField("status", "%.40q is not active or expired, and the row has %d credits left",
			v["status"], left))
	}
	return r
}

// asyncJobRow maps a job whose submission has an outcome: that it was rejected is evidence; nothing
// else about its end is.
func asyncJobRow(v values) *record {
	r := v.take(jobKind, "id", "owner=userId", "cost=creditsReserved", "status", "provider",
		"upstream_id=upstreamId", "reason=errorCode", "created_at=createdAt").moments("created_at")
	r.set("mode", "charge")
	r.word("status", map[string]string{
		"queued": "pending", "pending": "pending", "processing": "processing", "completed": "completed",
		"succeeded": "completed", "failed": "failed", "canceled": "canceled", "cancelled": "canceled",
		"timeout": "timed_out", "timed_out": "timed_out",
	})
	if status := r.values["status"]; status != "pending" && status != "processing" {
		r.set("settled_cost", v["creditsActual"])
	}
	switch outcome := v["submissionOutcome"]; {
	case outcome == "rejected":
		evidence := "submissionOutcome is rejected"
		if v["errorMessage"] != "" {
			evidence += ": " + v["errorMessage"]
		}
		r.set("submission", "rejected").set("evidence", evidence)
	case v["errorCode"] == "UPSTREAM_SUBMISSION_UNCERTAIN":
		r.set("submission", "uncertain").set("evidence", v["errorMessage"])
	case outcome == "accepted" || outcome == "uncertain" || outcome == "unknown":
		r.set("submission", outcome)
	case outcome != "":
		r.fail(ledger.InvalidField("submissionOutcome",
			"%.40q is not one of accepted, rejected, uncertain, unknown", outcome))
	}
	return r
}

// transactionRow maps a refund. What of it is spent is in the owner's balance already.
func transactionRow(v values) *record {
	if v["type"] != "REFUND" {
		return &record{}
	}
	r := v.take(refundKind, "ref=id", "owner=userId", "amount", "job=jobId")
	if v["jobId"] == "" {
		r.set("job", jobOf(v["id"]))
	}
	if v["remainingAmount"] == "" {
		return r
	}
	amount, remaining := r.number(v, "amount"), r.number(v, "remainingAmount")
	if r.err == nil && remaining > amount {
		r.fail(ledger.InvalidField("remainingAmount", "%d is more than the amount, %d", remaining, amount))
	}
	return r
}

// jobOf gives the job of a refund's deterministic id, or nothing.
func jobOf(id string) string {
	job, ok := strings.CutPrefix(id, "job-refund:")
	if !ok {
		return ""
	}
	return job
}

func (r *record) set(name, text string) *record {
	if text != "" {
		r.values[name] = text
	}
	return r
}

// word translates a word.
func (r *record) word(name string, words map[string]string) *record {
	known, ok := words[r.values[name]]
	if !ok {
		r.fail(ledger.InvalidField(name, "%.40q is unknown", r.values[name]))
	}
	return r.set(name, known)
}

// number reads a column that is an amount or 0.
func (r *record) number(v values, column string) int64 {
	n := record{values: v}
	count := n.count(column, true)
	if n.err != nil {
		r.fail(n.err)
	}
	return count
}

// moments rewrites times as databases write them, in UTC unless they say otherwise.
func (r *record) moments(names ...string) *record {
	for _, name := range names {
		for _, layout := range []string{
			time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07", "2006-01-02T15:04:05",
			time.DateTime, time.DateOnly,
		} {
			if t, err := time.Parse(layout, r.values[name]); err == nil {
				r.values[name] = t.Format(time.RFC3339Nano)
				break
			}
		}
	}
	return r
}
