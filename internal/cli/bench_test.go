package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"jobledger/internal/bench"
	"jobledger/ledger"
)

// measured runs the command bench with arguments, as a user would.
func measured(t *testing.T, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	line := append([]string{programName, "bench"}, args...)
	exit = Run(t.Context(), Program{Args: line, Stdout: &out, Stderr: &errs})
	return exit, out.String(), errs.String()
}

func TestBench(t *testing.T) {
	t.Setenv(dbVariable, filepath.Join(t.TempDir(), "none.db")) // not used
	svg := filepath.Join(t.TempDir(), "b.svg")
	exit, out, errs := measured(t, "--jobs=16", "--workers=2,8", "--svg", svg)
	if exit != 0 || errs != "" {
		t.Fatalf("exit %d: %s", exit, errs)
	}
	for _, want := range []string{
		"16 jobs of mode hold, of 100 owners with 1 lot each, on sqlite.\n", "\n    0        2  create ",
		"\n    0        8  create ", "settle ", "  completed ", "duplicate ", "balance ", "A settlement costs",
		"One fdatasync of the same file system: ", "Audit: clean",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	picture, err := os.ReadFile(svg)
	if err != nil || !bytes.Contains(picture, []byte(">8 callers<")) {
		t.Errorf("the picture: %v", err)
	}
	exit, out, errs = measured(t, "--jobs=16", "--workers=2", "--durability=normal", "--json")
	var r struct {
		Runs       []struct{ Workers, Jobs int }
		Durability string
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || exit != 0 || r.Durability != "normal" ||
		len(r.Runs) != 1 || r.Runs[0].Workers != 2 || r.Runs[0].Jobs != 16 {
		t.Errorf("exit %d, %v: %+v", exit, err, r)
	}
	if !strings.Contains(errs, "LOST when the power fails") || strings.Count(errs, "\n") != 1 {
		t.Errorf("the warning is %q", errs)
	}
}

func TestBenchRefusesBadValues(t *testing.T) {
	for _, c := range [][2]string{
		{"workers", "0"}, {"workers", ""}, {"workers", "1,"}, {"workers", "1,257"}, {"workers", "1;2"},
		{"jobs", "0"}, {"jobs", "x"}, {"mode", "gift"}, {"processes", "65"}, {"owners", "-1"}, {"lots-each", "0"},
		{"preload", "10,10"}, {"preload", "1e6"}, {"shards", "65"}, {"durability", "off"},
		{"svg", "/no/such/folder/b.svg"},
	} {
		exit, out, errs := measured(t, "--"+c[0]+"="+c[1])
		if exit != 2 || out != "" || !strings.Contains(errs, c[0]) || strings.Count(errs, "\n") != 1 {
			t.Errorf("--%s=%s: exit %d: %s%s", c[0], c[1], exit, out, errs)
		}
	}
}

// The widest figures stand within 80 columns.
func TestBenchIsReadable(t *testing.T) {
	const slow = 9_999_990
	widest := bench.Operation{Name: "duplicate", PerSecond: 999_999, P50: slow, P99: slow, P999: slow, Max: slow}
	part := widest
	part.Name, part.PerSecond = "completed", 0
	run := bench.Run{Preloaded: 10_000_000, Workers: 256, Jobs: bench.JobsMax, Ratio: 9999.99, RSS: 999 << 20,
		Operations: []bench.Operation{widest, part}}
	run.Settlement = bench.Settlement{Statements: 99.9, Syncs: 1, Pages: 99.99, WAL: 999_999}
	r := bench.Report{Runs: []bench.Run{run, run}, Fdatasync: 99_999, Engine: "sqlite", Durability: "normal",
		Mode: ledger.ModeCharge, Processes: 64, Shards: 64, Owners: bench.OwnersMax, Lots: bench.LotsMax,
		Loads: []bench.Load{{Jobs: 10_000_000, Seconds: 9999, Bytes: 1 << 40, Audit: 9999}}}
	var b strings.Builder
	printBench(&b, &r)
	wide := func(line string) bool { return utf8.RuneCountInString(line) > 80 }
	lines := strings.Split(b.String(), "\n")
	if i := slices.IndexFunc(lines[1:], wide); i >= 0 {
		t.Errorf("more than 80 columns:\n%s\nin\n%s", lines[i+1], &b)
	}
	for _, want := range []string{"64 processes", "64 files", "NOT DURABLE", "0 jobs loaded in 9999.0 s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if strings.Contains(lines[2], "CREATE") || !strings.Contains(lines[2], "P99.9 MS") {
		t.Errorf("the heading is %q", lines[2])
	}
}
