package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"jobledger/db"
)

// jobEntry is a job with one of its entries, if EntryID is there.
type jobEntry struct {
	Job
	Legacy     int64   `db:"legacy"`
	EntryID    *string `db:"entry_id"`
	Kind       Kind    `db:"kind"`
	Amount     int64   `db:"amount"`
	EntryText  string  `db:"entry_reason"`
	OccurredAt Time    `db:"occurred_at"`
}

// legacySum is what the books that a job was imported from had returned for it.
const legacySum = `
	(SELECT CAST(COALESCE(SUM(r.amount), 0) AS BIGINT) FROM entries r
	 WHERE r.event_key > 'legacy-refund:' || j.id || ':' AND r.event_key < 'legacy-refund:' || j.id || ';'
	   AND r.job_id = j.id) AS legacy`

// jobEntriesOfAllQuery finds the entries of each job by the keys that they must have.
var jobEntriesOfAllQuery = `
SELECT ` + qualified("j", jobColumns) + `,` + legacySum + `,
       e.id AS entry_id, COALESCE(e.kind, '') AS kind, COALESCE(e.amount, 0) AS amount,
       COALESCE(e.reason, '') AS entry_reason, COALESCE(e.occurred_at, 0) AS occurred_at
FROM jobs j
LEFT JOIN entries e ON e.job_id = j.id AND e.event_key IN
  ('job-hold:' || j.id, 'job-charge:' || j.id, 'job-consume:' || j.id, 'job-release:' || j.id,
   'job-refund:' || j.id)
ORDER BY j.id`

// auditJobs compares each job with its entries. A job that is over but has no settled cost came from
// another system and was never settled here: it must have no settlement.
func (a *auditor) auditJobs() error {
	var rows []jobEntry // of one job
	err := db.Each(a.tx, func(r *jobEntry) (bool, error) {
		if len(rows) > 0 && rows[0].ID != r.ID {
			a.auditJob(rows)
			rows = rows[:0]
		}
		rows = append(rows, *r)
		return true, nil
	}, jobEntriesOfAllQuery)
	if err == nil && len(rows) > 0 {
		a.auditJob(rows)
	}
	if err != nil {
		return err
	}
	return a.query(checkSettlements, `
		SELECT owner, id AS job,
		       'status is ' || status || ' and it was never settled, expected a settlement' AS problem
		FROM jobs
		WHERE status NOT IN ('pending', 'processing') AND settled_cost IS NULL AND imported = 0`)
}

func (j *Job) row() Violation { return Violation{"owner": j.Owner, "job": j.ID} }

func (a *auditor) auditJob(rows []jobEntry) {
	j, legacy := &rows[0].Job, rows[0].Legacy
	a.auditJobRow(j)
	if j.Mode != ModeCharge && legacy != 0 {
		a.broken(checkSettlements, j.row(), "legacy refunds are %d, expected 0 for mode %s", legacy, j.Mode)
	}
	got := make(map[Kind]int64)
	for i := range rows {
		if r := &rows[i]; r.EntryID != nil {
			got[r.Kind] = plus(got[r.Kind], r.Amount)
			a.auditJobEntry(r)
		}
	}
	want := wantedEntries(j, legacy)
	for _, c := range []struct {
		check string
		kinds []Kind
	}{
		{checkPayments, []Kind{KindHold, KindCharge}},
		{checkSettlements, []Kind{KindConsume, KindRelease, KindRefund}},
	} {
		for _, kind := range c.kinds {
			if got[kind] != want[kind] {
				a.broken(c.check, j.row(), "%s in the journal is %s, expected %d for %s",
					kind, number(got[kind]), want[kind], j.inWords())
			}
		}
	}
	if returned := plus(legacy, plus(got[KindRelease], got[KindRefund])); returned > j.Cost || returned == lost {
		a.broken(checkReturns, j.row(), "returned is %s, expected at most the cost, %d", number(returned), j.Cost)
	}
}

// inWords says what decides a job's entries.
func (j *Job) inWords() string {
	text := fmt.Sprintf("mode %s, status %s, cost %d", j.Mode, j.Status, j.Cost)
	if j.SettledCost != nil {
		text += fmt.Sprintf(", settled_cost %d", *j.SettledCost)
	}
	return text
}

