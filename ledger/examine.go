package ledger

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"jobledger/db"
)

// Finding is one thing that an examination looked at, and how it stands.
type Finding = db.Finding

// Level says what a finding asks for.
type Level = db.Level

// The levels. What has a warning works, but is weaker than it should be or waits for somebody. With a
// problem nothing can be written, or the data is damaged or a crash may damage it.
const (
	Fine    = db.Fine
	Warning = db.Warning
	Problem = db.Problem
)

// Examination is what was found: one finding per check, in a fixed order. OK means without a problem.
type Examination struct {
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
}

// How long what waits for somebody may wait.
const (
	answerWait = 10 * time.Minute   // a marked attempt, for its answer
	sweepWait  = 24 * time.Hour     // what is due, for a sweep
	openWait   = 7 * 24 * time.Hour // a job without a deadline, for its end
	sendWait   = time.Hour          // an event, for an endpoint to take it

	clockBack = 2 * time.Second  // that the last entry may be ahead of the clock
	auditMax  = 10 * time.Second // that the audit may take
)

// Examine looks at a ledger and at what it stands on: the engine and its settings, the file or the
// server, and what waits for somebody, and for up to ten seconds [Ledger.Audit]. It changes nothing, not even
// an older schema. Where providers are given, it looks for accepted jobs at others, too.
//
// Errors: as of [Open].
func Examine(ctx context.Context, dsn string, o Options, providers ...string) (Examination, error) {
	checks := []db.Check{
		{Name: "reconciliation", Look: lookForUnresolved},
		{Name: "sweep", Look: lookForDue},
		{Name: "open-jobs", Look: lookForForgotten},
		{Name: "deliveries", Look: lookForUndelivered},
		{Name: "last-entry", Look: lookAtLastEntry},
	}
	if len(providers) > 0 {
		checks = append(checks, db.Check{Name: "providers", Look: func(tx *db.Tx) (Finding, error) {
			return lookForUnnamed(tx, providers)
		}})
	}
	found, err := db.Examine(ctx, dsn, o, append(checks, db.Check{
		Name: "audit", Look: func(tx *db.Tx) (Finding, error) { return lookByAudit(tx, auditMax) },
	})...)
	if err != nil {
		return Examination{}, wrap(err)
	}
	e := Examination{OK: true, Findings: found}
	for _, f := range found {
		e.OK = e.OK && f.Level != Problem
	}
	return e, nil
}

func before(tx *db.Tx, wait time.Duration) Time { return now(tx) - Time(wait.Microseconds()) }

// lookForUnresolved leaves out the attempts that may just be under way.
func lookForUnresolved(tx *db.Tx) (Finding, error) {
	var jobs int64
	_, err := tx.Get(&jobs, `SELECT COUNT(*) FROM (`+unresolvedQuery+`) u WHERE marked_at <= ?`,
		"", now(tx), math.MaxInt32, before(tx, answerWait))
	if jobs > 0 {
		return db.Warn("look at them with reconcile list, and resolve each with evidence",
			"jobs of which nobody knows how they stand, for more than %g minutes: %d", answerWait.Minutes(), jobs), err
	}
	return db.Good("no job waits for it"), err
}

func lookForDue(tx *db.Tx) (Finding, error) {
	var due struct{ Lots, Jobs int64 }
	at := before(tx, sweepWait)
	_, err := tx.Get(&due, `
		SELECT (SELECT COUNT(*) FROM lots WHERE available > 0 AND expires_at <= ?) AS lots,
		       (SELECT COUNT(*) FROM jobs WHERE `+dueJob+`) AS jobs`, at, at)
	if due.Lots+due.Jobs > 0 {
		return db.Warn("run sweep from time to time, such as every hour",
			"due for more than %g hours: lots to expire: %d, jobs to time out: %d",
			sweepWait.Hours(), due.Lots, due.Jobs), err
	}
	return db.Good("nothing is due for more than %g hours", sweepWait.Hours()), err
}

