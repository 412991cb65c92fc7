package cli_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"jobledger/db/dbtest"
	"jobledger/internal/cli"
	"jobledger/ledger"
)

// run executes one command line in this process. Words are separated by single spaces.
func run(t *testing.T, dsn, line string) (stdout, stderr string, exit int) {
	t.Helper()
	var out, errs bytes.Buffer
	args := append([]string{"jobledger", "--db=" + dsn}, strings.Split(line, " ")...)
	exit = cli.Run(t.Context(), cli.Program{Args: args, Stdout: &out, Stderr: &errs, Schema: "the schema\n"})
	return out.String(), errs.String(), exit
}

// conversation runs a script of commands, each followed by what it prints, up to the next command.
// Ids and times in the output read ID and TIME.
func conversation(t *testing.T, dsn, script string) {
	t.Helper()
	for part := range strings.SplitSeq(strings.TrimPrefix(script, "$ "), "\n$ ") {
		line, want, _ := strings.Cut(part, "\n")
		stdout, stderr, _ := run(t, dsn, line)
		got := moment.ReplaceAllString(id.ReplaceAllString(stdout+stderr, "ID"), "TIME")
		got = young.ReplaceAllString(got, " 0s ")
		if strings.TrimRight(got, "\n") != strings.TrimRight(want, "\n") {
			t.Errorf("$ %s\ngot:\n%s\nwant:\n%s", line, got, want)
		}
		for line := range strings.Lines(stdout) {
			if strings.HasSuffix(line, " \n") {
				t.Errorf("space at the end of %q", line)
			}
		}
	}
}

var (
	id     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	young  = regexp.MustCompile(` [1-9]s `) // an age, on a busy machine
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z`)
)

const changes = `$ grant alice 100 --key k1 --expires 30d --priority 2
granted 100 to alice: available 100, held 0
$ grant alice 50 --key k2
granted 50 to alice: available 150, held 0
$ --key k2 grant alice 50
already done, nothing changed: granted 50 to alice: available 150, held 0
$ grant bob 9 --key k3 --effective 2h
granted 9 to bob: available 0, held 0, scheduled 9
$ job create j1 --owner alice --cost 7
held 7 for job j1 on alice: available 143, held 7
$ job create j1 --owner alice --cost 7
job j1 was created before (held 7 on alice) and is pending now: available 143, held 7
$ job create j2 --owner alice --cost 60 --mode charge
charged 60 for job j2 on alice: available 83, held 7, used 60
$ notify j1 completed --cost 5 --source callback
used 5, returned 2 for job j1 on alice (completed): available 85, held 0, used 65
$ notify j1 failed --source poll
nothing moved: callback settled job j1 as completed at TIME (used 5, returned 2);` +
	` this report, failed, is a conflict: available 85, held 0, used 65
$ job create j3 --owner alice --cost 3
held 3 for job j3 on alice: available 82, held 3, used 65
$ notify j3 completed --cost 0
returned 3 for job j3 on alice (completed): available 85, held 0, used 65
$ job cancel j2 --reason unwanted
returned 60 for job j2 on alice (canceled): available 145, held 0, used 5
$ revoke alice 5 --key r1 --reason abuse
revoked 5 from alice: available 140, held 0, used 5, expired 5`

const looks = `$ balance
OWNER  AVAILABLE  HELD  USED  EXPIRED  GRANTED  SCHEDULED
alice        140     0     5        5      150          0
bob            0     0     0        0        9          9
total        140     0     5        5      159          9
$ balance alice --lots
OWNER  AVAILABLE  HELD  USED  EXPIRED  GRANTED
alice        140     0     5        5      150

LOT                                   PRIORITY  AVAILABLE  HELD  USED  EXPIRED
ID         0          0     0     5        2
ID         0         40     0     0        3
ID         2         83     0     0        0
  expires TIME
ID         2         17     0     0        0
  expires TIME
total                                                 140     0     5        5
$ entries --owner alice --limit 4
SEQ  KIND    AMOUNT  AVAILABLE  HELD  USED  EXPIRED  TIME                  JOB
  1  grant      100        100     0     0        0  TIME
  2  grant       50        150     0     0        0  TIME
  3  hold         7        143     7     0        0  TIME  j1
  4  charge      60         83     7    60        0  TIME  j2
there may be more: --after ID
$ entries --job j1
TIME                  OWNER  SEQ  KIND     AMOUNT  JOB
TIME  alice    3  hold          7  j1
TIME  alice    5  consume       5  j1
TIME  alice    6  release       2  j1
$ job list --owner alice
JOB    OWNER  STATUS     MODE    COST  SETTLED
j1     alice  completed  hold       7        5
j2     alice  canceled   charge    60        0
j3     alice  completed  hold       3        0
total                              70        5
$ job show j2
job           j2
owner         alice
status        canceled
mode          charge
cost          60
attempt       0
submission    none
settled cost  0
settled by    operator
settled at    TIME
reason        unwanted
deadline      none
created at    TIME
$ sweep
expired lots: 0, jobs timed out: 0, jobs that need reconciliation: 0
$ schema
the schema`

// TestConversation shows what a person sees: a sentence after each change, a table for each look.
func TestConversation(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		conversation(t, dsn, changes)
		conversation(t, dsn, looks)
	})
}

// TestHelp: every command explains itself, the program points to the exit codes, and those are listed.
func TestHelp(t *testing.T) {
	for line, want := range map[string]string{
		"--help":                 "Example:\n  jobledger init\n",
		"grant --help":           "--key KEY         the KEY of this grant (required)\n",
		"job -h":                 "create ID     make a job and take its cost from the owner's credits\n",
		"help entries":           "--limit N      at most N, up to 1000 (default 100)\n",
		"help exit-codes":        "\n   6  the owner has fewer spendable credits than that (INSUFFICIENT_",
		"help exit-codes --json": `{"exit":0,"meaning":"done`,
	} {
		stdout, stderr, exit := run(t, "nowhere.db", line)
		if exit != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit %d, %s, %s", line, exit, stdout, stderr)
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 81 && !strings.Contains(line, "{") {
				t.Errorf("%d columns: %s", len(line)-1, line)
			}
		}
	}
}

