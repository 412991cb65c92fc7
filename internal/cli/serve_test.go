package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// TestServeWarns: a server that takes callbacks which settle nothing, and asks nobody, says so once.
func TestServeWarns(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "providers.json")
	for name, text := range map[string]string{
		filepath.Join(folder, "secret"): "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		file: `{"providers":[{"name":"first","preset":"replicate","secret_file":"secret"},
			{"name":"second","preset":"replicate","secret_file":"secret","authority":"poll",
			"poll":{"secret_file":"secret"}}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const nowhere = "serve --addr 127.0.0.1:99999 --providers " // it ends before it listens
	for flag, want := range map[string]int{"": 1, " --poll": 0} {
		_, stderr, _ := run(t, dbtest.SQLite(t), nowhere+file+flag)
		if got := strings.Count(stderr, `"level":"WARN"`); got != want || strings.Count(stderr, "second") != want ||
			strings.Contains(stderr, "first") {
			t.Errorf("%q: the log is %s", flag, stderr)
		}
	}
}

// TestServeRefuses: what would be open to others, or cannot be served, is refused before anything listens.
func TestServeRefuses(t *testing.T) {
	dsn := dbtest.SQLite(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"serve --addr 0.0.0.0:0":                            "addr: others can reach 0.0.0.0:0: give --tls-cert",
		"serve --addr :0":                                   "addr: others can reach :0: give --tls-cert",
		"serve --addr [::]:0":                               "addr: others can reach",
		"serve --addr example.org:0":                        "addr: others can reach",
		"serve --addr 127.0.0.1":                            `addr: "127.0.0.1" is not HOST:PORT`,
		"serve --addr 0.0.0.0:0 --behind-proxy":             "nobody has a token",
		"serve --addr 127.0.0.1:0 --behind-proxy":           "nobody has a token",
		"serve --addr 127.0.0.1:0 --tls-cert " + empty:      "--tls-cert and --tls-key go together",
		"serve --addr 127.0.0.1:99999":                      "addr: ",
		"serve --tls-cert " + empty + " --tls-key " + empty: "tls-cert: ",
		"serve --providers " + empty:                        "providers: ",
		"serve --poll":                                      "poll: there are no --providers to ask",
		"serve --addr 127.0.0.1:0 extra":                    "",
		"serve --addr 127.0.0.1:99999 --lab-db lab.db":      "lab-db: the lab takes a PostgreSQL server",
		"serve --addr 127.0.0.1:99999 --lab-db=":            "lab-db: the lab takes a PostgreSQL server",
	} {
		stdout, stderr, exit := run(t, dsn, line)
		if exit != ledger.Invalid.Info().Exit || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, %q", line, exit, stdout, stderr)
		}
	}
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.CreateToken(t.Context(), "gone", ledger.ScopeRead); err != nil {
		t.Fatal(err)
	}
	if _, err := l.RevokeToken(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	_, stderr, exit := run(t, dsn, "serve --addr 0.0.0.0:0 --behind-proxy")
	if exit != ledger.Invalid.Info().Exit || !strings.Contains(stderr, "nobody has a token") {
		t.Errorf("a revoked token: exit %d, %q", exit, stderr)
	}
}
