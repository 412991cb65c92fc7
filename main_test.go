//go:build unix

package main

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/db/dbtest"
)

// objects lists what a database consists of.
func objects(t *testing.T, path string) (list []string) {
	t.Helper()
	d, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rows, err := d.Query(`SELECT type || ' ' || name || ' ' || tbl_name || ' ' || COALESCE(sql, '')
		FROM sqlite_schema ORDER BY type, name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var object string
		if err := rows.Scan(&object); err != nil {
			t.Fatal(err)
		}
		list = append(list, object)
	}
	return list
}

// TestSchemaFile: what schema prints is what init creates.
func TestSchemaFile(t *testing.T) {
	created, written := dbtest.SQLite(t), filepath.Join(t.TempDir(), "written.db")
	d, err := sql.Open("sqlite", written)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Exec(must(t, created, "schema")); err != nil {
		t.Fatal(err)
	}
	got, want := objects(t, written), objects(t, created)
	if !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("schema.sql makes:\n%s\ninit makes:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSignals: the first signal ends the command with 128 plus its number, and the second at once.
func TestSignals(t *testing.T) {
	path := dbtest.SQLite(t)
	d, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	lock, err := d.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, c := range []struct {
		signal syscall.Signal
		times  int
	}{{syscall.SIGINT, 1}, {syscall.SIGTERM, 1}, {syscall.SIGTERM, 2}} {
		if _, err := lock.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		child := exec.CommandContext(t.Context(), "jobledger", "--db", path, "grant", "alice", "5", "--key", "k")
		child.Stderr = &stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // it is waiting for the lock by now
		for range c.times {
			if err := child.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		began := time.Now()
		if c.times == 1 { // a graceful end finishes what was begun: let it
			if _, err := lock.ExecContext(t.Context(), "ROLLBACK"); err != nil {
				t.Fatal(err)
			}
		}
		err := child.Wait()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 128+int(c.signal) || time.Since(began) > 5*time.Second {
			t.Errorf("%v: got %v after %v, stderr %s", c, err, time.Since(began), &stderr)
		}
	}
	if _, err := lock.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	must(t, path, "grant", "alice", "5", "--key", "k")
	if got := must(t, path, "balance", "alice", "--json"); !strings.Contains(got, `"available":5,`) {
		t.Errorf("got %s", got)
	}
}

// TestReadOnly: a file that may not be written is refused with one line.
func TestReadOnly(t *testing.T) {
	folder, err := os.MkdirTemp("", "jobledger-read-only-") // where any user may look
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path, binary := filepath.Join(folder, "ledger.db"), filepath.Join(folder, "jobledger")
	copyFile(t, dbtest.SQLite(t), path, 0o444)
	copyFile(t, os.Args[0], binary, 0o755)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	child := exec.CommandContext(t.Context(), binary, "--db", path, "grant", "alice", "5", "--key", "k")
	child.Stdout, child.Stderr = &stdout, &stderr
	if os.Geteuid() == 0 { // root may write to anything: be nobody
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	exit, ok := errors.AsType[*exec.ExitError](child.Run())
	if !ok || exit.ExitCode() != 2 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 ||
		!strings.HasPrefix(stderr.String(), "jobledger: db: cannot read "+path) {
		t.Errorf("got %v, stdout %q, stderr %q", exit, &stdout, &stderr)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed: %v", err)
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestClosedOutput: a reader that has left, as head does, is no reason to complain; a full disk is.
func TestClosedOutput(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader.Close()
	var stderr bytes.Buffer
	child := exec.CommandContext(t.Context(), "jobledger", "schema")
	child.Stdout, child.Stderr = writer, &stderr
	exit, ok := errors.AsType[*exec.ExitError](child.Run())
	if status, is := exit.Sys().(syscall.WaitStatus); !ok || !is || status.Signal() != syscall.SIGPIPE ||
		stderr.Len() > 0 {
		t.Errorf("closed pipe: got %v, stderr %q", exit, &stderr)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return // only Linux has one
	}
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	child = exec.CommandContext(t.Context(), "jobledger", "schema")
	child.Stdout, child.Stderr = full, &stderr
	exit, ok = errors.AsType[*exec.ExitError](child.Run())
	if !ok || exit.ExitCode() != 1 || !strings.HasPrefix(stderr.String(), "jobledger: write the answer: ") {
		t.Errorf("full disk: got %v, stderr %q", exit, &stderr)
	}
}
