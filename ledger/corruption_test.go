package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// How a corruption finds the row that the audit must name.
const (
	anyOwner    = `SELECT 'ann'`
	grantEntry  = `SELECT id FROM entries WHERE event_key = 'grant:a1'`
	refundEntry = `SELECT id FROM entries WHERE event_key = 'job-refund:charge-failed'`
	firstLot    = `SELECT l.id FROM lots l JOIN entries e ON e.id = l.entry_id WHERE e.event_key = 'grant:a1'`
	lapsedLot   = `SELECT l.id FROM lots l JOIN entries e ON e.id = l.entry_id WHERE e.event_key = 'grant:a2'`
	refundLot   = `SELECT l.id FROM lots l JOIN entries e ON e.id = l.entry_id
	               WHERE e.event_key = 'job-refund:charge-failed'`
	holdJob   = `SELECT 'hold-completed'`
	chargeJob = `SELECT 'charge-failed'`
	openJob   = `SELECT 'hold-open'`
	submitted = `SELECT 'charge-open'`
	holdEvent = `SELECT id FROM events WHERE job_id = 'hold-completed' AND type = 'job.completed'`
	conflict  = `SELECT id FROM events WHERE type = 'job.conflict'`
	delivered = `SELECT event_id FROM deliveries WHERE status = 'delivered'`
	leased    = `SELECT MIN(event_id) FROM deliveries WHERE lease IS NOT NULL`
	asked     = `SELECT 'asked'`
)

