package dbtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"jobledger/db"
)

// nowhere is the context of what outlives the test that asks for it first.
var nowhere = context.Background()

// Cluster is a PostgreSQL server of the tests' own, reached by a socket in its directory. It ends, and
// its directory goes, with the process that started it, however that ends.
type Cluster struct {
	dir      string
	programs string         // the directory of initdb and pg_ctl
	settings string         // of the server, as options on its command line
	watched  io.WriteCloser // closed by the end of this process
}

// StartCluster starts a server that the test may crash, with parameters such as "fsync=off" beside
// those of every cluster. It needs [NeedCluster].
func StartCluster(t testing.TB, parameters ...string) *Cluster {
	t.Helper()
	c, err := startCluster(parameters...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.watched.Close() })
	return c
}

func startCluster(parameters ...string) (*Cluster, error) {
	c, err := newCluster(parameters...)
	if err != nil {
		return nil, err
	}
	// --no-sync is about the files that initdb makes; the server syncs as always. Small segments of the
	// log are quicker to make, and to copy.
	err = c.run("initdb", "-D", c.data(), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--wal-segsize=1",
		"--no-sync")
	if err == nil {
		err = c.Start()
	}
	return c, err
}

// newCluster makes the directory of a server without data. The shared memory of the server is there too,
// for what a killed one leaves.
func newCluster(parameters ...string) (c *Cluster, err error) {
	c = new(Cluster)
	if c.programs, err = findPrograms(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp("", "jobledger-postgres-"); err != nil {
		return nil, err
	}
	if err := c.chown(); err != nil {
		return nil, err
	}
	c.settings = "-k " + quote(c.dir)
	always := []string{"listen_addresses=", "max_connections=200", "dynamic_shared_memory_type=mmap"}
	for _, p := range append(always, parameters...) {
		c.settings += " -c " + quote(p)
	}
	return c, c.watch()
}

// findPrograms looks for a server in PATH and where Debian and others keep it.
func findPrograms() (dir string, err error) {
	candidates := []string{}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			candidates = append(candidates, path)
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb",
		"/opt/homebrew/opt/postgresql*/bin/initdb", "/usr/local/opt/postgresql*/bin/initdb"} {
		found, _ := filepath.Glob(pattern)
		candidates = append(candidates, found...)
	}
	for _, c := range candidates {
		if dir := filepath.Dir(c); exists(filepath.Join(dir, "pg_ctl")) && exists(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("this machine has not the programs of a PostgreSQL server (initdb, pg_ctl, postgres)")
}

// findTools looks for what [Cluster.Kill] needs beside the programs of the server.
func findTools() error {
	for _, tool := range []string{"ps", "pgrep", "ipcrm", "awk"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("tests that kill a server need ps, pgrep, ipcrm and awk: %w", err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// chown gives the directory to postgres, since the server refuses to run as root.
func (c *Cluster) chown() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return errors.New("this is root, and there is no user postgres to run a server as")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return os.Chown(c.dir, uid, gid)
}

// command prepares a command of the server, or the shell, as a user who may run it.
func (c *Cluster) command(args ...string) *exec.Cmd {
	if os.Geteuid() == 0 {
		args = append([]string{"runuser", "-u", "postgres", "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = c.dir
	return cmd
}

// run runs a program of the server, or sh.
func (c *Cluster) run(program string, args ...string) error {
	out, err := os.CreateTemp("", "jobledger-postgres-log-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	if program != "sh" {
		program = filepath.Join(c.programs, program)
	}
	cmd := c.command(append([]string{program}, args...)...)
	// A file, and not a pipe: the server inherits it, and a pipe would be waited for until its end.
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(text))
	}
	return nil
}

// watch starts a shell that reads the end of a pipe once this process is gone, and then stops the
// server and removes its directory.
func (c *Cluster) watch() error {
	script := fmt.Sprintf(`trap '' INT TERM HUP; cat >/dev/null; %s -D %s -m immediate stop; rm -rf %s`,
		quote(filepath.Join(c.programs, "pg_ctl")), quote(c.data()), quote(c.dir))
	cmd := c.command("sh", "-c", script)
	cmd.Dir = "/"
	var err error
	if c.watched, err = cmd.StdinPipe(); err != nil {
		return err
	}
	return cmd.Start()
}

func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// Start starts the server, or starts it again after a crash, and waits until it lets in.
func (c *Cluster) Start() error {
	return c.run("pg_ctl", "-D", c.data(), "-l", filepath.Join(c.dir, "log"), "-w", "-o", c.settings, "start")
}

// DSN names a database of the server.
func (c *Cluster) DSN(database string) string {
	return "postgres://postgres@/" + database + "?host=" + url.QueryEscape(c.dir)
}

// Database makes a new ledger on the server and gives its DSN.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name, err := createDatabase(c.DSN("postgres"), "template1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Create(t.Context(), c.DSN(name), db.Options{}); err != nil {
		t.Fatal(err)
	}
	return c.DSN(name)
}
