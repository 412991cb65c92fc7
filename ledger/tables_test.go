package ledger_test

import (
	"fmt"
	"testing"

	"jobledger/ledger"
)

// What the code must never write, the tables refuse too: the right statement first, to know that it is for
// the value that the others are refused.
func TestTablesRefuse(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.give("g", 10)
		b.ok(b.create("j", 5, ledger.ModeHold))
		b.refuses(
			`UPDATE balances SET available = -1`, `UPDATE balances SET held = -1`, `UPDATE balances SET used = -1`,
			`UPDATE balances SET expired = -1`, `UPDATE balances SET available = 9007199254740992`,
			`UPDATE balances SET seq = -1`, `UPDATE balances SET head = NULL`,
			`UPDATE lots SET available = -1, amount = amount - 6`, `UPDATE lots SET available = available + 1`,
			`UPDATE lots SET held = held + 1`, `UPDATE lots SET used = used + 1`,
			`UPDATE lots SET expired = expired + 1`, `UPDATE lots SET amount = amount + 1`,
			`UPDATE lots SET effective_at = 5, expires_at = 5`, `UPDATE lots SET priority = -1`,
			`UPDATE lots SET owner = 'nobody'`, `UPDATE jobs SET owner = 'nobody'`,
			`UPDATE jobs SET settled_cost = 5`, `UPDATE jobs SET status = 'done'`, `UPDATE jobs SET attempt = -1`,
			`UPDATE jobs SET status = 'completed', settled_cost = 6, settled_source = 'poll', settled_attempt = 0,
			        settled_at = 1`,
			`UPDATE jobs SET status = 'failed', settled_cost = 1, settled_source = 'poll', settled_attempt = 0,
			        settled_at = 1`,
			`UPDATE entries SET reason = 'x'`, `DELETE FROM entries`, `UPDATE postings SET amount = amount`,
			`DELETE FROM postings`, `DELETE FROM lots`, `DELETE FROM balances`, `DELETE FROM jobs`,
			insertedEntry("grant:g", 3, 1), insertedEntry("grant:new", 2, 1), insertedEntry("grant:new", 3, 0))
		b.exec(insertedEntry("grant:new", 3, 1))
		b.exec(`DROP TRIGGER entries_no_delete`, `DELETE FROM entries WHERE event_key = 'grant:new'`)
	})
}

// insertedEntry writes a journal line of demo, which has two.
func insertedEntry(key string, seq, amount int) string {
	return fmt.Sprintf(`
		INSERT INTO entries (id, event_key, owner, seq, kind, amount, job_id, available_after, held_after,
		                     used_after, expired_after, reason, metadata, occurred_at, recorded_at, hash)
		SELECT 'x', '%s', owner, %d, kind, %d, NULL, 1, 0, 0, 0, '', '{}', 1, 1, hash
		FROM entries WHERE seq = 1`, key, seq, amount)
}
