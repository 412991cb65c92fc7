package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"jobledger/db/dbtest"
	"jobledger/internal/racelab"
	"jobledger/ledger"
)

// race runs the command race with arguments, as a user would.
func race(t *testing.T, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	line := append([]string{programName, "race"}, args...)
	exit = Run(t.Context(), Program{Args: line, Stdout: &out, Stderr: &errs})
	return exit, out.String(), errs.String()
}

func TestRaceJSON(t *testing.T) {
	exit, out, errs := race(t, "--json", "--mode=hold", "--jobs=2", "--notifications=3", "--workers=2")
	if exit != 0 || errs != "" {
		t.Fatalf("exit %d: %s", exit, errs)
	}
	var r map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"jobs": "2", "notifications": "6", "wins": "2", "refund_entries": "0", "returned": "14", "consumed": "0",
		"audit": `{"ok":true}`,
	} {
		if string(r[name]) != want {
			t.Errorf("%s is %s, want %s", name, r[name], want)
		}
	}
	var observers []map[string]any
	if err := json.Unmarshal(r["observers"], &observers); err != nil || len(r) != 9 || len(observers) != 6 {
		t.Fatalf("%v: %d fields, %d observers", err, len(r), len(observers))
	}
	for _, name := range []string{"process", "worker", "job", "won", "reported", "outcome", "micros"} {
		if _, ok := observers[0][name]; !ok || len(observers[0]) != 7 {
			t.Errorf("observer %v, want 7 fields, among them %s", observers[0], name)
		}
	}
}

func TestRaceUsesOnlyTheDatabaseOfItsFlag(t *testing.T) {
	t.Setenv(dbVariable, filepath.Join(t.TempDir(), "none.db"))
	if exit, _, errs := race(t); exit != 0 {
		t.Errorf("with $%s: exit %d: %s", dbVariable, exit, errs)
	}
	exit, _, errs := race(t, "--db", os.Getenv(dbVariable))
	if exit != 2 || !strings.Contains(errs, "no ledger") {
		t.Errorf("with a database that does not exist: exit %d: %s", exit, errs)
	}
	dbtest.Each(t, func(t *testing.T, dsn string) {
		for range 2 {
			exit, out, errs := race(t, "--db", dsn)
			if exit != 0 || !strings.Contains(out, "entries --owner race-") {
				t.Errorf("exit %d: %s%s", exit, out, errs)
			}
		}
		l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all, err := l.Balances(t.Context(), "", 10)
		if err != nil || len(all) != 2 || all[0].Available != 7 || all[1].Available != 7 {
			t.Errorf("the owners are %v, %v", all, err)
		}
	})
}

func TestRaceRefusesBadValues(t *testing.T) {
	for _, c := range [][2]string{
		{"workers", "0"}, {"workers", "257"}, {"workers", "08"}, {"workers", "x"}, {"processes", "65"},
		{"processes", "-1"}, {"jobs", "0"}, {"jobs", "100001"}, {"notifications", "10001"}, {"notifications", ""},
		{"cost", "0"}, {"cost", "010"}, {"cost", "1e3"}, {"cost", "9007199254740992"}, {"mode", "credit"},
		{"mode", ""},
	} {
		exit, out, errs := race(t, "--"+c[0]+"="+c[1])
		if exit != 2 || out != "" || !strings.Contains(errs, c[0]) || strings.Count(errs, "\n") != 1 {
			t.Errorf("--%s=%s: exit %d: %s%s", c[0], c[1], exit, out, errs)
		}
	}
}

// made is the result of a race that went well.
func made(jobs, notifications int) (racelab.Options, racelab.Result) {
	o := racelab.Options{
		Jobs: jobs, Notifications: notifications, Workers: 8, Processes: 64, Cost: 7, Mode: ledger.ModeHold,
	}
	r := racelab.Result{
		Jobs: jobs, Notifications: jobs * notifications, Wins: jobs, Audit: racelab.Audit{OK: true}, Checks: 24,
		Elapsed: 1234 * time.Millisecond, Balance: ledger.Balance{Available: ledger.AmountMax},
	}
	for j := range jobs {
		for n := range notifications {
			b := racelab.Observer{Process: 64, Worker: 256, Job: fmt.Sprint(j), Won: n == 0, Micros: 999_900}
			b.Reported, b.Outcome = ledger.Completed, ledger.Completed
			if n%2 == 1 {
				b.Reported = ledger.Failed
			}
			r.Observers = append(r.Observers, b)
		}
	}
	return o, r
}

func TestRaceIsReadable(t *testing.T) {
	for _, c := range []struct {
		jobs, notifications, lines int
		want                       []string
	}{
		{1, 16, 31, []string{"WON: it ended the job as completed", "lost: the job had ended completed"}},
		{1, 10_000, 16, []string{"process 64, worker 256            9999       5000  999.9 ms"}},
		{5, 4, 21, []string{"Each job gets 4. All say failed.", "all             5 wins"}},
		{300, 100, 37, []string{"and 280 jobs more", "300 wins; 29700 losers", "Every job settled exactly once."}},
	} {
		o, r := made(c.jobs, c.notifications)
		var b strings.Builder
		printRace(&b, &o, &r)
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%d jobs: no %q in\n%s", c.jobs, want, &b)
			}
		}
		wide := slices.ContainsFunc(lines, func(line string) bool { return utf8.RuneCountInString(line) > 80 })
		if wide || len(lines) != c.lines {
			t.Errorf("%d jobs: %d lines, want %d of at most 80 columns:\n%s", c.jobs, len(lines), c.lines, &b)
		}
	}
}

func TestBrokenRaceSaysSo(t *testing.T) {
	o, r := made(1, 2)
	r.Broken, r.Audit.OK, r.Busy = []string{"job 1 was won 2 times", "the audit\nis not clean"}, false, 3
	var b strings.Builder
	printRace(&b, &o, &r)
	for _, want := range []string{
		"BROKEN: job 1 was won 2 times\n", "BROKEN: the audit\\nis not clean\n", "Audit: BROKEN", "3 answers BUSY",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "exactly once") {
		t.Errorf("a broken race boasts:\n%s", &b)
	}
}

func TestProgressNeedsATerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	show, clear := progress(file, "racing")
	if clear(); show != nil {
		t.Error("there is a progress bar in a file")
	}
}