// TestExpiryThroughTheCommands: a lot that has lapsed cannot be spent, swept or not.
func TestExpiryThroughTheCommands(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		conversation(t, dsn, `$ grant alice 5 --key k1
granted 5 to alice: available 5, held 0
$ grant alice 20 --key k2 --expires 3s --priority 1
granted 20 to alice: available 25, held 0
$ job create j1 --owner alice --cost 2 --deadline 3s
held 2 for job j1 on alice: available 23, held 2`)
		time.Sleep(3 * time.Second)
		conversation(t, dsn, `$ balance alice
OWNER  AVAILABLE  HELD  USED  EXPIRED  GRANTED
alice          3     2     0       20       25
$ balance alice --at -1h
OWNER  AVAILABLE  HELD  USED  EXPIRED  GRANTED
alice          0     0     0        0        0
$ job create j2 --owner alice --cost 4
jobledger: alice has 3 credits available and 4 were requested
$ sweep
expired lots: 1, jobs timed out: 1, jobs that need reconciliation: 0
$ balance alice
OWNER  AVAILABLE  HELD  USED  EXPIRED  GRANTED
alice          5     0     0       20       25
$ sweep --json
{"expired_lots":0,"timed_out":0,"needs_reconciliation":[]}`)
	})
}

// TestMoreThanOnePage: what the ledger gives page by page arrives whole.
func TestMoreThanOnePage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		const owners = ledger.PageMax + 5
		l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for i := range owners {
			wait.Go(func() {
				p := ledger.GrantParams{
					Owner: fmt.Sprintf("owner-%04d", i), Amount: int64(i) + 1, Key: fmt.Sprint(i),
					Expires: ledger.After(2 * time.Second),
				}
				if _, err := l.Grant(t.Context(), p); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		stdout, _, _ := run(t, dsn, "balance --json")
		var list struct{ Items []ledger.Balance }
		if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Items) != owners {
			t.Fatalf("%d owners: %v", len(list.Items), err)
		}
		var sum int64
		for _, b := range list.Items {
			sum += b.Granted()
		}
		if sum != owners*(owners+1)/2 {
			t.Errorf("granted %d", sum)
		}
		time.Sleep(2 * time.Second)
		stdout, _, _ = run(t, dsn, "sweep --json")
		if !strings.Contains(stdout, fmt.Sprintf(`"expired_lots":%d,`, owners)) {
			t.Errorf("sweep: %s", stdout)
		}
	})
}

