package ledger

import (
	"encoding/hex"
	"encoding/json"
	"time"
)

// Kind is what an entry does; each kind fixes the two buckets that credits move between.
type Kind string

// The kinds of entries.
const (
	KindGrant   Kind = "grant"
	KindHold    Kind = "hold"
	KindConsume Kind = "consume"
	KindRelease Kind = "release"
	KindCharge  Kind = "charge"
	KindRefund  Kind = "refund"
	KindExpire  Kind = "expire"
	KindRevoke  Kind = "revoke"
)

// Mode says when a job is paid.
type Mode string

// The modes: ModeHold holds the cost at creation and consumes or releases it at the end; ModeCharge
// uses it at creation and refunds it if the job fails.
const (
	ModeHold   Mode = "hold"
	ModeCharge Mode = "charge"
)

// Status is where a job is in its life.
type Status string

// The statuses of an open job. The terminal ones are the outcomes.
const (
	Pending    Status = "pending"
	Processing Status = "processing"
)

// Outcome is how a job ended: a terminal status.
type Outcome string

// The outcomes.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed"
	Canceled  Outcome = "canceled"
	TimedOut  Outcome = "timed_out"
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{Completed, Failed, Canceled, TimedOut}

// Open reports whether a job with this status may still settle.
func (s Status) Open() bool { return s == Pending || s == Processing }

// Source is who reported.
type Source string

// The sources of reports.
const (
	Callback Source = "callback"
	Poll     Source = "poll"
	Operator Source = "operator"
	Sweeper  Source = "sweep"
)

// Submission is what is known of a job's current attempt.
type Submission string

// The submissions.
const (
	SubmissionNone       Submission = "none"
	SubmissionSubmitting Submission = "submitting"
	SubmissionAccepted   Submission = "accepted"
	SubmissionRejected   Submission = "rejected"
	SubmissionUncertain  Submission = "uncertain"
	SubmissionUnknown    Submission = "unknown"
)

// Verdict is what became of a report.
type Verdict string

// The verdicts.
const (
	Won       Verdict = "won"       // it settled the job
	Duplicate Verdict = "duplicate" // the job had ended that way already
	Conflict  Verdict = "conflict"  // the job had ended another way
	Stale     Verdict = "stale"     // it was not about the current attempt
	Refused   Verdict = "refused"   // the submission's state did not allow it
)

// Time is a moment in microseconds since 1970-01-01 UTC. Its JSON form is RFC 3339 in UTC.
type Time int64

// At makes a Time of a time.Time, dropping what is below a microsecond.
func At(t time.Time) Time { return Time(t.UnixMicro()) }

// String gives the time as RFC 3339 in UTC, always with six digits of a second, so that texts sort
// as times do.
func (t Time) String() string { return string(t.append(nil)) }

func (t Time) append(b []byte) []byte {
	return time.UnixMicro(int64(t)).UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z07:00")
}

// MarshalJSON writes the string form.
func (t Time) MarshalJSON() ([]byte, error) { return append(t.append([]byte{'"'}), '"'), nil }

// Hash is a SHA-256 sum. Its JSON form is lower-case hexadecimal.
type Hash []byte

// MarshalJSON writes the hexadecimal form.
func (h Hash) MarshalJSON() ([]byte, error) { return json.Marshal(hex.EncodeToString(h)) }

// JSON is a JSON object that the ledger stores and returns as it is. Empty means {}.
type JSON string

// MarshalJSON writes the object itself.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		j = "{}"
	}
	return []byte(j), nil
}
