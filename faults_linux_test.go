package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// traced are the system calls by which a command changes what is on the disk.
var traced = []string{"pwrite64", "fsync", "fdatasync", "ftruncate", "linkat", "renameat2", "unlinkat"}

// faultsOfCalls are what strace makes of the n-th call: it fails once, or from then on, or the process is
// killed at it.
var faultsOfCalls = []string{
	"error=EIO:when=%d", "error=EIO:when=%d+", "error=ENOSPC:when=%d", "error=ENOSPC:when=%d+",
	"signal=SIGKILL:when=%d",
}

// step is a command at work on a prepared database, and what it brings about.
type step struct {
	args []string
	done func(l *ledger.Ledger) bool
	// whole: what it makes is there as a whole or not at all, and an error does not say which.
	whole string
}

var steps = []step{
	{args: []string{"grant", "alice", "5", "--key", "second"}, done: func(l *ledger.Ledger) bool {
		list, err := l.Entries(context.Background(), ledger.EntryFilter{Owner: "alice", Limit: 10})
		return err == nil && len(list) > 2 && list[2].EventKey == "grant:second"
	}},
	{args: strings.Fields("job create j2 --owner alice --cost 7"), done: func(l *ledger.Ledger) bool {
		_, err := l.Job(context.Background(), "j2")
		return err == nil
	}},
	{args: []string{"notify", "j1", "completed", "--cost", "5"}, done: func(l *ledger.Ledger) bool {
		j, err := l.Job(context.Background(), "j1")
		return err == nil && j.SettledCost != nil
	}},
	{args: []string{"backup", "made.db"}, whole: "made.db"},
	{args: []string{"init", "--db", "made.db"}, whole: "made.db"},
}

// Each system call that writes fails, in each command, once and from then on; or the command is killed there.
// What it said is true of the files as they are then and as they are opened again, and the same command again
// completes.
func TestB126FaultAtEveryWrite(t *testing.T) {
	if !needStrace(t) {
		return
	}
	c := dbtest.StartCampaign(t, "T04", 15)
	prepared := dbtest.SQLite(t)
	prepare(t, prepared)
	type point struct {
		step        *step
		call, fault string
		n           int
	}
	var points []point
	for i := range steps {
		for call, n := range countCalls(t, prepared, &steps[i]) {
			for _, fault := range faultsOfCalls {
				for k := range n {
					points = append(points, point{&steps[i], call, fault, k + 1})
				}
			}
		}
	}
	random, tried, fired := c.Random(0), 0, 0
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	for _, p := range points {
		if fired == c.Wanted || t.Failed() {
			break
		}
		inject := fmt.Sprintf("inject=%s:"+p.fault, p.call, p.n)
		tried++
		came := breakStep(t, prepared, p.step, inject)
		c.Done(came)
		if came {
			fired++
		}
		// The calls are counted by thread, and a command's calls wander between threads: by nature some
		// numbers do not come. 40 of 62 did; fewer than a third is a test that does not test.
		if tried > 3*fired+10 {
			t.Fatalf("only %d of %d points fired", fired, tried)
		}
	}
	t.Logf("%d of %d points were tried, and %d fired", tried, len(points), fired)
	if c.Wanted > len(points) {
		c.All(fired)
	}
}

// needStrace reports whether system calls can be made to fail here.
func needStrace(t *testing.T) bool {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Logf("not run: %v", err)
		return false
	}
	if out, err := exec.Command("strace", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Logf("not run: no process may be traced here: %s", out)
		return false
	}
	return true
}

// traceStep runs a step in a folder with a copy of the prepared database, under strace.
func traceStep(
	t *testing.T, prepared string, s *step, options ...string,
) (path, log, stderr string, exit int) {
	t.Helper()
	folder := t.TempDir()
	path, log = filepath.Join(folder, "test.db"), filepath.Join(folder, "strace.log")
	copyFile(t, prepared, path, 0o600)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"-f", "-qq", "-y", "-o", log, "-e", "trace=" + strings.Join(traced, ",")}
	args = append(args, options...)
	c := exec.CommandContext(ctx, "strace", append(append(args, "jobledger"), s.args...)...)
	c.Dir = folder
	c.Env = append(os.Environ(), "JOBLEDGER_DB="+path, "GOMAXPROCS=1")
	var out bytes.Buffer
	c.Stderr = &out
	exit = exitOf(c.Run())
	if ctx.Err() != nil {
		t.Fatalf("%v hangs under %v", s.args, options)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(text), out.String(), exit
}

