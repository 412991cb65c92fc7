package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// Place is where a row stands in imported books.
type Place struct {
	Table string `json:"table,omitempty"` // empty if the books have one table
	Line  int64  `json:"line"`            // from 1; of a database's table, the number of the row
}

// String gives "line 3", or "jobs line 3".
func (p Place) String() string {
	if p.Table == "" {
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("%s line %d", p.Table, p.Line)
}

// BookBalance says what an owner had available in the end.
type BookBalance struct {
	Place     `json:"-"`
	Owner     string
	Available int64 // 0 to AmountMax
}

// Check refuses a row that no ledger can hold. Errors: INVALID.
func (b *BookBalance) Check() error {
	return firstError(CheckID("owner", b.Owner), checkCount("available", b.Available))
}

// BookLot is credits granted together, and where they were in the end.
type BookLot struct {
	Place       `json:"-"`
	Owner       string
	Ref         string // the books' own id of the lot
	Available   int64  // the four together are 1 to AmountMax
	Held        int64
	Used        int64
	Expired     int64
	Priority    int64
	EffectiveAt *Time
	ExpiresAt   *Time // may have passed: what is available in it expires
}

// The jobs that stand for credits that no job in the books explains.
const (
	usedPrefix = "import:used:"
	heldPrefix = "import:held:"
)

// Check refuses a row that no ledger can hold. Errors: INVALID.
func (l *BookLot) Check() error {
	if len(l.Ref) > idMax-len(usedPrefix) {
		return InvalidField("ref", "has %d bytes; it takes 1 to %d", len(l.Ref), idMax-len(usedPrefix))
	}
	if err := firstError(
		CheckID("owner", l.Owner), CheckID("ref", l.Ref),
		checkCount("available", l.Available), checkCount("held", l.Held),
		checkCount("used", l.Used), checkCount("expired", l.Expired), checkCount("priority", l.Priority),
		checkMoment("effective_at", l.EffectiveAt), checkMoment("expires_at", l.ExpiresAt),
	); err != nil {
		return err
	}
	if l.EffectiveAt != nil && (&Lot{ExpiresAt: l.ExpiresAt}).lapsed(*l.EffectiveAt) {
		return InvalidField("effective_at", "%s is not before the expiry, %s", l.EffectiveAt, l.ExpiresAt)
	}
	return checkAmount("amount", l.amount())
}

func (l *BookLot) amount() int64 { return l.Available + l.Held + l.Used + l.Expired }

// BookJob is one job, with the refunds that the books have for its id.
type BookJob struct {
	Place       `json:"-"`
	ID          string
	Owner       string
	Cost        int64 // 1 to AmountMax
	Mode        Mode  // empty: charge where the books have a balance; where they have lots, as those tell
	Status      Status
	SettledCost *int64     // what a completed job cost in the end; nil: its cost less its refunds
	Submission  Submission // empty: unknown
	Provider    string
	UpstreamID  string
	Evidence    string // required for a rejected submission
	Reason      string
	CreatedAt   *Time        // nil: not known
	Refunds     []BookRefund `json:"-"`
}

// Check refuses a row that no ledger can hold. Errors: INVALID.
func (j *BookJob) Check() error {
	statuses := []Status{Pending, Processing}
	for _, o := range Outcomes {
		statuses = append(statuses, Status(o))
	}
	if err := firstError(
		CheckID("id", j.ID), CheckID("owner", j.Owner), checkAmount("cost", j.Cost),
		checkOneOf("mode", j.Mode, "", ModeHold, ModeCharge),
		checkOneOf("status", j.Status, statuses...),
		checkOneOf("submission", j.Submission, "", SubmissionNone, SubmissionSubmitting, SubmissionAccepted,
			SubmissionRejected, SubmissionUncertain, SubmissionUnknown),
		checkText("evidence", j.Evidence), checkText("reason", j.Reason), checkMoment("created_at", j.CreatedAt),
	); err != nil {
		return err
	}
	for _, id := range []struct{ field, value string }{{"provider", j.Provider}, {"upstream_id", j.UpstreamID}} {
		if id.value == "" {
			continue
		}
		if err := CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	switch {
	case j.SettledCost != nil && (*j.SettledCost < 0 || *j.SettledCost > j.Cost):
		return InvalidField("settled_cost", "%d is out of range; it takes 0 to the cost, %d",
			*j.SettledCost, j.Cost)
	case j.SettledCost != nil && *j.SettledCost > 0 && j.Status != Status(Completed):
		return InvalidField("settled_cost",
			"only a completed job costs something in the end; this one is %s", j.Status)
	case j.Submission == SubmissionRejected && j.Evidence == "":
		return InvalidField("evidence", "is empty; a rejected submission needs it, or else it is unknown")
	case j.Submission == SubmissionNone && j.Provider+j.UpstreamID != "":
		return InvalidField("submission", "is none and the job has a provider or an upstream id")
	}
	return checkText("evidence with the upstream id", j.evidence())
}

// handle tells whether the job can be found by its upstream id. Without a provider nobody knows whose
// id it is, and two jobs may well have the same one.
func (j *BookJob) handle() bool { return j.UpstreamID != "" && j.Provider != "" }

// evidence is that of the books, with an upstream id that is no handle.
func (j *BookJob) evidence() string {
	if j.UpstreamID == "" || j.handle() {
		return j.Evidence
	}
	text := fmt.Sprintf("upstream id %q of an unknown provider", j.UpstreamID)
	if j.Evidence != "" {
		text = j.Evidence + "; " + text
	}
	return text
}

// submission is what the books know of it. Without a word, both handles say that it was accepted.
func (j *BookJob) submission() Submission {
	switch {
	case j.Submission != "":
		return j.Submission
	case j.Provider != "" && j.UpstreamID != "":
		return SubmissionAccepted
	}
	return SubmissionUnknown
}

// metadata marks the job as imported, with a digest of what the books said, so that a repetition can
// be compared after the job has moved on.
func (j *BookJob) metadata(refunds []BookRefund) JSON {
	b := make(encoding, 0, 256)
	for _, s := range []string{
		"jobledger imported job 1", j.ID, j.Owner, string(j.Mode), string(j.Status), string(j.submission()),
		j.Provider, j.UpstreamID, j.Evidence, j.Reason,
	} {
		b.text(s)
	}
	b.number(j.Cost)
	b.optionalTime((*Time)(j.SettledCost))
	b.optionalTime(j.CreatedAt)
	refunds = slices.Clone(refunds) // in the order of their refs, whatever the order of the rows
	slices.SortFunc(refunds, func(a, b BookRefund) int { return cmp.Compare(a.Ref, b.Ref) })
	for _, r := range refunds {
		b.text(r.Ref)
		b.number(r.Amount)
	}
	sum := sha256.Sum256(b)
	return mustJSON(map[string]string{"imported": hex.EncodeToString(sum[:16])})
}

// BookRefund is what the books returned for a job.
type BookRefund struct {
	Place  `json:"-"`
	Ref    string // the books' own id of the refund
	Job    string // empty: the books do not say
	Owner  string // empty: the job's
	Amount int64  // 0: the whole cost of the job
}

// Check refuses a row that no ledger can hold. Errors: INVALID.
func (r *BookRefund) Check() error {
	return firstError(CheckID("ref", r.Ref), checkCount("amount", r.Amount),
		checkOptionalID("job", r.Job), checkOptionalID("owner", r.Owner))
}

// checkCount is checkAmount where nothing is an amount too.
func checkCount(field string, n int64) error {
	if n == 0 {
		return nil
	}
	return checkAmount(field, n)
}

func checkMoment(field string, t *Time) error {
	if t == nil {
		return nil
	}
	return When{given: true, at: *t}.checkPast(field)
}
