//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// buildBinary makes the program as a user has it.
func buildBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobledger")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// raced is the JSON form of a race, as a program reads it.
type raced struct {
	Jobs, Notifications, Wins int
	RefundEntries             int `json:"refund_entries"`
	Returned, Consumed        int64
	Balance                   struct{ Available, Held, Used, Expired int64 }
	Observers                 []struct {
		Process, Worker        int
		Job, Reported, Outcome string
		Won                    bool
	}
	Audit struct{ OK bool }
}

func TestRaceOfProcesses(t *testing.T) {
	binary := buildBinary(t)
	won := map[int]int{}
	for range 20 {
		out, err := exec.Command(binary, "race", "--processes", "4", "--workers", "8",
			"--notifications", "64", "--jobs", "20", "--mix", "--json").Output()
		if err != nil {
			t.Fatalf("race: %v\n%s", err, out)
		}
		var r raced
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		failed := checkRaced(t, &r, won)
		if r.Jobs != 20 || r.Notifications != 1280 || r.Wins != 20 || !r.Audit.OK ||
			r.RefundEntries != int(failed) {
			t.Errorf("%d failed: %d jobs, %d notifications, %d wins, %d refund entries, audit %v",
				failed, r.Jobs, r.Notifications, r.Wins, r.RefundEntries, r.Audit.OK)
		}
		b := r.Balance
		if b.Available != 7*failed || b.Used != 140-7*failed || b.Held != 0 || b.Expired != 0 ||
			r.Returned != b.Available || r.Consumed != b.Used {
			t.Errorf("%d failed: balance %+v, returned %d, consumed %d", failed, b, r.Returned, r.Consumed)
		}
	}
	if len(won) != 4 {
		t.Errorf("wins by process: %v, want all 4 to win at times", won)
	}
}

// checkRaced proves from what the observers were told that each job was won once and that everybody
// knows by what. It counts the jobs that failed, and the wins of each process.
func checkRaced(t *testing.T, r *raced, won map[int]int) (failed int64) {
	t.Helper()
	ends, told := map[string]string{}, map[string]int{}
	for _, o := range r.Observers {
		told[o.Job]++
		if !o.Won {
			continue
		}
		if ends[o.Job] != "" {
			t.Errorf("job %s was won twice", o.Job)
		}
		ends[o.Job] = o.Reported
		won[o.Process]++
		if o.Reported == "failed" {
			failed++
		}
	}
	for _, o := range r.Observers {
		if o.Outcome != ends[o.Job] || told[o.Job] != 64 {
			t.Errorf("%+v: the winner said %s, %d were told", o, ends[o.Job], told[o.Job])
		}
	}
	if len(ends) != 20 {
		t.Errorf("%d jobs were won", len(ends))
	}
	return failed
}

func TestStoppedRaceLeavesNothing(t *testing.T) {
	race := []string{buildBinary(t), "race", "--processes", "3", "--jobs", "500", "--notifications", "1000"}
	stopped(t, race, syscall.SIGINT, 130, 0)
	stopped(t, race, syscall.SIGINT, 130, 200*time.Millisecond)
	stopped(t, race, syscall.SIGINT, 130, 1500*time.Millisecond)
	stopped(t, race, syscall.SIGTERM, 143, 1500*time.Millisecond)
	stopped(t, race, syscall.SIGKILL, -1, 1500*time.Millisecond)
}

// What measures, alone or with other processes, and what plays a whole system end as a race does.
func TestStoppedBenchAndDemoLeaveNothing(t *testing.T) {
	binary := buildBinary(t)
	for _, line := range []string{
		"bench --jobs 100000 --workers 8", "bench --jobs 100000 --workers 4 --processes 3 --shards 2",
		"bench --jobs 10 --preload 1000000", "demo --jobs 100000",
	} {
		args := append([]string{binary}, strings.Fields(line)...)
		stopped(t, args, syscall.SIGINT, 130, 0)
		stopped(t, args, syscall.SIGINT, 130, 1500*time.Millisecond)
		stopped(t, args, syscall.SIGTERM, 143, 1500*time.Millisecond)
	}
}

// stopped starts a command that works in a scratch directory, sends it a signal some time after that was
// made, and checks that it ends with an exit status, one line, and nothing left of it.
func stopped(t *testing.T, args []string, signal syscall.Signal, exit int, after time.Duration) {
	t.Run(fmt.Sprint(strings.Join(args[1:], " "), " ", signal, after), func(t *testing.T) {
		dir := t.TempDir()
		command := exec.Command(args[0], args[1:]...)
		command.Env = append(os.Environ(), "TMPDIR="+dir)
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		var out, errs bytes.Buffer
		command.Stdout, command.Stderr = &out, &errs
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }()
		eventually(t, "the scratch directory is made", func() bool { return len(entries(t, dir)) == 1 })
		time.Sleep(after)
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		err := command.Wait()
		took, code := time.Since(sent), command.ProcessState.ExitCode()
		if code != exit || out.Len() > 0 || took > 20*time.Second {
			t.Errorf("after %v exit status %d, %v; stdout %q, stderr %q", took, code, err, &out, &errs)
		}
		eventually(t, "all processes are gone", func() bool {
			return errors.Is(syscall.Kill(-command.Process.Pid, 0), syscall.ESRCH)
		})
		// Nobody can clean up after SIGKILL.
		if left := entries(t, dir); len(left) > 0 && signal != syscall.SIGKILL {
			t.Errorf("left behind: %v", left)
		}
		if lines := bytes.Count(errs.Bytes(), []byte("\n")); exit > 0 && lines != 1 {
			t.Errorf("%d lines on stderr: %s", lines, &errs)
		}
	})
}

// entries names what is in a directory.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// eventually waits up to a minute for something to become true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}
