package db_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A file that can only be read is told from one that can be written, without a try.
func TestExamineUnwritable(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t) // the superuser may write anything
		return
	}
	path := dbtest.SQLite(t)
	wantFinding(t, path, "writable", db.Fine, "")
	must(t, os.Chmod(path, 0o400))
	wantFinding(t, path, "writable", db.Problem, path+" cannot be written: permission denied")
	must(t, os.Chmod(path, 0o600))
	must(t, os.Chmod(filepath.Dir(path), 0o500)) // the last look has left its -shm there
	wantFinding(t, path, "writable", db.Problem, filepath.Dir(path)+" cannot be written")
	must(t, os.Chmod(filepath.Dir(path), 0o700))
}

// Another program that has the file open is found, and so is one that has the file that was there before.
func TestExamineUsers(t *testing.T) {
	path := dbtest.SQLite(t)
	wantFinding(t, path, "users", db.Fine, "jobledger: 0")
	file, err := os.Open(path)
	must(t, err)
	defer file.Close()
	sleep := exec.Command("sleep", "60")
	sleep.Stdin = file
	must(t, sleep.Start())
	defer func() { _, _ = sleep.Process.Kill(), sleep.Wait() }()
	program := fmt.Sprintf(" (%d)", sleep.Process.Pid)
	eventually(t, func() bool { // until then it is this program
		return finding(t, path, db.Options{}, "users").Level == db.Warning
	})
	wantFinding(t, path, "users", db.Warning, program)
	must(t, os.Remove(path))
	_, err = db.Create(t.Context(), path, db.Options{})
	must(t, err)
	wantFinding(t, path, "users", db.Problem, program)
}
