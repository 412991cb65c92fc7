package db_test

import (
	"os"
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