// lookForForgotten looks for jobs that no deadline will ever bring up.
func lookForForgotten(tx *db.Tx) (Finding, error) {
	var jobs struct {
		Count  int64
		Oldest *string
	}
	at := before(tx, openWait)
	_, err := tx.Get(&jobs, `
		SELECT COUNT(*) AS count,
		       (SELECT id FROM jobs WHERE `+forgotten+` ORDER BY created_at, id LIMIT 1) AS oldest
		FROM jobs WHERE `+forgotten, at, at)
	if jobs.Count > 0 && jobs.Oldest != nil {
		return db.Warn("settle or cancel them, and give jobs a deadline",
			"jobs that are open for more than %d days and have no deadline: %d, the oldest %s",
			openWait/(24*time.Hour), jobs.Count, *jobs.Oldest), err
	}
	return db.Good("none is old and without a deadline"), err
}

// lookForUnnamed looks for jobs that nobody asks for, as their provider is not among those that are known.
func lookForUnnamed(tx *db.Tx, known []string) (Finding, error) {
	list, err := pollsBeside(tx, known)
	if err != nil || len(list) == 0 {
		return db.Good("every accepted job is at a provider that the file names"), err
	}
	var text []string
	for _, p := range list {
		text = append(text, fmt.Sprintf("%d at %s", p.Jobs, strconv.Quote(p.Provider)))
	}
	return db.Warn("name the provider in the file, or settle its jobs with notify: nothing asks for them",
		"accepted jobs at providers that the file does not name: %s", strings.Join(text, ", ")), nil
}

// lookAtLastEntry finds a clock that was set back: what is due would not be, until it has caught up.
func lookAtLastEntry(tx *db.Tx) (Finding, error) {
	var last *Time
	_, err := tx.Get(&last, `SELECT MAX(recorded_at) FROM entries`)
	switch {
	case last == nil:
		return db.Good("there is no entry yet"), err
	case *last > now(tx)+Time(clockBack.Microseconds()):
		return db.Warn("set the clock, by NTP",
			"the last entry was made at %v, and this machine's clock says %v", last, now(tx)), err
	}
	return db.Good("made at %v, not after now", last), err
}

// lookByAudit has to come last: where it is ended, nothing more can be read on a server.
func lookByAudit(tx *db.Tx, limit time.Duration) (Finding, error) {
	var report AuditReport
	ended, err := tx.Within(limit, func(tx *db.Tx) (err error) {
		report, err = newAuditor(tx, tx.Engine()).audit(AuditParams{})
		return err
	})
	var broken []string
	for _, c := range report.Checks {
		if !c.OK {
			broken = append(broken, c.Name)
		}
	}
	switch {
	case ended || err != nil:
		return db.Good("stopped after %v: audit looks at everything", limit), err
	case len(broken) > 0:
		return db.Bad("see the rows with audit, keep your backups, and settle nothing by hand",
			"checks that found violations: %d of %d: %s", len(broken), len(report.Checks),
			strings.Join(broken, ", ")), nil
	}
	return db.Good("clean, %d checks", len(report.Checks)), nil
}

const forgotten = `status IN ('pending', 'processing') AND deadline IS NULL AND created_at <= ?`

// lookForUndelivered looks for events that somebody should have been told of.
func lookForUndelivered(tx *db.Tx) (Finding, error) {
	var is struct{ Endpoints, Disabled, Dead, Late int64 }
	_, err := tx.Get(&is, `
		SELECT (SELECT COUNT(*) FROM endpoints) AS endpoints,
		       (SELECT COUNT(*) FROM endpoints WHERE disabled_at IS NOT NULL) AS disabled,
		       (SELECT COUNT(*) FROM deliveries WHERE status = 'dead') AS dead,
		       (SELECT COUNT(*) FROM deliveries d JOIN endpoints p ON p.id = d.endpoint_id
		        WHERE d.status = 'pending' AND p.disabled_at IS NULL AND d.created_at < ?) AS late`,
		before(tx, sendWait))
	switch {
	case is.Dead > 0:
		return db.Warn("look at them with events deliveries --status dead, and send them with events replay --dead",
			"deliveries that were given up: %d", is.Dead), err
	case is.Late > 0:
		return db.Warn("run deliver, and look at events deliveries --status pending",
			"deliveries that are on their way for more than %g minutes: %d", sendWait.Minutes(), is.Late), err
	case is.Disabled > 0:
		return db.Warn("look at them with endpoint list; what happens is not for them until they are enabled",
			"endpoints that are disabled: %d", is.Disabled), err
	case is.Endpoints == 0:
		return db.Good("no endpoint is told of events"), err
	}
	return db.Good("none was given up, none waits for more than %g minutes", sendWait.Minutes()), err
}
