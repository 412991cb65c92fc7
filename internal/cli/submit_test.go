package cli_test

import (
	"encoding/json"
	"os/user"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"jobledger/db/dbtest"
)

const submissions = `$ grant alice 100 --key k
granted 100 to alice: available 100, held 0
$ job create j1 --owner alice --cost 7
held 7 for job j1 on alice: available 93, held 7
$ job submit j1 --provider acme
marked attempt 1 of job j1 at acme, 7 stay held: now call acme once,` +
	` then record its answer with job accepted, job rejected or job uncertain
$ job submit j1 --provider acme
jobledger: job "j1": attempt 1 is open (submission submitting)
$ job uncertain j1 --attempt 1 --reason connection-reset
attempt 1 of job j1 is uncertain, 7 stay held: do not call the provider again; ask it,` +
	` then reconcile accept j1 or reconcile reject j1
$ job cancel j1
jobledger: job "j1": nobody knows whether the provider took it (attempt 1, submission uncertain):` +
	` reconcile it first
$ reconcile list
JOB  AGE  SUBMISSION  ATTEMPT  PROVIDER/ID  HELD  REASON
j1   0s   uncertain         1  acme            7  connection-reset
$ job rejected j1 --attempt 1 --evidence no-capacity --retry
attempt 1 of job j1 is rejected, 7 stay held: try again with job submit j1, or end it with job cancel j1
$ job submit j1 --provider other
marked attempt 2 of job j1 at other, 7 stay held: now call other once,` +
	` then record its answer with job accepted, job rejected or job uncertain
$ job rejected j1 --attempt 1 --evidence no-capacity --retry
already done, nothing changed: attempt 1 of job j1 is rejected, 7 stay held:` +
	` the job is at attempt 2 by now, which is submitting
$ job accepted j1 --attempt 2 --upstream-id u-2
attempt 2 of job j1 is accepted, 7 stay held: its report will settle the job (notify j1 OUTCOME --attempt 2)
$ reconcile list
no job waits for reconciliation
$ notify j1 failed --attempt 1
jobledger: job "j1" is at attempt 2 and the report is about 1
$ notify j1 completed --attempt 2 --upstream-id u-2 --source callback
used 7 for job j1 on alice (completed): available 93, held 0, used 7
$ job accepted j1 --attempt 2 --upstream-id u-2
already done, nothing changed: attempt 2 of job j1 is accepted; nothing moved,` +
	` callback settled job j1 as completed at TIME (used 7): available 93, held 0, used 7
$ job show j1
job           j1
owner         alice
status        completed
mode          hold
cost          7
attempt       2
submission    accepted
settled cost  7
settled by    callback
settled at    TIME
deadline      none
created at    TIME

ATTEMPT  PROVIDER  UPSTREAM ID  SUBMISSION  OPERATOR  EVIDENCE
      1  acme                   rejected              no-capacity
      2  other     u-2          accepted`

