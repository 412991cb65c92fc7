package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/db/dbtest"
)

// TestLabRunOnServer: --db names a server for a scratch database; lessons of SQLite refuse it.
func TestLabRunOnServer(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		for line, file := range map[string]string{
			"lab run lost-update":                "lost-update",
			"lab run status-then-refund --fixed": "status-then-refund-fixed",
		} {
			stdout, stderr, exit := run(t, dsn, line)
			want, err := os.ReadFile(filepath.Join("..", "racelab", "lesson", "testdata", "postgres", file+".txt"))
			if exit != 0 || stderr != "" || err != nil || stdout != string(want) {
				t.Errorf("%s: exit %d, %v, %s, got\n%s", line, exit, err, stderr, stdout)
			}
		}
		_, stderr, exit := run(t, dsn, "lab run deferred-upgrade")
		if exit != 2 || !strings.Contains(stderr, "db: deferred-upgrade is about sqlite: leave --db out") {
			t.Errorf("exit %d, %s", exit, stderr)
		}
	})
}
