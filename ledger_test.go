package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"jobledger/db/dbtest"
)

// TestMain lets the test binary be two programs: jobledger itself, and sql, which reaches into the
// database of a script to break something or to look.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"jobledger": main, "sql": sqlMain})
}

func sqlMain() {
	for _, statement := range os.Args[1:] {
		if err := runSQL(os.Getenv("JOBLEDGER_DB"), statement); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// runSQL runs one statement and prints the rows that it gives.
func runSQL(dsn, statement string) error {
	d, err := dbtest.OpenRaw(dsn)
	if err != nil {
		return err
	}
	defer d.Close()
	rows, err := d.Query(dbtest.Spell(d, statement))
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		row := make([]any, len(columns))
		for i := range row {
			row[i] = new(any)
		}
		if err := rows.Scan(row...); err != nil {
			return err
		}
		for i := range row {
			row[i] = *row[i].(*any)
		}
		fmt.Println(row...)
	}
	return rows.Err()
}

// TestExamples runs the scripts in examples, each on a database of its own. Those of the lab, which makes
// its databases itself, run once.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("examples/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			run := func(t *testing.T, dsn string) {
				testscript.Run(t, testscript.Params{
					Files: []string{file},
					Setup: func(e *testscript.Env) error {
						e.Setenv("JOBLEDGER_DB", dsn)
						e.Setenv("PORT", freePort(t))
						return copyPrograms(e.WorkDir)
					},
				})
			}
			if script, err := os.ReadFile(file); err == nil && !bytes.Contains(script, []byte("\njobledger init\n")) {
				run(t, "nowhere.db")
				return
			}
			dbtest.Each(t, run)
		})
	}
}

// freePort gives a port that nobody listens at now.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// copyPrograms puts the programs that belong to the examples beside them.
func copyPrograms(dir string) error {
	programs, err := filepath.Glob("examples/ledger_*.py")
	for _, program := range programs {
		text, readErr := os.ReadFile(program)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, filepath.Base(program)), text, 0o600))
	}
	return err
}

// outcome is what a command left behind.
type outcome struct {
	stdout, stderr string
	exit           int
}

// jobledger runs the real program in a process of its own.
func jobledger(t *testing.T, dsn string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), "jobledger", args...)
	c.Env = append(os.Environ(), "JOBLEDGER_DB="+dsn)
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		return outcome{stdout.String(), stderr.String(), exit.ExitCode()}
	}
	return outcome{stdout.String(), stderr.String(), 0}
}

// must runs a command that has to succeed and gives what it printed.
func must(t *testing.T, dsn string, args ...string) string {
	t.Helper()
	o := jobledger(t, dsn, args...)
	if o.exit != 0 || o.stderr != "" {
		t.Fatalf("%q: exit %d, stderr %s", args, o.exit, o.stderr)
	}
	return o.stdout
}

// refused checks a command that has to fail with one line on stderr, nothing on stdout.
func refused(t *testing.T, dsn string, exit int, message string, args ...string) {
	t.Helper()
	o := jobledger(t, dsn, args...)
	want := regexp.MustCompile(`\Ajobledger: [^A-Z\n][^\n]*[^.\n]\n\z`)
	if o.exit != exit || o.stdout != "" || !want.MatchString(o.stderr) ||
		!regexp.MustCompile(message).MatchString(o.stderr) {
		t.Errorf("%.60q: got exit %d, stdout %q, stderr %q;\nwant exit %d, stderr %s",
			args, o.exit, o.stdout, o.stderr, exit, message)
	}
	o = jobledger(t, dsn, append([]string{"--json"}, args...)...)
	var e struct{ Code, Message string }
	if err := json.Unmarshal([]byte(o.stderr), &e); err != nil || e.Code == "" || e.Message == "" ||
		o.exit != exit || o.stdout != "" || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("%.60q --json: got exit %d, stdout %q, stderr %q", args, o.exit, o.stdout, o.stderr)
	}
}

// everything is all that the ledger holds, as text.
func everything(t *testing.T, dsn string) string {
	t.Helper()
	return must(t, dsn, "balance", "--json") + must(t, dsn, "entries", "--json") +
		must(t, dsn, "job", "list", "--json") + must(t, dsn, "job", "explain", "j1", "--json")
}

// prepare gives alice 100 credits, and job j1 with a cost of 7.
func prepare(t *testing.T, dsn string) {
	t.Helper()
	must(t, dsn, "grant", "alice", "100", "--key", "k")
	must(t, dsn, "job", "create", "j1", "--owner", "alice", "--cost", "7")
}

