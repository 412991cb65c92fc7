//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/webhook"
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

// TestClientsRefuse: the receivers of those programs take what is signed and fresh, and nothing else.
func TestClientsRefuse(t *testing.T) {
	t.Run("python", func(t *testing.T) {
		receives(t, need(t, "python3"), "examples/client.py")
	})
	t.Run("typescript", func(t *testing.T) {
		receives(t, need(t, "node"), compileTypeScript(t, "examples/client.ts"))
	})
}

// receives runs a program against a server that sends events to its endpoint, and then refuses to add it.
func receives(t *testing.T, interpreter, program string) {
	got := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var to struct{ URL, Secret string }
		if err := json.NewDecoder(r.Body).Decode(&to); err != nil {
			t.Error(err)
		}
		for name, age := range map[string]time.Duration{"fresh": 0, "stale": time.Hour, "forged": 0} {
			got[name] = sends(t, to.URL, to.Secret, name == "forged", time.Now().Add(-age))
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		w.Write([]byte(`{"code":"INVALID","detail":"that was all","retryable":false}`))
	}))
	defer s.Close()
	c := exec.CommandContext(t.Context(), interpreter, program)
	c.Env = append(os.Environ(), "JOBLEDGER_URL="+s.URL, "JOBLEDGER_TOKEN=jl_none")
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "INVALID: that was all") {
		t.Errorf("%s: %v, %s", program, err, out)
	}
	if want := map[string]int{"fresh": 204, "stale": 401, "forged": 401}; !maps.Equal(got, want) {
		t.Errorf("answered %v, want %v", got, want)
	}
}

// sends sends an event, under a signature that is no ASCII if it is forged, and gives the answer's status.
func sends(t *testing.T, url, secret string, forged bool, at time.Time) int {
	body := `{"type":"job.completed","data":{"job":"another"}}`
	keys, err := webhook.ParseKeys(webhook.Standard, secret)
	if err != nil {
		t.Error(err)
		return 0
	}
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err == nil {
		r.Header, err = webhook.Sign(keys, "m", at, []byte(body))
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	if forged {
		r.Header.Set(webhook.HeaderSignature, "v1,é")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	response.Body.Close()
	return response.StatusCode
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
