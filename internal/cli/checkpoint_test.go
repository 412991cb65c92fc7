package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/db/dbtest"
)

func TestCheckpoints(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		file := filepath.Join(t.TempDir(), "c.jsonl")
		run(t, dsn, "grant alice 10 --key a")
		run(t, dsn, "grant bob 10 --key b")
		if _, errs, exit := run(t, dsn, "audit --checkpoint "+file); exit != 0 {
			t.Fatal(errs)
		}
		text, err := os.ReadFile(file)
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("the file is %v, %v", info, err)
		}
		if lines := strings.Split(string(text), "\n"); err != nil || len(lines) != 4 ||
			!strings.HasPrefix(lines[0], `{"owner":"alice","seq":1,"head":"`) || lines[2] != `{"owners":2}` {
			t.Fatalf("%v: %s", err, text)
		}
		run(t, dsn, "grant alice 5 --key c")
		out, errs, exit := run(t, dsn, "audit --since "+file+" --checkpoint "+file)
		if exit != 0 || !strings.Contains(out, "ok      hash-chain\n") || strings.Contains(out, "ok      lots") ||
			!strings.Contains(out, "not checked: entries up to the checkpoint, and storage, ") {
			t.Errorf("exit %d: %s%s", exit, out, errs)
		}
		for line := range strings.Lines(out) {
			if len(line) > 81 {
				t.Errorf("%q is too long", line)
			}
		}
		text, err = os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), `{"owner":"alice","seq":2,`) {
			t.Errorf("the next checkpoint: %s, %v", text, err)
		}
		wrong := strings.Replace(string(text), `"seq":1`, `"seq":7`, 1)
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, exit = run(t, dsn, "audit --json --since "+file+" --checkpoint "+file)
		if exit != 8 || !strings.Contains(out, "expected at least 7") ||
			!strings.Contains(out, `"not_checked":["storage`) {
			t.Errorf("exit %d: %s%s", exit, out, errs)
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != wrong {
			t.Errorf("a broken ledger was given a checkpoint: %s, %v", after, err)
		}
	})
}

func TestCheckpointsThatAreNone(t *testing.T) {
	dsn := dbtest.SQLite(t)
	file := filepath.Join(t.TempDir(), "c.jsonl")
	for _, text := range []string{
		"", "hello", "[]", `{"owners":1}`, `{"owner":"a","seq":1,"head":"00"}`, `{"owner":"a","seq":0,"head":"00"}`,
		`{"owner":"a","seq":1,"head":"xx"}` + "\n" + `{"owners":1}`,
		`{"seq":1,"head":"00"}` + "\n" + `{"owners":1}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, exit := run(t, dsn, "audit --since "+file)
		if exit != 2 || out != "" || !strings.Contains(errs, "since") {
			t.Errorf("%q: exit %d: %s%s", text, exit, out, errs)
		}
		// Nor is it written over, unless it is empty.
		out, errs, exit = run(t, dsn, "audit --checkpoint "+file)
		after, err := os.ReadFile(file)
		kept := exit == 2 && out == "" && strings.Contains(errs, "checkpoint: ") && string(after) == text
		if err != nil || kept != (text != "") {
			t.Errorf("%q: written over: exit %d: %s%s: %s, %v", text, exit, out, errs, after, err)
		}
	}
	for _, line := range []string{
		"audit --since /no/such", "audit --checkpoint /no/such/c", "audit --quiescent --since " + file,
		"audit --checkpoint " + dsn,
	} {
		if out, errs, exit := run(t, dsn, line); exit != 2 || out != "" {
			t.Errorf("%s: exit %d: %s%s", line, exit, out, errs)
		}
	}
}