// badCommands are refused by a ledger in which alice has 93 credits and job j1 holds 7.
var badCommands = []struct {
	exit    int
	message string
	args    []string
}{
	{3, `no job "nope"`, []string{"notify", "nope", "failed"}},
	{3, `no job "nope"`, []string{"job", "show", "nope"}},
	{3, `no job "nope"`, []string{"job", "explain", "nope"}},
	{3, `no owner "nope"`, []string{"balance", "nope"}},
	{3, `no owner "nope"`, []string{"job", "create", "bad", "--owner", "nope", "--cost", "5"}},
	{2, `cost: 8 is more than the job's cost, 7`, []string{"notify", "j1", "completed", "--cost", "8"}},
	{2, `cost: only a completed job`, []string{"notify", "j1", "failed", "--cost", "5"}},
	{5, `differs in cost`, []string{"job", "create", "j1", "--owner", "alice", "--cost", "8"}},
	{5, `differs in amount, reason`, []string{"grant", "alice", "5", "--key", "k", "--reason", "r"}},
	{6, `93 credits available and 94`, []string{"job", "create", "bad", "--owner", "alice", "--cost", "94"}},
	{6, `93 credits available and 94`, []string{"revoke", "alice", "94", "--key", "bad", "--reason", "r"}},
	{2, `metadata: .*JSON object`, []string{"grant", "alice", "5", "--key", "bad", "--metadata", "[1]"}},
	{2, `metadata: .*4096`, []string{"grant", "alice", "5", "--key", "bad", "--metadata",
		`{"a":"` + strings.Repeat("x", 4090) + `"}`}},
	{2, `reason: .*1024`, []string{"notify", "j1", "failed", "--reason", strings.Repeat("x", 1025)}},
	{2, `mode: "free" is not one of hold, charge`,
		[]string{"job", "create", "bad", "--owner", "alice", "--cost", "5", "--mode", "free"}},
	{2, `source: "sweep" is not one of callback, poll, operator`,
		[]string{"notify", "j1", "failed", "--source", "sweep"}},
	{2, `attempt: "0" is not a number`, []string{"notify", "j1", "failed", "--attempt", "0"}},
	{2, `expires: .* has passed`, []string{"grant", "alice", "5", "--key", "bad", "--expires", "0s"}},
	{2, `expires: .*span`, []string{"grant", "alice", "5", "--key", "bad", "--expires", "soon"}},
	{2, `effective: .*not before`,
		[]string{"grant", "alice", "5", "--key", "bad", "--effective", "2d", "--expires", "1d"}},
	{2, `status: "ended" is not one of`, []string{"job", "list", "--status", "ended"}},
	{2, `limit: "1001"`, []string{"entries", "--limit", "1001"}},
	{2, `amount: .*1 to 9007199254740991`, []string{"grant", "alice", "010", "--key", "bad"}},
	{2, `cost: .*1 to 9007199254740991`, []string{"notify", "j1", "completed", "--cost=5.0"}},
	{2, `owner: .*empty`, []string{"grant", "", "5", "--key", "bad"}},
	{2, `owner: .*256 bytes`, []string{"balance", strings.Repeat("x", 256)}},
	{2, `id: .*control character`, []string{"notify", "a\nb", "failed"}},
	{2, `key: .*UTF-8`, []string{"grant", "alice", "5", "--key=a\xff"}},
	{2, `id: .*space`, []string{"job", "show", "a\u00a0"}},
	{2, `unknown flag --kye`, []string{"grant", "alice", "5", "--kye", "bad"}},
	{2, `unknown command "grnat": did you mean grant`, []string{"grnat"}},
	{2, `no command given`, nil},
}

// TestBadInput: one clear line that names the field, the code's exit status, and nothing written. What a
// field takes is in the table of TestBoundaries.
func TestBadInput(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		prepare(t, dsn)
		before := everything(t, dsn)
		for _, c := range badCommands {
			refused(t, dsn, c.exit, c.message, c.args...)
		}
		if after := everything(t, dsn); after != before {
			t.Errorf("bad input changed the ledger:\n%s\n%s", before, after)
		}
	})
}

// TestArgumentsBeforeDatabase: what is wrong with the arguments is found before the file is touched.
func TestArgumentsBeforeDatabase(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "missing", "x.db")
	for message, line := range map[string]string{
		"outcome: .exploded. is not one of completed, failed, canceled, timed_out": "notify j1 exploded",
		"source: ":                "notify j1 failed --source rumour",
		"amount: ":                "grant alice 5.0 --key k",
		"expires: ":               "grant alice 5 --key k --expires soon",
		"cost: ":                  "job create j1 --owner alice --cost 010",
		"limit: ":                 "entries --limit 0",
		"at: ":                    "balance alice --at noon",
		"the directory does not ": "notify j1 failed",
	} {
		refused(t, nowhere, 2, message, strings.Fields(line)...)
	}
}

