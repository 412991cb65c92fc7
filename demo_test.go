//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemoCommand: a demo ends clean, and leaves nothing behind unless it is told to.
func TestDemoCommand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	left := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "jobledger-demo-*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	shown := must(t, "", "demo", "--jobs", "21", "--seed", "1")
	for _, line := range []string{
		"21 jobs of 3 owners, seed 1", "won           21", "Audit: clean", "Every job settled exactly once",
	} {
		if !strings.Contains(shown, line) {
			t.Errorf("the demo does not say %q:\n%s", line, shown)
		}
	}
	if len(left()) != 0 {
		t.Errorf("it left %v", left())
	}
	var r struct {
		DB               string
		Jobs             int
		Forged, Refused  int
		Events, Received int
		Broken           []string
	}
	kept := must(t, "", "--json", "demo", "--jobs=7", "--seed=5", "--keep")
	if err := json.Unmarshal([]byte(kept), &r); err != nil {
		t.Fatal(err)
	}
	if r.Jobs != 7 || r.Forged != r.Refused || r.Events != r.Received || len(r.Broken) != 0 || len(left()) != 1 {
		t.Errorf("got %+v; it left %v", r, left())
	}
	must(t, r.DB, "audit", "--quiescent")
	if err := os.RemoveAll(left()[0]); err != nil {
		t.Error(err)
	}
	refused(t, "", 2, `jobs: "0" is not a number from 1`, "demo", "--jobs", "0")
	refused(t, "", 2, `seed: "x" is not a number`, "demo", "--seed", "x")
}
