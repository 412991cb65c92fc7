package ledger_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// killVariable tells a process of this test binary to write to a ledger until it is killed.
const killVariable = "JOBLEDGER_KILL_TEST"

const killWriters = 3

// What was acknowledged before a kill is there after it, what was not is there whole or not at all,
// and the ledger goes on.
func TestKill(t *testing.T) {
	if argument := os.Getenv(killVariable); argument != "" {
		writeUntilKilled(t, argument)
		return
	}
	t.Run("sqlite", func(t *testing.T) {
		killInRounds(t, dbtest.StartCampaign(t, "T01", 200), func() string { // it loses less than a power cut
			path := filepath.Join(memoryDir(t), "kill.db")
			if _, err := ledger.Create(t.Context(), path, ledger.Options{}); err != nil {
				t.Fatal(err)
			}
			return path
		})
	})
	t.Run("postgres", func(t *testing.T) {
		if dbtest.NeedPostgres(t) {
			killInRounds(t, dbtest.StartCampaign(t, "T01_POSTGRES", 60), func() string { return dbtest.Postgres(t) })
		}
	})
}

// killInRounds starts and kills a child in each round, on one ledger and then on another: a ledger grows,
// and with it the time that its audit takes.
func killInRounds(t *testing.T, c *dbtest.Campaign, create func() (dsn string)) {
	t.Helper()
	random, kills := c.Random(0), c.Wanted
	acknowledged, dsn := 0, ""
	for round := range kills {
		if round%50 == 0 {
			dsn = create()
			dbtest.KeepIfFailed(t, dsn)
		}
		lines := killOnce(t, dsn, round, time.Duration(random.IntN(20_000))*time.Microsecond)
		acknowledged += len(lines)
		awaitServer(t, dsn)
		l := faultOpen(t, dsn, ledger.Options{})
		checkKilled(t, l, round, lines)
		report, err := l.Audit(t.Context(), ledger.AuditParams{})
		if err != nil || !report.OK {
			t.Errorf("round %d: audit %+v, %v", round, report, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("the first failure was in round %d", round)
		}
		c.Done(true)
	}
	t.Logf("%d kills, %d operations acknowledged", kills, acknowledged)
	if acknowledged < 5*kills {
		t.Errorf("%d operations acknowledged before %d kills: the load was too light", acknowledged, kills)
	}
}

// awaitServer waits until a server has ended the child's sessions: what they were asked before, they do.
func awaitServer(t *testing.T, dsn string) {
	t.Helper()
	pool := dbtest.Raw(t, dsn)
	defer pool.Close()
	for left := 1; left > 0 && pool.DriverName() == "pgx"; time.Sleep(time.Millisecond) {
		err := pool.Get(&left, `
			SELECT COUNT(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'jobledger'`)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// killOnce lets a child write for a while after it has begun, kills it, and gives the operations that
// it had acknowledged.
func killOnce(t *testing.T, dsn string, round int, after time.Duration) (lines []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", killVariable, round, dsn))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	if !scanner.Scan() || scanner.Text() != "begin" {
		t.Fatalf("the child said %q: %s", scanner.Text(), &stderr)
	}
	// Every other child is well under way first, so that the load does not depend on the machine.
	for wait := round % 2 * 10; len(lines) < wait && scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %v, %v %s", err, lines, &stderr)
	}
	return lines
}

// writeUntilKilled is the child: each writer has a handle of its own, an owner of its own and one that
// all share, and tells of every operation after it returned.
func writeUntilKilled(t *testing.T, argument string) {
	round, dsn, _ := strings.Cut(argument, " ")
	var ledgers [killWriters]*ledger.Ledger
	for w := range ledgers {
		ledgers[w] = faultOpen(t, dsn, ledger.Options{})
		if _, err := ledgers[w].Sweep(t.Context(), 1); err != nil { // makes the connection that writes
			t.Fatal(err)
		}
	}
	_, _ = os.Stdout.WriteString("begin\n")
	var wait sync.WaitGroup
	for w, l := range ledgers {
		wait.Go(func() {
			for i := 0; ; i++ {
				owner := killOwner(round, w)
				if i%2 == 1 {
					owner = killOwner(round, killWriters)
				}
				if err := writeOneJob(l, owner, fmt.Sprintf("%s-%d-%d", round, w, i), i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}

func killOwner(round any, writer int) string { return fmt.Sprintf("round-%v-writer-%d", round, writer) }

// writeOneJob grants 10, makes a job of 7 and settles it, in ways that alternate. Each line goes out in one
// write, so that a kill leaves no half of one.
func writeOneJob(l *ledger.Ledger, owner, id string, i int) error {
	ctx := context.Background()
	if _, err := l.Grant(ctx, ledger.GrantParams{Owner: owner, Amount: 10, Key: id}); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "grant %s %s\n", owner, id)
	mode := []ledger.Mode{ledger.ModeHold, ledger.ModeCharge}[i/2%2]
	if _, err := l.CreateJob(ctx, ledger.JobParams{ID: id, Owner: owner, Cost: 7, Mode: mode}); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "job %s %s\n", owner, id)
	r := ledger.Report{Job: id, Outcome: ledger.Failed, Source: ledger.Poll}
	if i%3 == 0 {
		cost := int64(4)
		r.Outcome, r.Cost = ledger.Completed, &cost
	}
	s, err := l.Settle(ctx, r)
	if err != nil || !s.Won {
		return fmt.Errorf("settle %s: %v, %w", id, s.Verdict, err)
	}
	fmt.Fprintf(os.Stdout, "%s %s %s\n", r.Outcome, owner, id)
	return nil
}

// checkKilled compares what a round's writers were told with the ledger: each operation that was
// acknowledged is there, and at most one more per writer.
func checkKilled(t *testing.T, l *ledger.Ledger, round int, lines []string) {
	t.Helper()
	there := map[string]bool{}
	for w := range killWriters + 1 {
		owner := killOwner(round, w)
		jobs, err := l.Jobs(t.Context(), ledger.JobFilter{Owner: owner, Limit: ledger.PageMax})
		if ledger.CodeOf(err) == ledger.NotFound {
			continue // killed before the owner's first grant
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			there[fmt.Sprintf("job %s %s", owner, j.ID)] = true
			if !j.Status.Open() {
				there[fmt.Sprintf("%s %s %s", j.Status, owner, j.ID)] = true
			}
		}
		entries, err := l.Entries(t.Context(), ledger.EntryFilter{Owner: owner, Limit: ledger.PageMax})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if key, ok := strings.CutPrefix(e.EventKey, "grant:"); ok {
				there[fmt.Sprintf("grant %s %s", owner, key)] = true
			}
		}
		checkBuckets(t, l, owner, jobs, entries)
	}
	for _, line := range lines {
		if !there[line] {
			t.Errorf("round %d: %q was acknowledged and is lost", round, line)
		}
	}
	if more := len(there) - len(lines); more > killWriters {
		t.Errorf("round %d: %d operations are there, %d were acknowledged", round, len(there), len(lines))
	}
}

// checkBuckets computes an owner's balance from the jobs and grants alone.
func checkBuckets(t *testing.T, l *ledger.Ledger, owner string, jobs []ledger.Job, entries []ledger.Entry) {
	t.Helper()
	want := ledger.Balance{Owner: owner}
	for _, e := range entries {
		if e.Kind == ledger.KindGrant {
			want.Available += e.Amount
		}
	}
	for _, j := range jobs {
		switch {
		case j.SettledCost != nil:
			want.Available -= *j.SettledCost
			want.Used += *j.SettledCost
		case j.Mode == ledger.ModeHold:
			want.Available -= j.Cost
			want.Held += j.Cost
		default:
			want.Available -= j.Cost
			want.Used += j.Cost
		}
	}
	got, err := l.Balance(t.Context(), ledger.BalanceParams{Owner: owner})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: balance %+v (%v), want %+v", owner, got, err, want)
	}
}