var callName = regexp.MustCompile(`(?m)^\d+ +(\w+)\(`)

func countCalls(t *testing.T, prepared string, s *step) map[string]int {
	t.Helper()
	_, log, stderr, exit := traceStep(t, prepared, s)
	if exit != 0 {
		t.Fatalf("%v: exit %d, %s", s.args, exit, stderr)
	}
	counts := map[string]int{}
	for _, m := range callName.FindAllStringSubmatch(log, -1) {
		counts[m[1]]++
	}
	if counts["pwrite64"] == 0 || counts["fsync"]+counts["fdatasync"] == 0 {
		t.Fatalf("%v writes and syncs nothing: %v", s.args, counts)
	}
	return counts
}

// breakStep runs one case. fired says whether its fault came about.
func breakStep(t *testing.T, prepared string, s *step, inject string) (fired bool) {
	t.Helper()
	path, log, stderr, exit := traceStep(t, prepared, s, "-e", inject)
	if !strings.Contains(log, "(INJECTED)") && !strings.Contains(log, "killed by SIGKILL") {
		return false
	}
	what := fmt.Sprintf("%v under %s: exit %d, %s", s.args, inject, exit, stderr)
	for _, p := range []string{asAfterACrash(t, path), path} {
		there := s.isDone(t, p, what)
		if exit == 0 && !there {
			t.Errorf("%s: acknowledged, and not there", what)
		}
		if there && s.whole == "" && exit > 0 && exit != 9 {
			t.Errorf("%s: refused, and there", what)
		}
	}
	c := exec.CommandContext(t.Context(), "jobledger", s.args...)
	c.Dir = filepath.Dir(path)
	c.Env = append(os.Environ(), "JOBLEDGER_DB="+path)
	if out, err := c.CombinedOutput(); err != nil && (s.whole == "" || !s.isDone(t, path, what)) {
		t.Errorf("%s; the same again: %v, %s", what, err, out)
	}
	if !s.isDone(t, path, what) {
		t.Errorf("%s; the same again did nothing", what)
	}
	return true
}

// asAfterACrash copies the files as they are, with nothing closed.
func asAfterACrash(t *testing.T, path string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{"test.db", "test.db-wal", "made.db"} {
		from := filepath.Join(filepath.Dir(path), name)
		if _, err := os.Stat(from); err == nil {
			copyFile(t, from, filepath.Join(to, name), 0o600)
		}
	}
	return filepath.Join(to, "test.db")
}

// isDone audits what is there, and says whether it has what the step brings about.
func (s *step) isDone(t *testing.T, path, what string) bool {
	t.Helper()
	if s.whole != "" {
		made := filepath.Join(filepath.Dir(path), s.whole)
		if _, err := os.Stat(made); err != nil {
			return false
		}
		return audited(t, made, what, func(*ledger.Ledger) bool { return true })
	}
	return audited(t, path, what, s.done)
}

func audited(t *testing.T, path, what string, look func(*ledger.Ledger) bool) bool {
	t.Helper()
	l, err := ledger.Open(t.Context(), path, ledger.Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer l.Close()
	if r, err := l.Audit(t.Context(), ledger.AuditParams{}); err != nil || r.Err() != nil {
		t.Errorf("%s: %v, %v", what, err, r.Err())
	}
	return look(l)
}

// A command that acknowledges has synced the log after its last write to it. Nothing but the calls themselves
// can show that.
func TestEveryCommitIsSynced(t *testing.T) {
	if !needStrace(t) {
		return
	}
	prepared := dbtest.SQLite(t)
	prepare(t, prepared)
	for _, s := range steps[:3] {
		_, log, _, _ := traceStep(t, prepared, &s)
		last := strings.LastIndex(log, ".db-wal>, ")
		if last < 0 || !regexp.MustCompile(`sync\(\d+<[^>]*\.db-wal>`).MatchString(log[last:]) {
			t.Errorf("%v: the log is not synced after the last write to it:\n%s", s.args, log)
		}
	}
}
