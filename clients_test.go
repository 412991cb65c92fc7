//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jobledger/db/dbtest"
)

// need finds a program. Where it is not installed the test says so and does not run; where CI=true, it
// fails.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s must be here where CI=true", program)
	default:
		t.Skipf("not run: %s is not installed", program)
	}
	return path
}

// TestClients runs the small programs in examples that use the server, against the server: each sells a
// job and is told of its end.
func TestClients(t *testing.T) {
	t.Run("python", func(t *testing.T) {
		sellsAJob(t, need(t, "python3"), "examples/client.py")
	})
	t.Run("typescript", func(t *testing.T) {
		sellsAJob(t, need(t, "node"), compileTypeScript(t, "examples/client.ts"))
	})
}

// compileTypeScript checks a program's types and gives the JavaScript that it becomes.
func compileTypeScript(t *testing.T, source string) string {
	t.Helper()
	compiler, err := filepath.EvalSymlinks(need(t, "tsc")) // .../node_modules/typescript/bin/tsc
	if err != nil {
		t.Fatal(err)
	}
	types := filepath.Join(filepath.Dir(compiler), "../../@types")
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), compiler, "--strict", "--noUncheckedIndexedAccess",
		"--target", "es2022", "--module", "nodenext", "--typeRoots", types, "--types", "node",
		"--outDir", dir, source).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", source, err, out)
	}
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".ts")+".js")
}

func sellsAJob(t *testing.T, interpreter, program string) {
	dsn := dbtest.SQLite(t)
	var token struct{ Secret string }
	text := must(t, dsn, "token", "create", "--name", "shop", "--scope", "operator", "--json")
	if err := json.Unmarshal([]byte(text), &token); err != nil || token.Secret == "" {
		t.Fatal(text, err)
	}
	url, stop := serving(t, dsn, "--deliver", "--allow-private")
	c := exec.CommandContext(t.Context(), interpreter, program)
	c.Env = append(os.Environ(), "JOBLEDGER_URL="+url, "JOBLEDGER_TOKEN="+token.Secret)
	out, err := c.CombinedOutput()
	if want := "used 5, returned 2, told of job.completed\n"; err != nil || string(out) != want {
		t.Errorf("%s: %v, got %s want %s", program, err, out, want)
	}
	stop()
	must(t, dsn, "audit", "--quiescent")
}

// serving starts the server as a process and gives its address. stop ends it as an operator does, and waits.
func serving(t *testing.T, dsn string, args ...string) (url string, stop func()) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "jobledger",
		append([]string{"serve", "--addr", "127.0.0.1:0", "--json"}, args...)...)
	c.Env = append(os.Environ(), "JOBLEDGER_DB="+dsn)
	var log strings.Builder
	c.Stderr = &log
	stdout, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ URL string }
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || json.Unmarshal([]byte(line), &answer) != nil {
		t.Fatalf("serve: %v %s\n%s", err, line, &log)
	}
	return answer.URL, func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("serve ended with %v\n%s", err, &log)
		}
	}
}