// TestDefaultDatabase: without --db it is $JOBLEDGER_DB, and if that is empty jobledger.db.
func TestDefaultDatabase(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for name, args := range map[string][]string{
		"":         {"init"},
		"env.db":   {"init", "--db", ""},
		"other.db": {"init", "--db", "flag.db"},
	} {
		must(t, name, args...)
	}
	for name, want := range map[string]bool{
		"jobledger.db": true, "env.db": true, "flag.db": true, "other.db": false,
	} {
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fields gives the names in a JSON object, sorted; those of objects within as name.field.
func fields(t *testing.T, document string, within ...string) []string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(document), &object); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	names := slices.Collect(maps.Keys(object))
	for _, name := range within {
		inner := object[name]
		if list, ok := inner.([]any); ok && len(list) > 0 {
			inner = list[0]
		}
		object, ok := inner.(map[string]any)
		if !ok {
			t.Fatalf("no object %s in %s", name, document)
		}
		for field := range object {
			names = append(names, name+"."+field)
		}
	}
	slices.Sort(names)
	return names
}

const (
	lotFields   = "amount available effective_at entry expired expires_at held id owner priority used"
	entryFields = "amount available_after event_key expired_after hash held_after id job kind metadata " +
		"occurred_at owner postings reason recorded_at seq used_after"
	balanceFields = "available expired held owner used"
	jobFields     = "attempt cost created_at deadline id metadata mode owner reason settled_at " +
		"settled_attempt settled_cost settled_source status submission updated_at"
)

// under puts the name of an object before each of its fields, and names the object itself too.
func under(name, fields string) string {
	return name + " " + name + "." + strings.ReplaceAll(fields, " ", " "+name+".") + " "
}

// jsonForms are commands, the fields of their documents, and the objects within to look at.
var jsonForms = []struct{ line, want, within string }{
	{"init", "created db engine schema_version", ""},
	{"grant alice 100 --key k",
		under("balance", balanceFields) + under("lot", lotFields) + "replayed", "lot balance"},
	{"balance alice", balanceFields, ""},
	{"balance alice --lots", balanceFields + " " + under("lots", lotFields), "lots"},
	{"balance", under("items", balanceFields), "items"},
	{"entries", under("items", entryFields), "items"},
	{"job create j1 --owner alice --cost 7",
		under("balance", balanceFields) + under("job", jobFields) + "replayed", "job balance"},
	{"job show j1", under("job", jobFields), "job"},
	{"job list", under("items", jobFields), "items"},
	{"notify j1 completed --cost 5", settlementFields, "job balance"},
	{"notify j1 failed", settlementFields, "job balance"},
	{"job cancel j1", settlementFields, "job balance"},
	{"job explain j1",
		"answers attempts deliveries entries events job lots open reports " +
			under("timeline", "at text what"),
		"timeline"},
	{"sweep", "expired_lots needs_reconciliation timed_out", ""},
	{"audit", under("checks", "name ok violations") + "ok", "checks"},
	{"revoke alice 5 --key r --reason r",
		under("balance", balanceFields) + under("entry", entryFields) + "replayed", "entry balance"},
	{"schema", "schema_version sql", ""},
	{"version", "go platform schema_version sqlite version", ""},
}

var settlementFields = under("balance", balanceFields) + under("job", jobFields) +
	"consumed reported returned verdict won"

// TestJSON holds the contract of the --json form: one document with these fields.
func TestJSON(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		for _, c := range jsonForms {
			document := must(t, dsn, append(strings.Fields(c.line), "--json")...)
			got, want := fields(t, document, strings.Fields(c.within)...), strings.Fields(c.want)
			slices.Sort(want)
			if !slices.Equal(got, want) || strings.Count(document, "\n") != 1 {
				t.Errorf("%s:\n got %s\nwant %s\n%s", c.line, got, want, document)
			}
		}
		var s struct {
			Won                bool
			Reported, Verdict  string
			Returned, Consumed int64
			Job                struct{ Status string }
			Balance            struct{ Available, Held, Used, Expired int64 }
		}
		if err := json.Unmarshal([]byte(must(t, dsn, "--json", "notify", "j1", "failed")), &s); err != nil {
			t.Fatal(err)
		}
		if s.Won || s.Reported != "failed" || s.Verdict != "conflict" || s.Returned != 2 || s.Consumed != 5 ||
			s.Job.Status != "completed" || s.Balance.Available != 90 || s.Balance.Held != 0 || s.Balance.Used != 5 ||
			s.Balance.Expired != 5 {
			t.Errorf("got %+v", s)
		}
	})
}