// corruptions are changes of one row each. The first parameter of a statement is the named row.
var corruptions = []struct{ check, key, named, change string }{
	{"balances-journal", "owner", anyOwner, `UPDATE balances SET available = available + 1 WHERE owner = ?`},
	{"balances-lots", "owner", anyOwner, `UPDATE balances SET used = used - 1 WHERE owner = ?`},
	{"owners-held", "owner", anyOwner, `UPDATE balances SET held = held + 1 WHERE owner = ?`},
	{"balances-journal", "owner", anyOwner, `UPDATE balances SET expired = 0 WHERE owner = ?`},
	{"amount-range", "owner", anyOwner, `UPDATE balances SET available = 9007199254740992 WHERE owner = ?`},
	{"balances-journal", "owner", anyOwner, `UPDATE balances SET seq = seq + 1 WHERE owner = ?`},
	{"balances-journal", "owner", anyOwner, `UPDATE balances
		SET head = (SELECT hash FROM entries WHERE owner = 'bob' AND seq = 1) WHERE owner = ?`},
	{"references", "owner", anyOwner, `DELETE FROM balances WHERE owner = ?`},
	{"references", "owner", anyOwner, `UPDATE balances SET owner = 'Ann' WHERE owner = ?`},
	{"balances-journal", "owner", `SELECT 'eve'`,
		`INSERT INTO balances SELECT ?, 5, 0, 0, 0, 0, head FROM balances WHERE owner = 'bob'`},

	{"lots-postings", "lot", firstLot,
		`UPDATE lots SET available = available + 1, amount = amount + 1 WHERE id = ?`},
	{"lots-postings", "lot", firstLot,
		`UPDATE lots SET used = used - 1, available = available + 1 WHERE id = ?`},
	{"lots-held", "lot", firstLot, `UPDATE lots SET held = held + 1, used = used - 1 WHERE id = ?`},
	{"lots-postings", "lot", firstLot, `UPDATE lots SET amount = amount + 1 WHERE id = ?`},
	{"amount-range", "lot", firstLot, `UPDATE lots SET available = -1 WHERE id = ?`},
	{"lots-postings", "lot", lapsedLot,
		`UPDATE lots SET expired = expired - 1, available = available + 1 WHERE id = ?`},
	{"lots-overdue", "lot", lapsedLot,
		`UPDATE lots SET expired = expired - 1, available = available + 1 WHERE id = ?`},
	{"hash-chain", "entry", grantEntry, `UPDATE lots SET priority = 1 WHERE entry_id = ?`},
	{"hash-chain", "entry", grantEntry, `UPDATE lots SET expires_at = 4102444800000000 WHERE entry_id = ?`},
	{"hash-chain", "entry", grantEntry, `UPDATE lots SET effective_at = 1 WHERE entry_id = ?`},
	{"time-range", "lot", firstLot, `UPDATE lots SET expires_at = -1 WHERE id = ?`},
	{"entry-postings", "lot", firstLot, `UPDATE lots SET owner = 'bob' WHERE id = ?`},
	{"lots-postings", "lot", firstLot,
		`UPDATE lots SET entry_id = (SELECT id FROM entries WHERE event_key = 'grant:b1') WHERE id = ?`},
	{"entry-postings", "entry", grantEntry, `DELETE FROM lots WHERE entry_id = ?`},
	{"lots-postings", "lot", `SELECT 'forged'`, `INSERT INTO lots
		SELECT ?, owner, entry_id, 0, 0, 0, 0, 0, 0, NULL, NULL FROM lots LIMIT 1`},
	{"references", "entry", grantEntry, `UPDATE postings SET lot_id = 'nowhere' WHERE entry_id = ?`},
	{"balances-lots", "owner", anyOwner, `UPDATE lots SET available = 9223372036854775807
		WHERE id = (SELECT MIN(id) FROM lots WHERE owner = ?)`},

	{"hash-chain", "entry", refundEntry, `UPDATE entries
		SET hash = (SELECT head FROM balances WHERE owner = 'bob') WHERE id = ?`},
	{"hash-chain", "entry", refundEntry, `UPDATE entries SET amount = amount + 1 WHERE id = ?`},
	{"entry-postings", "entry", refundEntry, `UPDATE entries SET amount = amount + 1 WHERE id = ?`},
	{"returns-within-cost", "job", chargeJob, `UPDATE entries SET amount = 8
		WHERE event_key = 'job-refund:' || ?`},
	{"journal-sequence", "entry", refundEntry, `UPDATE entries SET seq = 99 WHERE id = ?`},
	{"known-words", "entry", refundEntry, `UPDATE entries SET kind = 'gift' WHERE id = ?`},
	{"event-keys", "entry", refundEntry, `UPDATE entries SET kind = 'grant' WHERE id = ?`},
	{"event-keys", "entry", refundEntry, `UPDATE entries SET event_key = 'job-refund:other' WHERE id = ?`},
	{"hash-chain", "entry", grantEntry, `UPDATE entries SET event_key = 'grant:a0' WHERE id = ?`},
	{"orphan-entries", "entry", refundEntry, `UPDATE entries SET job_id = 'nobody' WHERE id = ?`},
	{"job-settlements", "job", chargeJob,
		`UPDATE entries SET job_id = NULL WHERE event_key = 'job-refund:' || ?`},
	{"orphan-entries", "entry", refundEntry, `UPDATE entries SET owner = 'bob', seq = 99 WHERE id = ?`},
	{"running-balances", "entry", refundEntry, `UPDATE entries SET used_after = used_after + 1 WHERE id = ?`},
	{"running-balances", "entry", refundEntry, `UPDATE entries SET expired_after = 1 WHERE id = ?`},
	{"hash-chain", "entry", refundEntry, `UPDATE entries SET reason = 'another' WHERE id = ?`},
	{"hash-chain", "entry", grantEntry, `UPDATE entries SET metadata = '{"plan":"y"}' WHERE id = ?`},
	{"hash-chain", "entry", grantEntry, `UPDATE entries SET occurred_at = occurred_at + 1 WHERE id = ?`},
	{"hash-chain", "entry", grantEntry, `UPDATE entries SET recorded_at = recorded_at + 1 WHERE id = ?`},
	{"job-settlements", "entry", refundEntry, `UPDATE entries SET occurred_at = occurred_at + 1 WHERE id = ?`},
	{"orphan-entries", "entry", `SELECT 'forged'`, `INSERT INTO entries
		SELECT ?, 'job-refund:nobody', owner, 99, kind, amount, 'nobody', available_after, held_after, used_after,
		       expired_after, reason, metadata, occurred_at, recorded_at, hash
		FROM entries WHERE event_key = 'job-refund:charge-failed'`},
	{"balances-journal", "owner", anyOwner, `INSERT INTO entries
		SELECT 'forged', 'grant:forged', owner, 99, kind, amount, job_id, available_after, held_after, used_after,
		       expired_after, reason, metadata, occurred_at, recorded_at, hash
		FROM entries WHERE event_key = 'grant:a1' AND owner = ?`},
	{"references", "lot", refundLot, `DELETE FROM entries
		WHERE id = (SELECT entry_id FROM lots WHERE id = ?)`},
	{"event-keys", "entry", `SELECT id FROM entries WHERE kind = 'expire' AND owner = 'ann'`,
		`UPDATE entries SET event_key = 'lot-expire:x:1' WHERE id = ?`},
	{"hash-chain", "entry", `SELECT 'renamed'`, `UPDATE entries SET id = ? WHERE event_key = 'grant:a1'`},

	{"entry-postings", "entry", refundEntry, `UPDATE postings SET amount = amount + 1
		WHERE entry_id = ?
		  AND lot_id = (SELECT MIN(p.lot_id) FROM postings p WHERE p.entry_id = postings.entry_id)`},
	{"entry-postings", "entry", refundEntry, `DELETE FROM postings
		WHERE entry_id = ?
		  AND lot_id = (SELECT MIN(p.lot_id) FROM postings p WHERE p.entry_id = postings.entry_id)`},
	{"hash-chain", "entry", `SELECT id FROM entries WHERE event_key = 'job-charge:charge-open'`,
		`UPDATE postings SET lot_id = (SELECT MAX(id) FROM lots WHERE owner = 'ann') WHERE entry_id = ?`},
	{"lots-postings", "lot", firstLot, `INSERT INTO postings
		SELECT id, ?, 1 FROM entries WHERE event_key = 'grant:a2'`},

	{"hash-chain", "entry", `SELECT id FROM entries WHERE event_key = 'job-hold:hold-completed'`,
		`UPDATE jobs SET cost = cost + 1 WHERE id = (SELECT job_id FROM entries WHERE id = ?)`},
	{"job-payments", "job", openJob, `UPDATE jobs SET cost = cost + 1 WHERE id = ?`},
	{"job-payments", "job", openJob, `UPDATE jobs SET mode = 'charge' WHERE id = ?`},
	{"job-settlements", "job", holdJob, `UPDATE jobs SET settled_cost = settled_cost - 1 WHERE id = ?`},
	{"job-rows", "job", holdJob, `UPDATE jobs SET status = 'failed' WHERE id = ?`},
	{"job-rows", "job", holdJob, `UPDATE jobs SET status = 'processing' WHERE id = ?`},
	{"job-rows", "job", holdJob, `UPDATE jobs SET settled_cost = cost + 1 WHERE id = ?`},
	{"settlement-events", "job", chargeJob, `UPDATE jobs SET status = 'timed_out' WHERE id = ?`},
	{"orphan-entries", "job", chargeJob, `UPDATE jobs SET status = 'processing', settled_cost = NULL,
		settled_source = NULL, settled_attempt = NULL, settled_at = NULL WHERE id = ?`},
	{"job-settlements", "job", chargeJob, `UPDATE jobs SET settled_cost = NULL,
		settled_source = NULL, settled_attempt = NULL, settled_at = NULL WHERE id = ?`},
	{"reports", "job", openJob, `UPDATE jobs SET status = 'failed', settled_cost = 0,
		settled_source = 'poll', settled_attempt = 0, settled_at = updated_at WHERE id = ?`},
	{"known-words", "job", openJob, `UPDATE jobs SET status = 'queued' WHERE id = ?`},
	{"known-words", "job", openJob, `UPDATE jobs SET submission = 'maybe' WHERE id = ?`},
	{"reports", "job", holdJob, `UPDATE jobs SET settled_source = 'poll' WHERE id = ?`},
	{"job-rows", "job", holdJob, `UPDATE jobs SET settled_attempt = 1 WHERE id = ?`},
	{"job-rows", "job", holdJob, `UPDATE jobs SET attempt = 3 WHERE id = ?`},
	{"job-rows", "job", holdJob, `UPDATE jobs SET settled_source = NULL WHERE id = ?`},
	{"settlement-events", "job", holdJob, `UPDATE jobs SET settled_at = settled_at + 1 WHERE id = ?`},
	{"job-settlements", "job", holdJob, `UPDATE jobs SET reason = 'another' WHERE id = ?`},
	{"hash-chain", "job", openJob, `UPDATE jobs SET deadline = deadline + 1 WHERE id = ?`},
	{"hash-chain", "job", openJob, `UPDATE jobs SET metadata = '{"size":3}' WHERE id = ?`},
	{"hash-chain", "job", openJob, `UPDATE jobs SET created_at = created_at - 1 WHERE id = ?`},
	{"time-range", "job", openJob, `UPDATE jobs SET updated_at = -1 WHERE id = ?`},
	{"orphan-entries", "job", openJob, `UPDATE jobs SET owner = 'bob' WHERE id = ?`},
	{"orphan-entries", "job", openJob, `DELETE FROM jobs WHERE id = ?`},
	{"job-payments", "job", `SELECT 'forged'`, `INSERT INTO jobs (id, owner, cost, mode, status, attempt,
		       submission, settled_cost, settled_source, settled_attempt, settled_at, deadline, reason,
		       metadata, created_at, updated_at)
		SELECT ?, owner, cost, mode, status, attempt, submission, settled_cost, settled_source, settled_attempt,
		       settled_at, deadline, reason, metadata, created_at, updated_at
		FROM jobs WHERE id = 'hold-open'`},

	{"job-settlements", "job", openJob, `UPDATE jobs SET status = 'failed' WHERE id = ?`},
	{"job-settlements", "job", submitted, `UPDATE jobs SET status = 'timed_out' WHERE id = ?`},
	{"settlement-events", "job", holdJob, `DELETE FROM events WHERE job_id = ? AND type <> 'job.conflict'`},
	{"settlement-events", "event", holdEvent, `UPDATE events SET type = 'job.failed' WHERE id = ?`},
	{"settlement-events", "event", holdEvent, `UPDATE events SET owner = 'bob' WHERE id = ?`},
	{"settlement-events", "event", holdEvent, `UPDATE events SET created_at = created_at + 1 WHERE id = ?`},
	{"settlement-events", "event", holdEvent,
		`UPDATE events SET payload = REPLACE(payload, '"consumed":15', '"consumed":16') WHERE id = ?`},
	{"settlement-events", "event", holdEvent, `UPDATE events SET payload = SUBSTR(payload, 2) WHERE id = ?`},
	{"settlement-events", "job", openJob, `INSERT INTO events
		SELECT 'forged', 'job.failed', id, owner, '{}', created_at FROM jobs WHERE id = ?`},
	{"settlement-events", "job", holdJob, `UPDATE events SET job_id = 'hold-open'
		WHERE job_id = ? AND type = 'job.completed'`},
	{"settlement-events", "event", `SELECT 'settled:again'`, `INSERT INTO events
		SELECT ?, type, job_id, owner, payload, created_at FROM events WHERE id = 'settled:hold-completed'`},
	{"conflict-events", "event", conflict, `UPDATE events SET payload = 'null' WHERE id = ?`},
	{"conflict-events", "job", holdJob, `DELETE FROM events WHERE type = 'job.conflict' AND job_id = ?`},
	{"conflict-events", "event", conflict, `UPDATE events SET created_at = created_at + 1 WHERE id = ?`},
	{"conflict-events", "event", conflict,
		`UPDATE events SET payload = REPLACE(payload, '"reported":"f', '"reported":"F') WHERE id = ?`},

	{"reports", "job", holdJob, `DELETE FROM reports WHERE job_id = ? AND verdict = 'won'`},
	{"reports", "job", holdJob, `UPDATE reports SET source = 'poll' WHERE job_id = ? AND verdict = 'won'`},
	{"reports", "job", holdJob, `UPDATE reports SET outcome = 'failed' WHERE job_id = ? AND verdict = 'won'`},
	{"reports", "job", holdJob, `UPDATE reports SET attempt = 2 WHERE job_id = ? AND verdict = 'won'`},
	{"reports", "job", holdJob,
		`UPDATE reports SET first_at = first_at + 1 WHERE job_id = ? AND verdict = 'won'`},
	{"reports", "job", holdJob, `UPDATE reports SET detail = 'another' WHERE job_id = ? AND verdict = 'won'`},
	{"reports", "job", holdJob, `UPDATE reports SET count = 2 WHERE job_id = ? AND verdict = 'won'`},
	{"amount-range", "job", holdJob, `UPDATE reports SET count = 0 WHERE job_id = ? AND verdict = 'duplicate'`},
	{"reports", "job", holdJob,
		`UPDATE reports SET outcome = 'failed' WHERE job_id = ? AND verdict = 'duplicate'`},
	{"conflict-events", "job", holdJob,
		`UPDATE reports SET verdict = 'stale' WHERE job_id = ? AND verdict = 'conflict'`},
	{"reports", "job", openJob, `UPDATE reports SET verdict = 'won' WHERE job_id = ?`},
	{"references", "job", `SELECT 'nobody'`, `UPDATE reports SET job_id = ? WHERE verdict = 'stale'`},

	{"references", "job", `SELECT 'nobody'`, `UPDATE attempts SET job_id = ? WHERE job_id = 'charge-open'`},
	{"known-words", "job", submitted, `UPDATE attempts SET submission = 'lost' WHERE job_id = ?`},
	{"attempts", "job", submitted, `UPDATE attempts SET submission = 'accepted' WHERE job_id = ?`},
	{"attempts", "job", submitted, `UPDATE attempts SET attempt = 2 WHERE job_id = ?`},
	{"attempts", "job", submitted, `DELETE FROM attempts WHERE job_id = ?`},
	{"attempts", "job", submitted, `UPDATE jobs SET attempt = 2 WHERE id = ?`},
	{"attempts", "job", openJob, `UPDATE jobs SET submission = 'rejected' WHERE id = ?`},
	{"time-range", "job", submitted, `UPDATE attempts SET marked_at = -1 WHERE job_id = ?`},

	{"known-words", "token", `SELECT id FROM tokens`, `UPDATE tokens SET scope = 'root' WHERE id = ?`},
	{"time-range", "endpoint", `SELECT id FROM endpoints`, `UPDATE endpoints SET disabled_at = -1 WHERE id = ?`},
	{"references", "endpoint", `SELECT id FROM endpoints`, `DELETE FROM endpoints WHERE id = ?`},
	{"references", "event", `SELECT 'settled:nobody'`,
		`UPDATE deliveries SET event_id = ? WHERE event_id = 'settled:charge-failed'`},
	{"deliveries", "event", delivered, `UPDATE deliveries SET job_id = 'hold-open' WHERE event_id = ?`},
	{"deliveries", "event", delivered, `UPDATE deliveries SET n = 1 WHERE event_id = ?`},
	{"deliveries", "event", conflict, `UPDATE deliveries SET n = 2 WHERE event_id = ?`},
	{"deliveries", "event", delivered, `UPDATE deliveries SET done_at = NULL WHERE event_id = ?`},
	{"deliveries", "event", delivered, `UPDATE deliveries SET last_status = 404 WHERE event_id = ?`},
	{"deliveries", "event", delivered, `UPDATE deliveries SET tries = 0 WHERE event_id = ?`},
	{"deliveries", "event", delivered, `UPDATE deliveries SET created_at = created_at - 1 WHERE event_id = ?`},
	{"deliveries", "event", leased, `UPDATE deliveries SET status = 'dead', done_at = 1 WHERE event_id = ?`},
	{"deliveries", "event", leased, `UPDATE deliveries SET lease_until = NULL WHERE event_id = ?`},
	{"known-words", "event", leased, `UPDATE deliveries SET status = 'lost' WHERE event_id = ?`},
	{"amount-range", "event", leased, `UPDATE deliveries SET tries = -1 WHERE event_id = ?`},
	{"polls", "job", asked, `DELETE FROM polls WHERE job_id = ?`},
	{"polls", "job", asked, `UPDATE polls SET provider = 'other' WHERE job_id = ?`},
	{"polls", "job", asked, `UPDATE polls SET attempt = 2 WHERE job_id = ?`},
	{"polls", "job", asked, `UPDATE polls SET lease = 'x' WHERE job_id = ?`},
	{"polls", "job", submitted, `UPDATE polls SET job_id = ?`},
	{"references", "job", `SELECT 'nobody'`, `UPDATE polls SET job_id = ?`},
}

