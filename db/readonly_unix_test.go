//go:build unix

package db_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// The superuser may write anything, so for it the test runs in a child with no rights.
func TestReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	for _, c := range []struct {
		name            string
		file, directory os.FileMode
	}{
		{"file", 0o444, 0o755}, {"directory", 0o600, 0o555}, {"both", 0o444, 0o555},
		{"unreadable file", 0o000, 0o755}, {"unreadable directory", 0o600, 0o000},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := dbtest.SQLite(t)
			before := contents(t, filepath.Dir(path))
			must(t, os.Chmod(path, c.file))
			must(t, os.Chmod(filepath.Dir(path), c.directory))
			err := openAndWrite(t, path)
			newPath := filepath.Join(filepath.Dir(path), "new.db")
			created, createErr := db.Create(t.Context(), newPath, db.Options{})
			must(t, os.Chmod(filepath.Dir(path), 0o700))
			must(t, os.Chmod(path, 0o600))
			refused := !created && createErr != nil && strings.Contains(createErr.Error(), newPath)
			if c.directory&0o200 == 0 && !refused {
				t.Errorf("create in a read-only directory: %v, %v", created, createErr)
			}
			must(t, os.RemoveAll(newPath))
			kind := db.ErrReadOnly
			if strings.HasPrefix(c.name, "unreadable") {
				kind = db.ErrNoLedger
			}
			wantIs(t, err, kind)
			text := fmt.Sprint(err)
			if strings.Contains(text, "\n") || kind == db.ErrNoLedger && !strings.Contains(text, path) {
				t.Errorf("%q is not one line that names %s", text, path)
			}
			if after := contents(t, filepath.Dir(path)); strings.Join(before, "\n") != strings.Join(after, "\n") {
				t.Errorf("the directory held %v and holds %v", before, after)
			}
		})
	}
}

// openAndWrite gives the first error: a file that can be read may be opened, but not written.
func openAndWrite(t *testing.T, path string) error {
	d, err := db.Open(t.Context(), path, db.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(`CREATE TABLE marks (name TEXT)`)
		return err
	})
}

func asNobody(t *testing.T) {
	dir, err := os.MkdirTemp("", "nobody")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777))
	copied := filepath.Join(dir, "test")
	must(t, copyFile(copied, binary(t)))
	cmd := child(t, copied, dir)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "PASS\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

func copyFile(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}
