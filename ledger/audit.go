package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jobledger/db"
)

// AuditParams says how strict an audit is.
type AuditParams struct {
	Quiescent bool // work has stopped: an open job or a held credit is a violation too

	// Since, if not nil, has checkpoints of an earlier audit by their owners. Then the journals are read from
	// there on, and the checks in the report's NotChecked are left out: what was damaged in rows that an
	// earlier audit had passed is not found. Not together with Quiescent.
	Since map[string]Checkpoint

	// Mark, if set, hears of the checkpoint of each owner, in their order, once the audit has found nothing.
	Mark func(Checkpoint) error
}

// Checkpoint is how far an owner's journal was audited: its last entry then, and that entry's hash.
type Checkpoint struct {
	Owner string `json:"owner"`
	Seq   int64  `json:"seq"`
	Head  Hash   `json:"head"`
}

// AuditReport is the result of an audit: every check, in a fixed order, whether it holds or not.
type AuditReport struct {
	OK         bool         `json:"ok"`
	Checks     []AuditCheck `json:"checks"`
	NotChecked []string     `json:"not_checked,omitempty"` // what an audit since checkpoints leaves out
}

// AuditCheck is one invariant and the rows that break it: the first 100 of them, and then how many
// more there are.
type AuditCheck struct {
	Name       string      `json:"name"`
	OK         bool        `json:"ok"`
	Violations []Violation `json:"violations"`
}

// Violation names a broken row by its owner, job, lot, entry, event, report, attempt, endpoint or token,
// and says under "problem" what was expected and what was found.
type Violation map[string]any

// violationsMax bounds the violations that a check keeps; it counts the rest.
const violationsMax = 100

// The checks. The names are a contract; the order is that of the report.
const (
	checkStorage     = "storage"             // every table can be read; SQLite's own check of the file
	checkTypes       = "column-types"        // each value has the type of its column
	checkWords       = "known-words"         // kinds, statuses, sources ... are of the closed lists
	checkAmounts     = "amount-range"        // 0 to 2^53-1
	checkTimes       = "time-range"          // 1970 to 9999
	checkReferences  = "references"          // what a row refers to is there
	checkSequence    = "journal-sequence"    // each owner's entries are numbered 1, 2, 3 ...
	checkHashes      = "hash-chain"          // each entry has the hash of its content and of its past
	checkRunning     = "running-balances"    // before + movement = after
	checkPostings    = "entry-postings"      // what the lots gave, and got, is the entry's amount
	checkKeys        = "event-keys"          // an entry's key is that of its kind, job and lot
	checkOrphans     = "orphan-entries"      // a job's entry has its job, a settlement a settled one
	checkBalances    = "balances-journal"    // balance = last entry, seq = entries, head = last hash
	checkBalanceLots = "balances-lots"       // balance = sum of the owner's lots, per bucket
	checkLots        = "lots-postings"       // lot = what its postings moved, per bucket
	checkAllocations = "lots-held"           // a lot's held = what unsettled jobs hold of it
	checkOwnersHeld  = "owners-held"         // an owner's held = cost of the unsettled hold jobs
	checkOverdue     = "lots-overdue"        // nothing available in a lot that a sweep had to expire
	checkJobs        = "job-rows"            // a job's columns agree with each other
	checkAttempts    = "attempts"            // 1 to the job's attempt; the last has the job's submission
	checkPayments    = "job-payments"        // one hold or charge, of the job's cost
	checkSettlements = "job-settlements"     // mode, outcome and settled cost agree with the journal
	checkReturns     = "returns-within-cost" // never more returned than was taken
	checkEvents      = "settlement-events"   // one per settled job, saying what the job says
	checkReports     = "reports"             // one won report per settled job; verdicts agree with it
	checkConflicts   = "conflict-events"     // one per conflicting report, saying what it says
	checkDeliveries  = "deliveries"          // each says what its event says, and how it stands
	checkPolls       = "polls"               // one per open job that its provider took
	checkNothingHeld = "quiescent-held"      // only if asked for: nothing is held
	checkNothingOpen = "quiescent-jobs"      // only if asked for: no job is open
)

var (
	alwaysChecked = []string{
		checkStorage, checkTypes, checkWords, checkAmounts, checkTimes, checkReferences, checkSequence,
		checkHashes, checkRunning, checkPostings, checkKeys, checkOrphans, checkBalances, checkBalanceLots,
		checkLots, checkAllocations, checkOwnersHeld, checkOverdue, checkJobs, checkAttempts,
		checkPayments, checkSettlements, checkReturns, checkEvents, checkReports, checkConflicts,
		checkDeliveries, checkPolls,
	}
	checkedWhenQuiescent = []string{checkNothingHeld, checkNothingOpen}
)