// TestSweepInSmallParts: what is due is swept in transactions that keep few owners locked each.
func TestSweepInSmallParts(t *testing.T) {
	path := dbtest.SQLite(t)
	yesterday := func() time.Time { return time.Now().Add(-24 * time.Hour) }
	l, err := ledger.Open(t.Context(), path, ledger.Options{Clock: yesterday})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2*50 + 1 {
		name := fmt.Sprint(i)
		p := ledger.GrantParams{Owner: name, Amount: 1, Key: name, Expires: ledger.After(time.Hour)}
		if _, err := l.Grant(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	stdout, _, _ := run(t, path, "sweep")
	var parts int
	pool := dbtest.Raw(t, path)
	err = pool.Get(&parts, `SELECT COUNT(DISTINCT recorded_at) FROM entries WHERE kind = 'expire'`)
	if err != nil || parts != 3 || !strings.Contains(stdout, "expired lots: 101,") {
		t.Errorf("%d transactions, %v: %s", parts, err, stdout)
	}
}

// statement runs SQL on a file behind the ledger's back.
func statement(t *testing.T, path, query string) {
	t.Helper()
	d, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// A sweep that meets a contradiction says so on both streams, exits with 8, and has done the rest.
func TestSweepNamesContradictions(t *testing.T) {
	path := dbtest.SQLite(t)
	for _, line := range []string{
		"grant alice 10 --key a", "grant bob 10 --key b",
		"job create bad --owner alice --cost 3 --deadline 1ms",
		"job create good --owner bob --cost 3 --deadline 1ms",
	} {
		if _, stderr, exit := run(t, path, line); exit != 0 {
			t.Fatalf("%s: exit %d: %s", line, exit, stderr)
		}
	}
	statement(t, path, `INSERT INTO entries SELECT 'x', 'job-refund:bad', owner, 99, 'refund', amount, job_id,
		available_after, held_after, used_after, expired_after, reason, metadata, occurred_at, recorded_at, hash
		FROM entries WHERE event_key = 'job-hold:bad'`)
	stdout, stderr, exit := run(t, path, "sweep")
	if exit != 8 || !strings.Contains(stdout, "jobs timed out: 1") ||
		!strings.Contains(stdout, `left alone: job "bad"`) ||
		!strings.HasPrefix(stderr, "jobledger: sweep: contradictions left alone: 1, the first: ") {
		t.Errorf("exit %d, stdout %q, stderr %q", exit, stdout, stderr)
	}
	if stdout, _, _ := run(t, path, "balance bob"); !strings.Contains(stdout, "10     0") {
		t.Errorf("bob has %q", stdout)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFilesThatAreNoLedger: each is refused with one clear line and exit 2, and left as it was.
func TestFilesThatAreNoLedger(t *testing.T) {
	good := dbtest.SQLite(t)
	if _, _, exit := run(t, good, "grant alice 5 --key k"); exit != 0 {
		t.Fatal("grant failed")
	}
	statement(t, good, "PRAGMA wal_checkpoint(TRUNCATE)")
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		make func(path string)
		why  string
	}{
		"missing":     {func(string) {}, "no ledger at .*: create one with init"},
		"no folder/x": {func(string) {}, "the directory does not exist"},
		"folder":      {func(path string) { os.Mkdir(path, 0o700) }, "is a directory"},
		"empty":       {func(path string) { write(t, path, nil) }, "is empty"},
		"text":        {func(path string) { write(t, path, bytes.Repeat([]byte("hi\n"), 999)) }, "not a database"},
		"foreign":     {func(path string) { statement(t, path, "CREATE TABLE t (x)") }, "another program's"},
		"cut to 50":   {func(path string) { write(t, path, whole[:50]) }, "is damaged"},
		"cut to 4096": {func(path string) { write(t, path, whole[:4096]) }, "is damaged"},
		"cut in half": {func(path string) { write(t, path, whole[:len(whole)/2]) }, "is damaged"},
		"newer": {func(path string) {
			write(t, path, whole)
			statement(t, path, "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)")
		}, "schema version 99 .* use a newer jobledger"},
	} {
		path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
		c.make(path)
		before, _ := os.ReadFile(path)
		for _, line := range []string{"balance", "grant alice 7 --key new", "init"} {
			if line == "init" && name == "missing" {
				continue // that is what init is for
			}
			stdout, stderr, exit := run(t, path, line)
			if exit != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 ||
				!regexp.MustCompile("^jobledger: db: .*"+c.why).MatchString(stderr) {
				t.Errorf("%s: %s: got exit %d, %q, %q", name, line, exit, stdout, stderr)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Errorf("%s: %s: the file changed", name, line)
			}
		}
	}
}

// TestStrangeNames: a name opens exactly the file of that name.
func TestStrangeNames(t *testing.T) {
	folder := t.TempDir()
	names := []string{"a?mode=memory", "a#b", "a%41b", "aAb", "a b", "été", "a'b", "file:a", "a&b=c;d"}
	for i, name := range names {
		path := filepath.Join(folder, name)
		conversation(t, path, fmt.Sprintf("$ init\ncreated %s, schema version %d", path, ledger.SchemaVersion()))
		run(t, path, fmt.Sprintf("grant owner-%d 5 --key k", i))
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for i, name := range names {
		conversation(t, filepath.Join(folder, name), fmt.Sprintf(`$ balance
OWNER    AVAILABLE  HELD  USED  EXPIRED  GRANTED
owner-%d          5     0     0        0        5`, i))
	}
	before, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range before {
		known := false
		for _, name := range names {
			known = known || strings.TrimSuffix(strings.TrimSuffix(f.Name(), "-wal"), "-shm") == name
		}
		if !known {
			t.Errorf("unexpected file %s", f.Name())
		}
	}
}
