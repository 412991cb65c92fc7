package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"jobledger/db"
)

// Story is all that the ledger knows of one job.
type Story struct {
	Job        Job         `json:"job"`
	Timeline   []Step      `json:"timeline"` // what happened, in order
	Open       []string    `json:"open"`     // what is still to come, as sentences; empty once the job is over
	Attempts   []Attempt   `json:"attempts"`
	Answers    []Answer    `json:"answers"`
	Reports    []ReportRow `json:"reports"`
	Lots       []Lot       `json:"lots"` // the lots that paid, and those that a refund made
	Entries    []Entry     `json:"entries"`
	Events     []Event     `json:"events"`
	Deliveries []Delivery  `json:"deliveries"` // of the events
}

// Step is one thing that happened to a job.
type Step struct {
	At    Time   `json:"at"`
	What  string `json:"what"` // created, attempt, report, settled, event, delivery, or the kind of an entry
	Text  string `json:"text"`
	phase int
	order int64 // within the phase
}

// The phases of a job's life. They follow each other whatever the clocks said.
const (
	phaseCreation = iota
	phaseOpen
	phaseSettlement
	phaseOver
)

// Explain tells the whole story of a job, at most PageMax rows of each kind. Its steps are ordered by
// what must come first and by the journal, and by the clock only where neither decides.
//
// Errors: INVALID; NOT_FOUND.
func (l *Ledger) Explain(ctx context.Context, job string) (Story, error) {
	if err := CheckID("job", job); err != nil {
		return Story{}, err
	}
	return read(ctx, l, func(tx *db.Tx) (Story, error) { return explain(tx, job) })
}

func explain(tx *db.Tx, job string) (Story, error) {
	j, err := mustFindJob(tx, job)
	if err != nil {
		return Story{}, err
	}
	s := Story{
		Job: *j, Timeline: []Step{}, Open: []string{}, Attempts: []Attempt{}, Answers: []Answer{},
		Reports: []ReportRow{}, Lots: []Lot{}, Events: []Event{},
		Deliveries: []Delivery{},
	}
	if s.Entries, err = entries(tx, EntryFilter{Job: job, Limit: PageMax}); err != nil {
		return Story{}, err
	}
	if err := firstError(
		tx.Select(&s.Attempts, attemptsQuery, job, PageMax),
		tx.Select(&s.Answers, answersQuery, job, PageMax),
		tx.Select(&s.Reports, reportsQuery, job, PageMax),
		tx.Select(&s.Lots, jobLotsQuery, append(jobKeys(job), PageMax)...),
		tx.Select(&s.Events, eventsQuery, append(jobEvents(job), PageMax)...),
		tx.Select(&s.Deliveries, storyDeliveriesQuery, append(jobEvents(job), PageMax)...),
	); err != nil {
		return Story{}, err
	}
	s.tell()
	s.addOpen()
	return s, nil
}

const (
	attemptsQuery = `
SELECT ` + attemptColumns + `
FROM attempts
WHERE job_id = ?
ORDER BY attempt
LIMIT ?`

	answersQuery = `
SELECT ` + answerColumns + `
FROM answers
WHERE job_id = ?
ORDER BY attempt, n
LIMIT ?`

	reportsQuery = `
SELECT job_id, attempt, source, outcome, upstream_id, verdict, count, first_at, last_at, detail
FROM reports
WHERE job_id = ?
ORDER BY first_at, source, outcome, verdict, attempt, upstream_id
LIMIT ?`

	jobLotsQuery = `
SELECT ` + lotColumns + `
FROM lots
WHERE id IN (SELECT p.lot_id
             FROM entries e
             JOIN postings p ON p.entry_id = e.id
             WHERE e.event_key IN (?, ?, ?, ?, ?) OR e.event_key > ? AND e.event_key < ? AND e.job_id = ?)
ORDER BY id
LIMIT ?`

	// The shortest id is that of the settlement; a longer number is a later conflict.
	eventsQuery = `
SELECT ` + eventColumns + `
FROM events
WHERE id = ? OR (id > ? AND id < ? AND job_id = ?)
ORDER BY LENGTH(id), id
LIMIT ?`
)