// wantedEntries gives the amount of each kind that the journal must have for a job, beside what legacy
// refunds returned.
func wantedEntries(j *Job, legacy int64) map[Kind]int64 {
	want := make(map[Kind]int64)
	switch {
	case j.Mode == ModeHold && j.SettledCost != nil:
		want[KindConsume], want[KindRelease] = *j.SettledCost, j.Cost-*j.SettledCost
		fallthrough
	case j.Mode == ModeHold:
		want[KindHold] = j.Cost
	case j.Mode == ModeCharge && j.SettledCost != nil:
		want[KindRefund] = plus(j.Cost-*j.SettledCost, -legacy)
		fallthrough
	case j.Mode == ModeCharge:
		want[KindCharge] = j.Cost
	}
	return want
}

// auditJobEntry checks that an entry of a job's settlement tells of the same moment and reason.
func (a *auditor) auditJobEntry(r *jobEntry) {
	row := r.row()
	row["entry"] = *r.EntryID
	switch {
	case r.Kind != KindConsume && r.Kind != KindRelease && r.Kind != KindRefund:
	case r.EntryText != r.Reason:
		a.broken(checkSettlements, row, "the entry's reason is %q, expected %q, the job's", r.EntryText, r.Reason)
	case r.SettledAt != nil && r.OccurredAt != *r.SettledAt:
		a.broken(checkSettlements, row, "occurred_at is %s, expected %s, the job's settled_at",
			r.OccurredAt, *r.SettledAt)
	}
}

// auditJobRow checks the columns of a job against each other.
func (a *auditor) auditJobRow(j *Job) {
	set := 0
	for _, there := range []bool{
		j.SettledCost != nil, j.SettledSource != nil, j.SettledAttempt != nil, j.SettledAt != nil,
	} {
		if there {
			set++
		}
	}
	switch {
	case set != 0 && set != 4:
		a.broken(checkJobs, j.row(), "%d of the settled columns are set, expected none or all 4", set)
	case set == 0:
	case j.Status.Open():
		a.broken(checkJobs, j.row(), "the job is settled and its status is %s, expected a terminal one", j.Status)
	case *j.SettledCost > j.Cost:
		a.broken(checkJobs, j.row(), "settled_cost is %d, expected at most the cost, %d", *j.SettledCost, j.Cost)
	case *j.SettledCost != 0 && j.Status != Status(Completed):
		a.broken(checkJobs, j.row(), "settled_cost is %d, expected 0 for status %s", *j.SettledCost, j.Status)
	case *j.SettledAttempt != j.Attempt:
		a.broken(checkJobs, j.row(), "settled_attempt is %d, expected %d, the attempt",
			*j.SettledAttempt, j.Attempt)
	}
}

// auditAttempts checks that a job's attempts are those that the job has counted, and that each says what
// its last answer said. Attempts that were imported as submitting or unknown have no answers yet.
func (a *auditor) auditAttempts() error {
	err := a.query(checkAttempts, `
		SELECT x.job_id AS job, x.attempt, 'submission is ' || x.submission || ' with evidence ' || x.evidence
		       || ', expected what answer ' || CAST(w.n AS TEXT) || ' says, ' || w.submission AS problem
		FROM attempts x
		JOIN answers w ON w.job_id = x.job_id AND w.attempt = x.attempt
		WHERE w.n = (SELECT COUNT(*) FROM answers c WHERE c.job_id = x.job_id AND c.attempt = x.attempt)
		  AND (w.submission <> x.submission OR w.evidence <> x.evidence OR w.operator <> x.operator
		       OR w.provider <> x.provider OR w.recorded_at IS DISTINCT FROM x.resolved_at
		       OR w.upstream_id <> x.upstream_id OR (w.upstream_id IS NOT NULL AND x.upstream_id IS NULL))`)
	if err != nil {
		return err
	}
	return a.query(checkAttempts, `
		SELECT j.owner, j.id AS job,
		       'attempt is ' || CAST(j.attempt AS TEXT) || ' with submission ' || j.submission || ', expected '
		       || CAST(j.attempts AS TEXT) || ', the last with ' || j.answered AS problem
		FROM (SELECT owner, id, attempt, submission,
		             (SELECT COUNT(*) FROM attempts c WHERE c.job_id = jobs.id) AS attempts,
		             COALESCE((SELECT l.submission FROM attempts l
		                       WHERE l.job_id = jobs.id AND l.attempt = jobs.attempt), 'none') AS answered
		      FROM jobs) j
		WHERE j.attempt <> j.attempts OR j.submission <> j.answered`)
}

