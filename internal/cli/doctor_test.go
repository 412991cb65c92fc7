package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// doctor runs the command with --json.
func doctor(t *testing.T, dsn string) (e ledger.Examination, exit int) {
	t.Helper()
	stdout, stderr, exit := run(t, dsn, "doctor --json")
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || (stderr == "") != (exit == 0) {
		t.Fatalf("exit %d, %s, %s, %v", exit, stdout, stderr, err)
	}
	return e, exit
}

// A healthy ledger has one line per check, the engine's and its own.
func TestDoctor(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		e, _ := doctor(t, dsn)
		stdout, _, _ := run(t, dsn, "doctor")
		for _, f := range e.Findings {
			if !strings.Contains(stdout, "  "+f.Name+": ") {
				t.Errorf("%+v is not in %s", f, stdout)
			}
		}
		for _, line := range []string{"ok       schema: version ", "\nok       sweep: ", "\nchecks: "} {
			if !strings.Contains(stdout, line) {
				t.Errorf("%q is not in %q", line, stdout)
			}
		}
	})
}

// With a providers file, doctor counts the accepted jobs at providers that it does not name.
func TestDoctorProviders(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		file := filepath.Join(t.TempDir(), "providers.json")
		for name, text := range map[string]string{
			file: `{"providers":[{"name":"acme","preset":"replicate","secret_file":"secret"}]}`,
			filepath.Join(filepath.Dir(file), "secret"): "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, line := range []string{
			"grant alice 7 --key k", "job create j1 --owner alice --cost 7", "job submit j1 --provider acne",
			"job accepted j1 --attempt 1 --upstream-id u",
		} {
			if _, stderr, exit := run(t, dsn, line); exit != 0 {
				t.Fatalf("%s: exit %d, %s", line, exit, stderr)
			}
		}
		stdout, _, exit := run(t, dsn, "doctor --providers "+file)
		line := "\nWARNING  providers: accepted jobs at providers that the file does not name: 1 at \"acne\"\n"
		if exit != 0 || !strings.Contains(stdout, line) {
			t.Errorf("exit %d, %s, want %s", exit, stdout, line)
		}
		if stdout, _, _ := run(t, dsn, "doctor"); strings.Contains(stdout, " providers: ") {
			t.Errorf("without the file: %s", stdout)
		}
		if _, stderr, exit := run(t, dsn, "doctor --providers "+file+"-none"); exit != 2 {
			t.Errorf("without such a file: exit %d, %s", exit, stderr)
		}
	})
}

// A warning changes no exit status; a problem is an error, after all that was found.
func TestDoctorFinds(t *testing.T) {
	path := dbtest.SQLite(t)
	if e, exit := doctor(t, path); !e.OK || exit != 0 {
		t.Errorf("healthy: exit %d, %+v", exit, e)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if e, exit := doctor(t, path); !e.OK || exit != 0 {
		t.Errorf("readable by all: exit %d, %+v", exit, e)
	}
	stdout, _, _ := run(t, path, "doctor")
	if !strings.Contains(stdout, "\nWARNING  file-modes: others than the owner may use test.db (0644)") ||
		!strings.Contains(stdout, "\n         to do: chmod 600 "+path+"*\n") ||
		!strings.HasSuffix(stdout, ", problems: 0, warnings: 1\n") {
		t.Errorf("readable by all: %s", stdout)
	}
	statement(t, path, `PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'lots_due'`)
	if e, exit := doctor(t, path); e.OK || exit != 8 {
		t.Errorf("damaged: exit %d, %+v", exit, e)
	}
	stdout, stderr, exit := run(t, path, "doctor")
	if exit != 8 || !strings.Contains(stdout, "\nPROBLEM  integrity: ") ||
		stderr != "jobledger: doctor: problems: 2: integrity, audit\n" {
		t.Errorf("damaged: exit %d, %s, %s", exit, stdout, stderr)
	}
	stdout, stderr, exit = run(t, path+"-none", "doctor")
	if exit != 2 || stdout != "" || !strings.Contains(stderr, "no ledger at") {
		t.Errorf("missing: exit %d, %s, %s", exit, stdout, stderr)
	}
}