// tell makes the timeline.
func (s *Story) tell() {
	j := &s.Job
	s.step(phaseCreation, 0, j.CreatedAt, "created", "%s asked for it at a cost of %s, mode %s",
		j.Owner, credits(j.Cost), j.Mode)
	for i := range s.Entries {
		s.tellEntry(&s.Entries[i])
	}
	var latest Time
	for i := range s.Attempts {
		latest = s.tellAttempt(&s.Attempts[i], latest)
	}
	for i := range s.Reports {
		s.tellReport(&s.Reports[i])
	}
	if j.SettledAt != nil {
		s.step(phaseSettlement, 0, *j.SettledAt, "settled", "%s by %s%s: %s of %d used, %d returned",
			j.Status, *j.SettledSource, because(j.Reason), credits(*j.SettledCost), j.Cost, j.Cost-*j.SettledCost)
	}
	for i := range s.Events {
		e := &s.Events[i]
		phase, order := phaseSettlement, int64(AmountMax)
		if e.Type == "job.conflict" {
			phase, order = phaseOver, int64(e.CreatedAt)
		}
		s.step(phase, order, e.CreatedAt, "event", "%s for other systems", e.Type)
	}
	for i := range s.Deliveries {
		s.tellDelivery(&s.Deliveries[i])
	}
	slices.SortStableFunc(s.Timeline, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.phase, b.phase), cmp.Compare(a.order, b.order))
	})
}

func (s *Story) step(phase int, order int64, at Time, what, format string, args ...any) {
	s.Timeline = append(s.Timeline, Step{at, what, fmt.Sprintf(format, args...), phase, order})
}

func (s *Story) tellEntry(e *Entry) {
	phase, order := phaseSettlement, e.Seq
	if e.Kind == KindHold || e.Kind == KindCharge {
		phase = phaseCreation
	} else if strings.HasPrefix(e.EventKey, legacyPrefix) {
		phase, order = phaseOpen, int64(e.OccurredAt) // it was before the settlement
	}
	var taken, made []string
	for _, p := range e.Postings {
		part := fmt.Sprintf("%d of lot %s", p.Amount, p.Lot)
		if slices.ContainsFunc(s.Lots, func(l Lot) bool { return l.ID == p.Lot && l.Entry == e.ID }) {
			made = append(made, part)
		} else {
			taken = append(taken, part)
		}
	}
	text := map[Kind]string{
		KindHold:    "%s held: %s",
		KindCharge:  "%s used: %s",
		KindConsume: "%s used of what was held: %s",
		KindRelease: "%s of what was held available again: %s",
		KindRefund:  "%s of what was used returned: %s",
		KindExpire:  "%s expired: %s",
	}[e.Kind]
	if text == "" {
		text = string(e.Kind) + " of %s: %s"
	}
	text = fmt.Sprintf(text, credits(e.Amount), list(taken))
	if made != nil {
		text += "; now " + list(made)
	}
	s.step(phase, order, e.OccurredAt, string(e.Kind), "%s (entry %d of %s)", text, e.Seq, e.Owner)
}

// tellAttempt places an attempt and its answers after the one before it, whose latest time it gets; it
// gives its own.
func (s *Story) tellAttempt(a *Attempt, latest Time) Time {
	latest = max(latest, a.MarkedAt)
	s.step(phaseOpen, int64(latest), a.MarkedAt, "attempt", "attempt %d: about to call %s",
		a.Attempt, a.Provider)
	for _, said := range s.answersTo(a) {
		latest = max(latest, said.RecordedAt)
		s.step(s.phaseOf(said.RecordedAt), int64(latest), said.RecordedAt, "attempt", "%s", said.inWords())
	}
	return latest
}

// answersTo gives the answers to an attempt. One that was imported has its last answer only, as its own.
func (s *Story) answersTo(a *Attempt) (list []Answer) {
	for _, said := range s.Answers {
		if said.Attempt == a.Attempt {
			list = append(list, said)
		}
	}
	if list == nil && a.ResolvedAt != nil {
		list = append(list, Answer{
			Attempt: a.Attempt, Submission: a.Submission, UpstreamID: a.UpstreamID, Evidence: a.Evidence,
			Operator: a.Operator, RecordedAt: *a.ResolvedAt,
		})
	}
	return list
}

