//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/db/dbtest"
)

// TestRoleThatOwnsNothing: on PostgreSQL everything but init works for a role that owns no table and has the
// rights that doctor asks for; and with these rights nobody undoes the journal, or how a job ended.
func TestRoleThatOwnsNothing(t *testing.T) {
	if !dbtest.NeedCluster(t) { // roles are of a whole server: one of our own
		return
	}
	dsn := dbtest.StartCluster(t).Database(t)
	owner, err := dbtest.OpenRuled(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	for _, statement := range []string{
		`CREATE ROLE clerk LOGIN`, `GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO clerk`,
		`GRANT DELETE ON polls TO clerk`,
	} {
		if _, err := owner.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	dsn = strings.Replace(dsn, "postgres@", "clerk@", 1)
	folder := t.TempDir()
	secret := filepath.Join(folder, "hook.secret")
	if err := os.WriteFile(secret, []byte(hookSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	books := writeFile(t, "books.jsonl", `{"type":"lot","owner":"bob","ref":"r","available":5}`+"\n")
	for _, line := range []string{
		"grant alice 100 --key k", "endpoint add http://127.0.0.1:1/hook --secret-file " + secret,
		"job create j1 --owner alice --cost 7", "job submit j1 --provider p",
		"job accepted j1 --attempt 1 --upstream-id u", "notify j1 completed --cost 5", "notify j1 failed",
		"job create j2 --owner alice --cost 7 --mode charge", "job submit j2 --provider p",
		"reconcile reject j2 --evidence e --operator sue",
		"job create j3 --owner alice --cost 7 --deadline 1ms", "sweep", "revoke alice 5 --key r --reason r",
		"import " + books, "token create --name n --scope read --json", "token revoke n",
		"endpoint rotate http://127.0.0.1:1/hook --secret-file " + secret, "audit", "doctor",
		"events replay settled:j1",
	} {
		must(t, dsn, strings.Fields(line)...)
	}
	before := must(t, dsn, "export")
	clerk, err := dbtest.OpenRuled(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer clerk.Close()
	for _, statement := range []string{
		`UPDATE entries SET amount = amount + 1`, `DELETE FROM entries`, `TRUNCATE entries`,
		`UPDATE postings SET amount = 9`, `DELETE FROM postings`, `UPDATE events SET payload = '{}'`,
		`DELETE FROM lots`, `DELETE FROM balances`, `DELETE FROM jobs`,
		`UPDATE jobs SET status = 'pending', settled_cost = NULL, settled_source = NULL,
			settled_attempt = NULL, settled_at = NULL WHERE id = 'j1'`,
		`UPDATE jobs SET cost = cost + 1`, `UPDATE balances SET available = -1`,
		`UPDATE tokens SET revoked_at = NULL`, `UPDATE tokens SET scope = 'operator'`, `DELETE FROM tokens`,
		`DELETE FROM reports`, `DELETE FROM answers`, `DROP TRIGGER entries_no_update ON entries`,
		`ALTER TABLE entries DISABLE TRIGGER ALL`, `DROP TABLE entries`,
		`SET session_replication_role = replica`,
	} {
		if _, err := clerk.Exec(statement); err == nil {
			t.Errorf("%s: was not refused", statement)
		}
	}
	if after := must(t, dsn, "export"); after != before {
		t.Errorf("the books changed by %s", news(before, after))
	}
}