const reconciliations = `$ job create j2 --owner alice --cost 9 --mode charge
charged 9 for job j2 on alice: available 84, held 0, used 16
$ job submit j2 --provider acme
marked attempt 1 of job j2 at acme, 9 stay used: now call acme once,` +
	` then record its answer with job accepted, job rejected or job uncertain
$ job create j3 --owner alice --cost 5
held 5 for job j3 on alice: available 79, held 5, used 16
$ job submit j3 --provider acme
marked attempt 1 of job j3 at acme, 5 stay held: now call acme once,` +
	` then record its answer with job accepted, job rejected or job uncertain
$ reconcile list
JOB    AGE  SUBMISSION  ATTEMPT  PROVIDER/ID  HELD  REASON
j2     0s   submitting        1  acme            0
j3     0s   submitting        1  acme            5
total                                            5
$ reconcile list --limit 1
JOB  AGE  SUBMISSION  ATTEMPT  PROVIDER/ID  HELD  REASON
j2   0s   submitting        1  acme            0
there may be more: --after j2
$ reconcile accept j2 --upstream-id u-3 --evidence seen --operator sue
attempt 1 of job j2 is accepted, 9 stay used: its report will settle the job (notify j2 OUTCOME --attempt 1)
$ reconcile accept j2 --upstream-id u-3 --evidence seen --operator sue
already done, nothing changed: attempt 1 of job j2 is accepted, 9 stay used:` +
	` its report will settle the job (notify j2 OUTCOME --attempt 1)
$ reconcile accept j2 --upstream-id u-3 --evidence seen --operator tom
jobledger: the answer to attempt 1 exists with other content; it differs in operator
$ reconcile accept j3 --upstream-id u-3 --evidence seen --operator sue
jobledger: upstream id "u-3" of acme belongs to job "j2"
$ reconcile reject j3 --evidence ticket-4711 --operator sue
attempt 1 of job j3 is rejected; returned 5 for job j3 on alice (failed): available 84, held 0, used 16
$ reconcile reject j3 --evidence ticket-4711 --operator sue
already done, nothing changed: attempt 1 of job j3 is rejected;` +
	` returned 5 for job j3 on alice (failed): available 84, held 0, used 16
$ job rejected j3 --attempt 1 --evidence status-422
attempt 1 of job j3 is rejected; nothing moved: operator settled job j3 as failed at TIME (returned 5);` +
	` this report, failed, is a duplicate: available 84, held 0, used 16
$ job cancel j2
returned 9 for job j2 on alice (canceled): available 93, held 0, used 7`

// TestSubmissionConversation shows how a submission goes, step by step, and what to do at each.
func TestSubmissionConversation(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		conversation(t, dsn, submissions)
		conversation(t, dsn, reconciliations)
		if stdout, stderr, exit := run(t, dsn, "audit"); exit != 0 {
			t.Errorf("audit: %s%s", stdout, stderr)
		}
	})
}

// TestThirdArticleRefundFailsThroughTheCommands: a rejection whose refund fails leaves the attempt as
// it was; said again, it settles, and pays once.
func TestThirdArticleRefundFailsThroughTheCommands(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		for _, line := range []string{"grant alice 10 --key k", "job create j --owner alice --cost 7",
			"job submit j --provider acme"} {
			if _, stderr, exit := run(t, dsn, line); exit != 0 {
				t.Fatal(stderr)
			}
		}
		dbtest.Exec(t, dsn, `CREATE TRIGGER fault BEFORE UPDATE ON balances BEGIN SELECT RAISE(ABORT, 'no'); END`)
		const rejected = "job rejected j --attempt 1 --evidence status-422"
		if _, stderr, exit := run(t, dsn, rejected); exit != 8 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("exit %d, %s", exit, stderr)
		}
		conversation(t, dsn, `$ job cancel j
jobledger: job "j": nobody knows whether the provider took it (attempt 1, submission submitting):`+
			` reconcile it first`)
		dbtest.Exec(t, dsn, `DROP TRIGGER fault`)
		conversation(t, dsn, "$ "+rejected+`
attempt 1 of job j is rejected; returned 7 for job j on alice (failed): available 10, held 0
$ `+rejected+`
already done, nothing changed: attempt 1 of job j is rejected;`+
			` returned 7 for job j on alice (failed): available 10, held 0
$ entries --job j
TIME                  OWNER  SEQ  KIND     AMOUNT  JOB
TIME  alice    2  hold          7  j
TIME  alice    3  release       7  j`)
	})
}