func (a *Answer) inWords() string {
	text := fmt.Sprintf("attempt %d: %s", a.Attempt, a.Submission)
	if a.UpstreamID != nil {
		text += " as " + *a.UpstreamID
	}
	if a.Operator != "" {
		text += ", says " + a.Operator
	}
	return text + because(a.Evidence)
}

// phaseOf is the phase of something that does not depend on the settlement.
func (s *Story) phaseOf(at Time) int {
	if s.Job.SettledAt != nil && at > *s.Job.SettledAt {
		return phaseOver
	}
	return phaseOpen
}

func (s *Story) tellReport(r *ReportRow) {
	phase, order := s.phaseOf(r.FirstAt), int64(r.FirstAt)
	switch r.Verdict {
	case Won:
		phase, order = phaseSettlement, 0
	case Duplicate, Conflict:
		phase = phaseOver
	}
	text := fmt.Sprintf("%s said %s", r.Source, r.Outcome)
	if r.Attempt > 0 {
		text += fmt.Sprintf(" of attempt %d", r.Attempt)
	}
	if r.UpstreamID != "" {
		text += " as " + r.UpstreamID
	}
	text += because(r.Detail) + ": " + string(r.Verdict)
	if r.Count > 1 {
		text += fmt.Sprintf(", %d times, the last at %s", r.Count, r.LastAt)
	}
	s.step(phase, order, r.FirstAt, "report", "%s", text)
}

// addOpen says what is still to come.
func (s *Story) addOpen() {
	j := &s.Job
	where := map[Mode]string{ModeHold: "held", ModeCharge: "used"}[j.Mode]
	switch {
	case j.SettledCost != nil:
		return
	case !j.Status.Open():
		left := j.Cost
		for i := range s.Entries {
			if s.Entries[i].Kind == KindRefund {
				left -= s.Entries[i].Amount
			}
		}
		s.open("it ended as %s in another system and was never settled here: %s still %s",
			j.Status, areCredits(left), where)
		return
	case j.Mode == ModeHold:
		s.open("%s held until a report settles the job", areCredits(j.Cost))
	default:
		s.open("%s used, and returned if the job does not complete", areCredits(j.Cost))
	}
	s.addOpenSubmission()
}

// addOpenSubmission says what is still to come of the job's current attempt.
func (s *Story) addOpenSubmission() {
	j := &s.Job
	var a Attempt
	if n := len(s.Attempts); n > 0 {
		a = s.Attempts[n-1]
	}
	missing := a.Provider == "" || a.UpstreamID == nil
	switch {
	case j.Submission == SubmissionNone && j.Deadline == nil:
		s.open("nobody has submitted it, and it has no deadline")
	case j.Submission == SubmissionNone:
		s.open("nobody has submitted it: a sweep after %s will time it out", *j.Deadline)
	case j.Submission == SubmissionRejected:
		s.open("attempt %d was rejected: submit it again, cancel it, or report that it failed", j.Attempt)
	case j.Submission == SubmissionAccepted && missing:
		s.open("attempt %d was accepted, but its provider or upstream id is missing: reconcile it", j.Attempt)
	case j.Submission == SubmissionAccepted:
		s.open("attempt %d was accepted by %s as %s: its report is awaited", j.Attempt, a.Provider, *a.UpstreamID)
	default:
		s.open("submission %s: nobody knows whether %s took attempt %d: reconcile it",
			j.Submission, cmp.Or(a.Provider, "the provider"), j.Attempt)
	}
}

func (s *Story) open(format string, args ...any) {
	s.Open = append(s.Open, fmt.Sprintf(format, args...))
}

func credits(n int64) string {
	if n == 1 {
		return "1 credit"
	}
	return fmt.Sprintf("%d credits", n)
}

func areCredits(n int64) string {
	if n == 1 {
		return "1 credit is"
	}
	return credits(n) + " are"
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", reason)
}

// listMax bounds the lots that one sentence names.
const listMax = 10

func list(parts []string) string {
	if n := len(parts) - listMax; n > 0 {
		parts = append(parts[:listMax:listMax], fmt.Sprintf("and %d lots more", n))
	}
	return strings.Join(parts, ", ")
}
