package db_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A process may open and close its own database file, as a backup or a checksum does, without losing
// SQLite's locks on it. Without them another program that comes and goes takes itself for the last
// user, deletes the WAL, and the next acknowledged write goes to a file that no longer has a name.
func TestLocksSurviveAForeignClose(t *testing.T) {
	path := dbtest.SQLite(t)
	d := open(t, path, db.Options{})
	must(t, d.Write(t.Context(), mark("acknowledged", nil)))
	file, err := os.Open(path)
	must(t, err)
	must(t, file.Close())

	file, err = os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer file.Close()
	// The bytes that every user of the file has a shared lock on, and its last user an exclusive one.
	shared := syscall.Flock_t{Type: syscall.F_WRLCK, Start: 0x40000002, Len: 510}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &shared)
	if !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EACCES) {
		t.Errorf("another user got the exclusive lock of an open database (%v)", err)
	}
	must(t, d.Write(t.Context(), mark("after", nil)))
	wantMarks(t, reopen(t, path, db.Options{}), "acknowledged", "after")
}