// Audit checks every invariant of the ledger on one snapshot and changes nothing. It trusts no code
// that moves credits: it has its own queries and its own arithmetic. Broken invariants are no error;
// they are what the report is for.
//
// Errors: INVALID for Since together with Quiescent; INTERNAL if the disk fails; BUSY if ctx ends; that of
// Mark.
func (l *Ledger) Audit(ctx context.Context, p AuditParams) (AuditReport, error) {
	if p.Since != nil && p.Quiescent {
		return AuditReport{}, InvalidField("since", "leaves out what quiescent asks for")
	}
	return read(ctx, l, func(tx *db.Tx) (AuditReport, error) {
		return newAuditor(tx, l.Engine()).audit(p)
	})
}

// auditor collects what one audit finds.
type auditor struct {
	tx     *db.Tx
	sqlite bool
	found  map[string][]Violation // by check
	more   map[string]int         // by check: violations beyond those that were kept
}

func newAuditor(tx *db.Tx, engine string) *auditor {
	return &auditor{
		tx:     tx,
		sqlite: engine == "sqlite",
		found:  make(map[string][]Violation),
		more:   make(map[string]int),
	}
}

func (a *auditor) audit(p AuditParams) (AuditReport, error) {
	names := alwaysChecked
	passes := []func() error{
		a.auditStorage, a.auditColumns, a.auditReferences, a.auditJournal, a.auditBalances, a.auditLots,
		a.auditJobs, a.auditAttempts, a.auditEvents, a.auditReports, a.auditConflicts,
		a.auditDeliveries, a.auditPolls,
	}
	if p.Quiescent {
		names = append(names[:len(names):len(names)], checkedWhenQuiescent...)
		passes = append(passes, a.auditQuiescence)
	}
	r := AuditReport{OK: true}
	if p.Since != nil {
		passes = []func() error{func() error { return a.auditSince(p.Since) }}
	}
	for _, pass := range passes {
		if err := pass(); err != nil && !a.unreadable(err) {
			return AuditReport{}, fmt.Errorf("audit: %w", err)
		}
	}
	if p.Since != nil {
		names, r.NotChecked = a.checkedSince(), without(names, a.checkedSince())
	}
	for _, name := range names {
		c := a.check(name)
		r.Checks = append(r.Checks, c)
		r.OK = r.OK && c.OK
	}
	if p.Mark != nil && r.OK {
		return r, a.mark(p.Mark)
	}
	return r, nil
}

// unreadable makes a violation of an error that says that the rows are not what the tables promise: a
// value of another type, a column that is not there, a damaged page. The other passes go on. Any other
// error of a known kind is the caller's.
func (a *auditor) unreadable(err error) bool {
	_, known := errors.AsType[*db.Error](err)
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if ended || (known && !errors.Is(err, db.ErrDamaged)) {
		return false
	}
	a.broken(checkStorage, Violation{}, "a part of the audit could not be finished: %v", err)
	return true
}

// broken adds a violation to a check.
func (a *auditor) broken(check string, row Violation, format string, args ...any) {
	if len(a.found[check]) == violationsMax {
		a.more[check]++
		return
	}
	row["problem"] = fmt.Sprintf(format, args...)
	a.found[check] = append(a.found[check], row)
}

func (a *auditor) check(name string) AuditCheck {
	c := AuditCheck{Name: name, OK: len(a.found[name]) == 0, Violations: []Violation{}}
	c.Violations = append(c.Violations, a.found[name]...)
	if n := a.more[name]; n > 0 {
		c.Violations = append(c.Violations, Violation{"problem": fmt.Sprintf("and %d more", n)})
	}
	return c
}

// finding is a broken row as a query of the audit gives it.
type finding struct {
	Owner, Job, Lot, Entry, Event, Report, Endpoint, Token *string
	Attempt                                                any // of whatever type a damaged row has
	Problem                                                string
}

// query runs a query whose rows are violations of a check.
func (a *auditor) query(check, query string, args ...any) error {
	return db.Each(a.tx, func(f *finding) (bool, error) {
		row := Violation{}
		for key, value := range map[string]*string{
			"owner": f.Owner, "job": f.Job, "lot": f.Lot, "entry": f.Entry, "event": f.Event, "report": f.Report,
			"endpoint": f.Endpoint, "token": f.Token,
		} {
			if value != nil {
				row[key] = *value
			}
		}
		if f.Attempt != nil {
			row["attempt"] = f.Attempt
		}
		a.broken(check, row, "%s", strings.TrimSuffix(f.Problem, "; "))
		return true, nil
	}, query, args...)
}

// auditQuiescence looks for what must be gone once all work has ended.
func (a *auditor) auditQuiescence() error {
	err := a.query(checkNothingHeld, `
		SELECT owner, id AS lot, 'held is ' || CAST(held AS TEXT) || ', expected 0' AS problem
		FROM lots
		WHERE held <> 0`)
	if err != nil {
		return err
	}
	return a.query(checkNothingOpen, `
		SELECT owner, id AS job, 'status is ' || status || ', expected a terminal one' AS problem
		FROM jobs
		WHERE status IN ('pending', 'processing')`)
}