// eventJob is an event with its job, and with a report that it may be about.
type eventJob struct {
	Job
	EventID   string   `db:"event_id"`
	Type      string   `db:"type"`
	Recipient string   `db:"event_owner"`
	Payload   JSON     `db:"payload"`
	Legacy    int64    `db:"legacy"`
	WrittenAt Time     `db:"written_at"`
	Outcome   *Outcome `db:"outcome"`
	Source    *Source  `db:"source"`
	About     *int64   `db:"about"`
	Detail    *string  `db:"detail"`
}

var eventJobColumns = qualified("j", jobColumns) +
	`, v.id AS event_id, v.type, v.owner AS event_owner, v.payload, v.created_at AS written_at,` + legacySum

func (v *eventJob) row() Violation {
	row := v.Job.row()
	row["event"] = v.EventID
	return row
}

// auditEvents checks that each settled job has its event, that it says what the job says, and that no
// other job has one. The ids let each job have one only.
func (a *auditor) auditEvents() error {
	err := a.query(checkEvents, `
		SELECT j.owner, j.id AS job, 'the job is settled and has no event, expected one' AS problem
		FROM jobs j
		WHERE j.settled_at IS NOT NULL
		  AND NOT EXISTS (SELECT 1 FROM events v WHERE v.id = 'settled:' || j.id AND v.job_id = j.id)`)
	if err != nil {
		return err
	}
	return db.Each(a.tx, func(v *eventJob) (bool, error) {
		if p := v.settlementProblem(); p != "" {
			a.broken(checkEvents, v.row(), "%s", p)
		}
		return true, nil
	}, `SELECT `+eventJobColumns+` FROM events v JOIN jobs j ON j.id = v.job_id WHERE v.type <> 'job.conflict'`)
}

func (v *eventJob) settlementProblem() string {
	switch {
	case v.EventID != "settled:"+v.ID:
		return fmt.Sprintf("id is %q, expected %q", v.EventID, "settled:"+v.ID)
	case v.SettledCost == nil || v.SettledSource == nil || v.SettledAttempt == nil || v.SettledAt == nil:
		return "the job is not settled, expected no event"
	case v.Type != "job."+string(v.Status):
		return fmt.Sprintf("type is %s, expected job.%s", v.Type, v.Status)
	case v.Recipient != v.Owner:
		return fmt.Sprintf("owner is %q, expected %q", v.Recipient, v.Owner)
	case v.WrittenAt != *v.SettledAt:
		return fmt.Sprintf("created_at is %s, expected %s, the job's settled_at", v.WrittenAt, *v.SettledAt)
	}
	return payloadProblem(v.Payload, map[string]any{
		"job": v.ID, "owner": v.Owner, "outcome": v.Status, "cost": v.Cost, "consumed": *v.SettledCost,
		"returned": v.Cost - *v.SettledCost - v.Legacy, "source": *v.SettledSource, "attempt": *v.SettledAttempt,
		"reason": v.Reason, "settled_at": *v.SettledAt,
	})
}

// payloadProblem says how a payload differs from what it must say; empty if it does not. It may say
// more.
func payloadProblem(payload JSON, want map[string]any) string {
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(payload), &got); err != nil {
		return "payload is not a JSON object"
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if expected := string(mustJSON(want[key])); string(got[key]) != expected {
			return fmt.Sprintf("payload %s is %s, expected %s", key, shorten(string(got[key])), expected)
		}
	}
	return ""
}

