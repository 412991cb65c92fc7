//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/db/dbtest"
)

// B128: a backup that is killed has left nothing under its name, or all of it; so has a restore. A signal
// ends both with its status.
func TestB128BackupKilled(t *testing.T) {
	c := dbtest.StartCampaign(t, "T06", 12)
	source := dbtest.SQLite(t)
	must(t, source, "import", rowsOf(t, 500))
	whole := must(t, source, "export")
	file := filepath.Join(t.TempDir(), "backup.db")
	began := time.Now()
	must(t, source, "backup", file)
	lasts, random := time.Since(began), c.Random(0)
	for n, ended := 0, 0; n < c.Wanted; {
		target := filepath.Join(t.TempDir(), "target.db")
		args := [][]string{{"--db", source, "backup", target}, {"--db", target, "restore", file}}[n%2]
		signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM}[n%3]
		child := exec.CommandContext(t.Context(), "jobledger", args...)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(lasts))))
		_ = child.Process.Signal(signal)
		status := exitOf(child.Wait())
		if _, err := os.Stat(target); err == nil {
			if got := must(t, target, "export"); got != whole {
				t.Fatalf("%v was ended by %v and left half of the ledger", args, signal)
			}
		} else if status == 0 {
			t.Fatalf("%v succeeded, and there is no %s: %v", args, target, err)
		}
		if status == 0 {
			if ended++; ended > 20*c.Wanted {
				t.Fatal("the backups are too quick to be killed")
			}
			continue
		}
		if signal == syscall.SIGTERM && status != 128+int(signal) && status != -1 {
			t.Errorf("%v: status %d after %v", args, status, signal)
		}
		c.Done(true)
		n++
	}
	must(t, source, "audit")
}

// exitOf is the exit status of a command: -1 if a signal ended it.
func exitOf(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

// TestBackupForms holds the documents of backup and restore.
func TestBackupForms(t *testing.T) {
	source, folder := dbtest.SQLite(t), t.TempDir()
	prepare(t, source)
	file, restored := filepath.Join(folder, "backup.db"), filepath.Join(folder, "restored.db")
	const want = "as_of audited bytes from open_jobs schema_version to"
	document := must(t, source, "backup", file, "--json")
	got := strings.Join(fields(t, document), " ")
	if got != want || !strings.Contains(document, `"audited":true`) {
		t.Errorf("backup: %s", document)
	}
	document = must(t, restored, "restore", file, "--json", "--no-audit")
	got = strings.Join(fields(t, document), " ")
	if got != want || !strings.Contains(document, `"audited":false`) {
		t.Errorf("restore: %s", document)
	}
	if must(t, restored, "export") != must(t, source, "export") {
		t.Error("what was restored is another ledger")
	}
	refused(t, source, 2, `back PostgreSQL up with pg_dump`, "backup", filepath.Join(folder, "b.db"),
		"--db", "postgres://localhost/x")
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		refused(t, dsn, 2, `pg_dump.*copy`, "backup", filepath.Join(folder, "b.db"))
		refused(t, dsn, 2, `pg_dump.*copy`, "restore", file)
	})
}