func TestAuditFindsCorruption(t *testing.T) {
	if len(corruptions) < 30 {
		t.Fatalf("%d corruptions, want 30 or more", len(corruptions))
	}
	tried := map[string]bool{"storage": true, "column-types": true} // by tests of SQLite alone
	for _, c := range corruptions {
		tried[c.check] = true
	}
	dbtest.Each(t, func(t *testing.T, dsn string) {
		f := fill(t, dsn)
		clean, _ := f.corrupt(t, openJob, `UPDATE jobs SET updated_at = updated_at WHERE id = ?`)
		for _, c := range clean.Checks {
			if !c.OK || !tried[c.Name] {
				t.Errorf("check %s: tried %v, %v", c.Name, tried[c.Name], c.Violations)
			}
		}
		for i, c := range corruptions {
			t.Run(fmt.Sprintf("%03d_%s", i, c.check), func(t *testing.T) {
				report, id := f.corrupt(t, c.named, c.change)
				if !names(report, c.check, c.key, id) {
					t.Errorf("%s [%s]: %s does not name it:\n%s",
						c.change, id, c.check, strings.Join(broken(report), "\n"))
				}
			})
		}
	})
}

// names tells whether a check fired and named a row.
func names(r ledger.AuditReport, check, key, id string) bool {
	return !r.OK && slices.ContainsFunc(r.Checks, func(c ledger.AuditCheck) bool {
		return c.Name == check && slices.ContainsFunc(c.Violations, func(v ledger.Violation) bool {
			return v[key] == id && v["problem"] != ""
		})
	})
}
