package cli_test

import (
	"strings"
	"testing"

	"jobledger/db/dbtest"
)

// TestNothingSteersATerminal: ids may have characters that turn the order of a line around, and texts any;
// no answer prints them as they are.
func TestNothingSteersATerminal(t *testing.T) {
	const odd, text = "a\u202eb", "\x1b[2J\u2066c"
	dsn := dbtest.SQLite(t)
	for _, line := range []string{
		"grant ID 9 --key ID --reason TEXT", "job create ID --owner ID --cost 2", "job submit ID --provider ID",
		"job uncertain ID --attempt 1 --reason TEXT", "reconcile list", "job list", "job show ID", "job explain ID",
		"reconcile reject ID --evidence TEXT --operator ID", "notify ID failed --reason TEXT", "job explain ID",
		"balance", "balance ID --lots", "entries", "entries --owner ID", "events list", "events deliveries",
		"token create --name ID --scope read", "token list", "revoke ID 9 --key ID --reason TEXT", "sweep", "audit",
		"job list --after zz", "doctor", "job cancel ID",
	} {
		line = strings.NewReplacer("ID", odd, "TEXT", text).Replace(line)
		stdout, stderr, exit := run(t, dsn, line)
		if exit != 0 || strings.ContainsAny(stdout+stderr, "\u202e\x1b\u2066") {
			t.Errorf("%q: exit %d, %q, %q", line, exit, stdout, stderr)
		}
	}
}
