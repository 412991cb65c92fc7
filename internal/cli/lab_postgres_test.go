package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/db/dbtest"
)

// TestServeChecksTheLabServer: a server that the lab could not use is refused when serve starts, in one line
// and without its password; a fitting one is not.
func TestServeChecksTheLabServer(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		const guest = "jobledger_test_guest"
		dbtest.Exec(t, dsn, `DROP ROLE IF EXISTS `+guest, `CREATE ROLE `+guest+` LOGIN`)
		defer dbtest.Exec(t, dsn, `DROP ROLE `+guest)
		missing := strings.Replace(dsn, "/jobledger_test_", "/none_", 1)
		for server, want := range map[string]string{
			"postgres://u:secret@127.0.0.1:1/x":               "the server cannot be used: ",
			"postgres://u:secret@127.0.0.1:1/x?sslmode=maybe": "it is not a PostgreSQL URL that can be used",

			missing:                `the server cannot be used: database "none_`,
			dsn + "&user=" + guest: `the server lets "` + guest + `" make no scratch databases`,
			dsn:                    "", // what is refused is the address, that comes after it
		} {
			if want = "lab-db: " + want; server == dsn {
				want = "addr: "
			}
			stdout, stderr, exit := run(t, dsn, "serve --addr 127.0.0.1:99999 --lab-db "+server)
			if exit != 2 || stdout != "" || !strings.HasPrefix(stderr, "jobledger: "+want) ||
				strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "secret") {
				t.Errorf("%s: exit %d, %q, %q, want %q", server, exit, stdout, stderr, want)
			}
		}
	})
}

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
