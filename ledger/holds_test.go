package ledger_test

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// holdVariable tells a process of this test binary to take part in the rounds of TestHoldsRace.
const holdVariable = "JOBLEDGER_HOLD_TEST"

const (
	holdProcesses = 2
	holdCallers   = 4
)

// Of eight holds of 100 at once, from two processes, on a balance of 100, one succeeds; round after
// round.
func TestHoldsRace(t *testing.T) {
	if dsn := os.Getenv(holdVariable); dsn != "" {
		holdInRounds(t, dsn)
		return
	}
	rounds := 1000
	if testing.Short() {
		rounds = 20
	}
	eachWorkbench(t, func(b *workbench) {
		for round := range rounds {
			p := ledger.GrantParams{Owner: fmt.Sprint("owner-", round), Amount: 100, Key: fmt.Sprint(round)}
			_, err := b.Grant(b.Context(), p)
			b.ok(err)
		}
		var start []io.Writer
		var told []*bufio.Scanner
		for p := range holdProcesses {
			in, out := b.holder(p)
			start, told = append(start, in), append(told, out)
		}
		for round := range rounds {
			for _, in := range start {
				fmt.Fprintln(in, round)
			}
			held := 0
			for _, out := range told {
				var n int
				if !out.Scan() {
					b.Fatalf("round %d: a process has ended", round)
				}
				_, err := fmt.Sscan(out.Text(), &n)
				b.ok(err)
				held += n
			}
			if held != 1 {
				b.Fatalf("round %d: %d holds of all there is succeeded", round, held)
			}
		}
	})
}

// holder starts a process that holds when a line comes, and says how often it succeeded.
func (b *workbench) holder(number int) (io.Writer, *bufio.Scanner) {
	b.Helper()
	self, err := os.Executable()
	b.ok(err)
	cmd := exec.CommandContext(b.Context(), self, "-test.run=^TestHoldsRace$")
	cmd.Env = append(os.Environ(), holdVariable+"="+b.dsn, fmt.Sprint("JOBLEDGER_HOLDER=", number))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	b.ok(err)
	out, err := cmd.StdoutPipe()
	b.ok(err)
	b.ok(cmd.Start())
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return in, bufio.NewScanner(out)
}

// holdInRounds is one process of the race.
func holdInRounds(t *testing.T, dsn string) {
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rounds := bufio.NewScanner(os.Stdin)
	for rounds.Scan() {
		var held atomic.Int64
		inParallel(holdCallers, holdCallers, func(i int) {
			held.Add(hold(t, l, "owner-"+rounds.Text(), 100,
				fmt.Sprint(rounds.Text(), "-", os.Getenv("JOBLEDGER_HOLDER"), "-", i)))
		})
		fmt.Println(held.Load())
	}
}

// hold creates a job and gives 1, or 0 if there were not the credits for it.
func hold(t *testing.T, l *ledger.Ledger, owner string, cost int64, id string) int64 {
	_, err := l.CreateJob(t.Context(), ledger.JobParams{ID: id, Owner: owner, Cost: cost})
	switch {
	case err == nil:
		return 1
	case ledger.CodeOf(err) != ledger.InsufficientCredits:
		t.Errorf("%s: %v", id, err)
	}
	return 0
}

// Of twenty holds of 75 at once against 500, six succeed.
func TestHoldsAgainstABalance(t *testing.T) { eachWorkbench(t, twentyHolds) }

func twentyHolds(b *workbench) {
	for round := range 10 {
		owner := fmt.Sprint("holder-", round)
		_, err := b.Grant(b.Context(), ledger.GrantParams{Owner: owner, Amount: 500, Key: owner})
		b.ok(err)
		var held atomic.Int64
		inParallel(20, 20, func(i int) {
			held.Add(hold(b.T, b.Ledger, owner, 75, fmt.Sprint(owner, "-", i)))
		})
		if held.Load() != 6 {
			b.Fatalf("round %d: %d holds of 75 against 500 succeeded", round, held.Load())
		}
	}
}