// TestSubmissionJSON holds the documents' fields, and who reconciled if nobody is named.
func TestSubmissionJSON(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		for _, c := range []struct{ line, want string }{
			{"grant alice 10 --key k", "balance lot replayed"},
			{"job create j --owner alice --cost 7", "balance job replayed"},
			{"job submit j --provider acme", "attempt job"},
			{"job uncertain j --attempt 1 --reason r", "job replayed"},
			{"job accepted j --attempt 1 --upstream-id u", "job replayed"},
			{"reconcile list", "items"},
			{"reconcile reject j --evidence e", "job replayed settlement"},
		} {
			stdout, stderr, exit := run(t, dsn, "--json "+c.line)
			var document map[string]json.RawMessage
			if err := json.Unmarshal([]byte(stdout), &document); err != nil || exit != 0 {
				t.Fatalf("%s: exit %d, %v, %s", c.line, exit, err, stderr)
			}
			var names []string
			for name := range document {
				names = append(names, name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%s: %s, want %s", c.line, got, c.want)
			}
		}
		stdout, _, _ := run(t, dsn, "job explain j --json")
		var story struct {
			Attempts []struct{ Operator, Evidence string }
		}
		who, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(stdout), &story); err != nil || len(story.Attempts) != 1 ||
			story.Attempts[0].Operator != who.Username || story.Attempts[0].Evidence != "e" {
			t.Errorf("%+v, %v, want operator %s", story, err, who.Username)
		}
	})
}

// TestWrongSubmissions: one line that names the field, before the database is touched.
func TestWrongSubmissions(t *testing.T) {
	for line, want := range map[string]string{
		"job submit j":                               "provider",
		"job submit j --provider=":                   "provider: is empty",
		"job accepted j --attempt 1":                 "upstream-id",
		"job accepted j --attempt 0 --upstream-id u": `attempt: "0" is not a number`,
		"job accepted j --attempt 1 --upstream-id=":  "upstream-id: is empty",
		"job rejected j --attempt 1 --evidence=":     "evidence: is empty",
		"job uncertain j --attempt 1 --reason=":      "reason: is empty",
		"job uncertain j --attempt 1 --evidence e":   "unknown flag --evidence",
		"job accepted  --attempt 1 --upstream-id u":  "id: is empty",
		"reconcile":                                                    "needs a command: list, accept, reject",
		"reconcile all":                                                `unknown command "reconcile all"`,
		"reconcile reject j k --evidence e":                            "too many arguments",
		"reconcile reject --evidence e":                                "missing argument ID",
		"reconcile reject j":                                           "evidence",
		"reconcile reject j --evidence e --operator=":                  "operator: is empty",
		"reconcile accept j --evidence e":                              "upstream-id",
		"reconcile accept j --evidence e --upstream-id u --provider=":  "provider: is empty",
		"reconcile reject j --evidence " + strings.Repeat("x", 1025):   "evidence: has 1025 bytes",
		"reconcile list --limit 0":                                     `limit: "0"`,
		"job rejected j --attempt 1 --evidence e --retry=perhaps":      "flag --retry takes no value",
		"job rejected j --attempt 1 --evidence e --retry --provider p": "unknown flag --provider",
	} {
		stdout, stderr, exit := run(t, "/nowhere/x.db", line)
		if exit != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) ||
			strings.Contains(stderr, "directory") {
			t.Errorf("%.60s: exit %d, %s%s, want %s", line, exit, stdout, stderr, want)
		}
	}
}

// TestUnresolvedFits: what a person has to look through fits 80 columns.
func TestUnresolvedFits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		const job = "picture-12345"
		for _, line := range []string{"grant alice 1000 --key k", "job create " + job + " --owner alice --cost 999",
			"job submit " + job + " --provider imageworks",
			"job uncertain " + job + " --attempt 1 --reason Post_https://img.example/jobs:_context_deadline_exceeded",
		} {
			if _, stderr, exit := run(t, dsn, strings.Replace(line, "_", "\u2003", 9)); exit != 0 {
				t.Fatal(stderr)
			}
		}
		stdout, _, _ := run(t, dsn, "reconcile list")
		if !strings.Contains(stdout, job) || !strings.Contains(stdout, "exceeded") {
			t.Errorf("got %s", stdout)
		}
		for line := range strings.Lines(stdout) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	})
}