// auditReports checks that each settled job has one won report and no other job any, and that the
// verdicts agree with the jobs.
func (a *auditor) auditReports() error {
	err := a.query(checkReports, `
		SELECT j.owner, j.id AS job,
		       'it has ' || CAST(j.won AS TEXT) || ' won reports, expected ' || CAST(j.wanted AS TEXT) AS problem
		FROM (SELECT owner, id, CASE WHEN settled_at IS NULL THEN 0 ELSE 1 END AS wanted,
		             (SELECT COUNT(*) FROM reports r WHERE r.job_id = jobs.id AND r.verdict = 'won') AS won
		      FROM jobs) j
		WHERE j.won <> j.wanted`)
	if err != nil {
		return err
	}
	for _, c := range []struct{ bad, problem string }{
		{`r.verdict = 'won' AND (r.source IS DISTINCT FROM j.settled_source OR r.outcome <> j.status)`,
			`'it won, expected ' || COALESCE(j.settled_source, 'nobody') || ' ' || j.status`},
		{`r.verdict = 'won' AND r.attempt <> 0 AND r.attempt IS DISTINCT FROM j.settled_attempt`,
			`'it won, expected one about attempt ' || COALESCE(CAST(j.settled_attempt AS TEXT), 'none')`},
		{`r.verdict = 'won' AND r.first_at IS DISTINCT FROM j.settled_at`,
			`'first_at is ' || CAST(r.first_at AS TEXT) || ', expected the settled_at of the job, '
			 || COALESCE(CAST(j.settled_at AS TEXT), 'none')`},
		{`r.verdict = 'won' AND r.detail <> j.reason`, `'detail is not the reason of the job, ' || j.reason`},
		{`(r.verdict = 'won' AND r.count <> 1) OR (r.count = 1 AND r.first_at <> r.last_at)`,
			`'count is ' || CAST(r.count AS TEXT) || ', expected as many as were seen from first_at to last_at'`},
		{`r.verdict = 'duplicate' AND r.outcome <> j.status`, `'a duplicate, expected the outcome ' || j.status`},
		{`r.verdict = 'conflict' AND (r.outcome = j.status OR j.status IN ('pending', 'processing'))`,
			`'a conflict, expected another outcome than the status, ' || j.status`},
	} {
		err := a.query(checkReports, `
			SELECT j.owner, j.id AS job, r.source || ' ' || r.outcome || ' ' || r.verdict AS report, r.attempt,
			       `+c.problem+` AS problem
			FROM reports r
			JOIN jobs j ON j.id = r.job_id
			WHERE `+c.bad)
		if err != nil {
			return err
		}
	}
	return nil
}

// auditConflicts checks that each conflicting report has its event and that the events say what the
// reports say.
func (a *auditor) auditConflicts() error {
	err := a.query(checkConflicts, `
		SELECT j.owner, j.id AS job,
		       'it has ' || CAST(j.events AS TEXT) || ' conflict events, expected one for each of '
		       || CAST(j.reports AS TEXT) || ' conflicting reports' AS problem
		FROM (SELECT owner, id,
		             (SELECT COUNT(*) FROM events v
		              WHERE v.id > 'conflict:' || jobs.id || ':' AND v.id < 'conflict:' || jobs.id || ';'
		                AND v.job_id = jobs.id AND v.type = 'job.conflict') AS events,
		             (SELECT COUNT(*) FROM reports r
		              WHERE r.job_id = jobs.id AND r.verdict = 'conflict') AS reports
		      FROM jobs) j
		WHERE j.events <> j.reports`)
	if err != nil {
		return err
	}
	event, problem := Violation{}, ""
	finish := func() {
		if problem != "" {
			a.broken(checkConflicts, event, "%s", problem)
		}
	}
	err = db.Each(a.tx, func(v *eventJob) (bool, error) {
		if v.EventID != event["event"] {
			finish()
			event, problem = v.row(), v.conflictProblem()
		} else if problem != "" {
			problem = v.conflictProblem() // one of the job's reports must fit
		}
		return true, nil
	}, `
		SELECT `+eventJobColumns+`, r.outcome, r.source, r.attempt AS about, r.detail
		FROM events v
		JOIN jobs j ON j.id = v.job_id
		LEFT JOIN reports r ON r.job_id = v.job_id AND r.verdict = 'conflict' AND r.first_at = v.created_at
		WHERE v.type = 'job.conflict'
		ORDER BY v.id`)
	if err == nil {
		finish()
	}
	return err
}

// numbered tells whether a key is a prefix and a number from 1.
func numbered(key, prefix string) bool {
	digits, found := strings.CutPrefix(key, prefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	return found && err == nil && n >= 1
}

func (v *eventJob) conflictProblem() string {
	switch {
	case !numbered(v.EventID, "conflict:"+v.ID+":"):
		return fmt.Sprintf("id is %q, expected %q and a number", v.EventID, "conflict:"+v.ID+":")
	case v.Outcome == nil || v.Source == nil || v.About == nil || v.Detail == nil:
		return fmt.Sprintf("no conflicting report of the job came at %s, expected one", v.WrittenAt)
	case v.Recipient != v.Owner:
		return fmt.Sprintf("owner is %q, expected %q", v.Recipient, v.Owner)
	}
	return payloadProblem(v.Payload, map[string]any{
		"job": v.ID, "owner": v.Owner, "outcome": v.Status, "reported": *v.Outcome, "source": *v.Source,
		"attempt": *v.About, "reason": *v.Detail,
	})
}