// sameKeys gives one key, at once, to operations that lock different owners: no lock is between them
// but that of the key.
func sameKeys(b *workbench) {
	for round := range 10 {
		for i := range 8 {
			b.give(fmt.Sprint("fund-", round, i), 10, func(p *ledger.GrantParams) { p.Owner = fmt.Sprint("o", i) })
		}
		var wins, mismatches, others atomic.Int64
		count := func(err error) {
			switch {
			case err == nil:
				wins.Add(1)
			case ledger.CodeOf(err) == ledger.IdempotencyMismatch:
				mismatches.Add(1)
			default:
				others.Add(1)
				b.Error(err)
			}
		}
		var wait sync.WaitGroup
		key := fmt.Sprint("same-", round)
		for i := range 8 {
			owner := fmt.Sprint("o", i)
			wait.Go(func() {
				_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: key, Owner: owner, Cost: 5})
				count(err)
				_, err = b.Grant(b.Context(), ledger.GrantParams{Owner: owner, Amount: 1, Key: key})
				count(err)
				_, err = b.Revoke(b.Context(), ledger.RevokeParams{Owner: owner, Amount: 1, Key: key, Reason: "r"})
				count(err)
			})
		}
		wait.Wait()
		if wins.Load() != 3 || mismatches.Load() != 3*7 {
			b.Fatalf("%d succeeded and %d were told of the other, want 3 and 21", wins.Load(), mismatches.Load())
		}
	}
}

// One key belongs to one operation, whoever else uses it at the same moment.
func TestSameKeysRace(t *testing.T) { eachWorkbench(t, sameKeys) }

// sameJob lets callers make one job, of all there is, while others cancel it: to each it is not there yet,
// or it is there.
func sameJob(b *workbench) {
	for round := range 30 {
		id := fmt.Sprint("same-job-", round)
		_, err := b.Grant(b.Context(), ledger.GrantParams{Owner: id, Amount: 10, Key: id})
		b.ok(err)
		inParallel(8, 8, func(i int) {
			if i%2 == 0 {
				_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: id, Owner: id, Cost: 10})
				if err != nil {
					b.Errorf("create: %v", err)
				}
				return
			}
			for {
				_, err := b.Cancel(b.Context(), id, "not wanted")
				if err == nil {
					return
				}
				if ledger.CodeOf(err) != ledger.NotFound {
					b.Errorf("cancel: %v", err)
					return
				}
			}
		})
	}
}

// A job that is made at this moment is not taken for a job that cannot be paid or ended.
func TestSameJobRace(t *testing.T) { eachWorkbench(t, sameJob) }

// The server's own default isolation changes nothing: every transaction names its own.
func TestSerializableByDefault(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		for _, level := range []string{"serializable", "repeatable read"} {
			dbtest.SetDefault(t, dsn, "default_transaction_isolation", level)
			b := newWorkbench(t, dsn)
			b.same(b.query(`SELECT setting FROM pg_settings WHERE name = 'default_transaction_isolation'`),
				[]string{level})
			prefix := level[:1]
			b.raceOn(prefix)
			b.audit()
		}
	})
}

// TestForAPooler: with a driver that prepares nothing, as a pooler of transactions wants it, all kinds of
// operations work, races included. (No pooler has a part in it.)
func TestForAPooler(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		query.Set("default_query_exec_mode", "exec")
		u.RawQuery = query.Encode()
		b := newWorkbench(t, u.String())
		b.busy()
		b.raceOn("r")
		b.audit()
		if text := b.export(b.Ledger); text != b.export(newWorkbench(t, dsn).Ledger) {
			t.Errorf("another export:\n%s", text)
		}
	})
}

// raceOn lets sixteen observers report the end of each of some jobs of one owner.
func (b *workbench) raceOn(prefix string) {
	b.Helper()
	const jobs = 10
	b.give(prefix, jobs*7, func(p *ledger.GrantParams) { p.Owner = prefix })
	for i := range jobs {
		_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: fmt.Sprint(prefix, i), Owner: prefix, Cost: 7})
		b.ok(err)
	}
	var wins atomic.Int64
	inParallel(16, 16*jobs, func(i int) {
		r := ledger.Report{
			Job: fmt.Sprint(prefix, i%jobs), Source: ledger.Callback, Outcome: ledger.Outcomes[i/jobs%2],
		}
		s, err := b.Settle(b.Context(), r)
		if err != nil {
			b.Error(err)
		} else if s.Won {
			wins.Add(1)
		}
	})
	if wins.Load() != jobs {
		b.Errorf("%d reports of %d jobs won", wins.Load(), jobs)
	}
}
