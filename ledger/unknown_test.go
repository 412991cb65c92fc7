package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// submissionStates are the states of a job's submission and how a job comes into them. The SQL is
// what an import may leave behind.
var submissionStates = []struct {
	name       string
	submission ledger.Submission
	sql        string
}{
	{"none", ledger.SubmissionNone, ``},
	{"submitting", ledger.SubmissionSubmitting, ``},
	{"uncertain", ledger.SubmissionUncertain, ``},
	{"accepted", ledger.SubmissionAccepted, ``},
	{"no upstream id", ledger.SubmissionAccepted, `UPDATE attempts SET upstream_id = NULL`},
	{"no provider", ledger.SubmissionAccepted, `UPDATE attempts SET provider = ''`},
	{"rejected", ledger.SubmissionRejected, ``},
	{"unknown", ledger.SubmissionUncertain, `UPDATE attempts SET submission = 'unknown', evidence = '',
		upstream_id = job_id || '-1'`},
}

// submissionOperations are all ways to touch a job. Each gives what it answered, as one word.
var submissionOperations = []struct {
	name string
	do   func(b *workbench, job string) string
}{
	{"cancel", func(b *workbench, job string) string {
		return verdictOf(b.Cancel(b.Context(), job, "not wanted"))
	}},
	{"sweep", func(b *workbench, job string) string {
		r, err := b.Sweep(b.Context(), ledger.PageMax)
		b.ok(err)
		listed := slices.ContainsFunc(r.NeedsReconciliation, func(j ledger.Job) bool { return j.ID == job })
		return map[bool]string{true: "listed", false: fmt.Sprint("swept", r.TimedOut)}[listed]
	}},
	{"report failed", func(b *workbench, job string) string {
		return verdictOf(b.report(job, ledger.Failed))
	}},
	{"report completed", func(b *workbench, job string) string {
		return verdictOf(b.report(job, ledger.Completed))
	}},
	{"submit", func(b *workbench, job string) string {
		r, err := b.Submit(b.Context(), job, "provider")
		if err != nil {
			return string(ledger.CodeOf(err))
		}
		return fmt.Sprint("attempt", r.Attempt)
	}},
	{"accepted", func(b *workbench, job string) string {
		return firstWord(replied(b.Accepted(b.Context(), job, 1, job+"-1")))
	}},
	{"rejected", func(b *workbench, job string) string {
		return firstWord(replied(b.Rejected(b.Context(), job, 1, "said no", false)))
	}},
	{"uncertain", func(b *workbench, job string) string {
		return firstWord(replied(b.Uncertain(b.Context(), job, 1, "no answer")))
	}},
	{"reconcile accept", func(b *workbench, job string) string {
		return firstWord(replied(b.ReconcileAccept(b.Context(), ledger.Reconciliation{
			Job: job, Provider: "provider", UpstreamID: job + "-1", Evidence: "seen", Operator: "sue"})))
	}},
	{"reconcile reject", func(b *workbench, job string) string {
		return firstWord(replied(b.ReconcileReject(b.Context(), ledger.Reconciliation{
			Job: job, Evidence: "not there", Operator: "sue"})))
	}},
}

func verdictOf(s ledger.Settlement, err error) string {
	if err != nil {
		return string(ledger.CodeOf(err))
	}
	return string(s.Verdict)
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, ":")
	return strings.ReplaceAll(word, " ", "-")
}

// unknownTable says for each state of a submission, in the order of the operations, what is
// answered, and then how the job and its 7 credits stand: = is as before, - is ended with all
// returned, and + is completed with all used.
var unknownTable = map[string]string{
	"none": `won canceled- | swept1 timed_out- | won failed- | won completed+ | attempt1 submitting= |
		NOT_FOUND none= | NOT_FOUND none= | NOT_FOUND none= | NOT_ALLOWED none= | NOT_ALLOWED none=`,
	"submitting": `RECONCILE submitting= | listed submitting= | won failed- | won completed+ |
		NOT_ALLOWED submitting= | accepted accepted= | rejected failed- | uncertain uncertain= |
		accepted accepted= | rejected failed-`,
	"uncertain": `RECONCILE uncertain= | listed uncertain= | won failed- | won completed+ |
		NOT_ALLOWED uncertain= | accepted accepted= | rejected failed- | uncertain-replayed uncertain= |
		accepted accepted= | rejected failed-`,
	"accepted": `won canceled- | listed accepted= | won failed- | won completed+ | NOT_ALLOWED accepted= |
		accepted-replayed accepted= | NOT_ALLOWED accepted= | NOT_ALLOWED accepted= |
		NOT_ALLOWED accepted= | rejected failed-`,
	"no upstream id": `RECONCILE accepted= | listed accepted= | won failed- | won completed+ |
		NOT_ALLOWED accepted= | accepted accepted= | NOT_ALLOWED accepted= | NOT_ALLOWED accepted= |
		accepted accepted= | rejected failed-`,
	"no provider": `RECONCILE accepted= | listed accepted= | won failed- | won completed+ |
		NOT_ALLOWED accepted= | accepted-replayed accepted= | NOT_ALLOWED accepted= | NOT_ALLOWED accepted= |
		accepted accepted= | rejected failed-`,
	"rejected": `won canceled- | listed rejected= | won failed- | won completed+ | attempt2 submitting= |
		NOT_ALLOWED rejected= | rejected failed- | NOT_ALLOWED rejected= | NOT_ALLOWED rejected= |
		rejected failed-`,
	"unknown": `RECONCILE unknown= | listed unknown= | won failed- | won completed+ | NOT_ALLOWED unknown= |
		NOT_ALLOWED unknown= | NOT_ALLOWED unknown= | NOT_ALLOWED unknown= | accepted accepted= |
		rejected failed-`,
}

// What may be done with a job follows from what is known of its submission, and from nothing else.
func TestSubmissionStatesAndOperations(t *testing.T) {
	modes := []ledger.Mode{ledger.ModeHold, ledger.ModeCharge}
	if testing.Short() {
		modes = modes[:1]
	}
	for _, mode := range modes {
		eachWorkbench(t, func(b *workbench) {
			b.at(time.Hour)
			for _, state := range submissionStates {
				row := strings.Split(unknownTable[state.name], "|")
				if len(row) != len(submissionOperations) {
					b.Fatalf("%s: %d operations", state.name, len(row))
				}
				for i, operation := range submissionOperations {
					job := state.name + ", " + operation.name
					b.inState(job, mode, state.submission, state.sql)
					answer := operation.do(b, job)
					got := strings.Replace(answer, string(ledger.ReconciliationRequired), "RECONCILE", 1) + " " +
						b.standing(job, mode)
					if want := strings.TrimSpace(row[i]); got != want {
						b.Errorf("%s, mode %s: got %q, want %q", job, mode, got, want)
					}
				}
			}
		})
	}
}

// inState makes a job that is past its deadline, for an owner of its own that has 7 credits, and
// brings it into a state.
func (b *workbench) inState(job string, mode ledger.Mode, to ledger.Submission, sql string) {
	b.Helper()
	b.give(job, 7, ofOwner(job))
	p := ledger.JobParams{ID: job, Owner: job, Cost: 7, Mode: mode, Deadline: on(time.Minute)}
	_, err := b.CreateJob(b.Context(), p)
	b.ok(err)
	b.submit(job, to)
	if sql != "" {
		where := " WHERE job_id = '" + job + "'"
		b.imported(sql + where)
		b.exec(`UPDATE jobs SET submission = (SELECT submission FROM attempts` + where + `)
			WHERE id = '` + job + `'`)
		b.exec(`DELETE FROM polls` + where) // an import asks nobody about what it cannot name
	}
}

// standing gives a job as the table does.
func (b *workbench) standing(job string, mode ledger.Mode) string {
	b.Helper()
	j, err := b.Job(b.Context(), job)
	b.ok(err)
	a, err := b.Balance(b.Context(), ledger.BalanceParams{Owner: job})
	b.ok(err)
	unsettled := map[ledger.Mode]string{ledger.ModeHold: "0 7 0 0", ledger.ModeCharge: "0 0 7 0"}[mode]
	switch got := buckets(a); {
	case j.Status.Open() && got == unsettled:
		return string(j.Submission) + "="
	case j.Status == ledger.Status(ledger.Completed) && got == "0 0 7 0":
		return string(j.Status) + "+"
	case !j.Status.Open() && got == "7 0 0 0":
		return string(j.Status) + "-"
	default:
		return fmt.Sprintf("%s with %s", j.Status, got)
	}
}

// A reconciliation says who and why, is told of in the job's story, and a second run answers as the
// first; with other content it is refused.
func TestReconcile(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.mark("j", "acme", 1)
		r := ledger.Reconciliation{Job: "j", UpstreamID: "u1", Evidence: "seen in the console", Operator: "sue"}
		b.reconciled("accepted", false, r)
		b.unchanged(func() {
			b.reconciled("accepted replayed", false, r)
			b.accepted("accepted replayed", "j", 1, "u1") // the answer that was lost, after all
			for field, change := range map[string]func(*ledger.Reconciliation){
				"provider":    func(r *ledger.Reconciliation) { r.Provider = "other" },
				"upstream_id": func(r *ledger.Reconciliation) { r.UpstreamID = "u2" },
				"evidence":    func(r *ledger.Reconciliation) { r.Evidence = "guessed" },
				"operator":    func(r *ledger.Reconciliation) { r.Operator = "tom" },
			} {
				other := r
				change(&other)
				_, err := b.ReconcileAccept(b.Context(), other)
				b.fails(err, ledger.IdempotencyMismatch, field)
			}
		})
		reject := ledger.Reconciliation{Job: "j", Evidence: "canceled there", Operator: "tom"}
		b.reconciled("rejected: won failed, failed 7 0", true, reject)
		b.unchanged(func() {
			b.reconciled("rejected replayed: won failed, failed 7 0", true, reject)
			b.reconciled("NOT_ALLOWED", false, r)
		})
		b.evidence("j", "operator failed won 1", "job.failed")
		s, err := b.Explain(b.Context(), "j")
		b.ok(err)
		a := s.Attempts[0]
		if a.Operator != "tom" || a.Evidence != "canceled there" || *a.UpstreamID != "u1" ||
			s.Job.Reason != a.Evidence ||
			!strings.Contains(told(s), "attempt 1: rejected as u1, says tom (canceled there)") {
			b.Fatalf("the story: %+v\n%s", a, told(s))
		}
		b.rejected("NOT_ALLOWED", "j", 1, "status 422", true)
		b.rejected("rejected: duplicate failed, failed 7 0", "j", 1, "status 422", false)
	})
}

// A handle that is missing is filled in by name; one that is there is not replaced.
func TestReconcileFillsInHandles(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		b.pending("j")
		b.submit("j", ledger.SubmissionAccepted)
		b.imported(`UPDATE attempts SET provider = ''`)
		accept := func(provider, upstream string) error {
			_, err := b.ReconcileAccept(b.Context(), ledger.Reconciliation{Job: "j", Provider: provider,
				UpstreamID: upstream, Evidence: "seen", Operator: "sue"})
			return err
		}
		b.unchanged(func() {
			b.fails(accept("", "j-1"), ledger.Invalid, "provider")
			b.fails(accept("acme", "j-2"), ledger.IdempotencyMismatch, "upstream_id")
		})
		b.ok(accept("acme", "j-1"))
		s, err := b.Cancel(b.Context(), "j", "")
		b.ok(err)
		b.told("won canceled 7 0", s)
		for field, r := range map[string]ledger.Reconciliation{
			"evidence":    {Job: "j", UpstreamID: "u", Operator: "sue"},
			"operator":    {Job: "j", UpstreamID: "u", Evidence: "e"},
			"upstream_id": {Job: "j", Evidence: "e", Operator: "sue"},
			"provider":    {Job: "j", UpstreamID: "u", Evidence: "e", Operator: "sue", Provider: " "},
			"job":         {UpstreamID: "u", Evidence: "e", Operator: "sue"},
		} {
			_, err := b.ReconcileAccept(b.Context(), r)
			b.fails(err, ledger.Invalid, field)
		}
	})
}

// The list has what needs a person, with age, reason, attempt, handles and held credits, and page by
// page; and nothing else.
func TestUnresolvedJobs(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		for _, state := range submissionStates {
			b.inState(state.name, ledger.ModeHold, state.submission, state.sql)
		}
		b.inState("charge", ledger.ModeCharge, ledger.SubmissionUncertain, "")
		b.inState("ended", ledger.ModeHold, ledger.SubmissionUncertain, "")
		_, err := b.report("ended", ledger.Failed)
		b.ok(err)
		list := func(after string, limit int) (lines []string) {
			list, err := b.UnresolvedJobs(context.Background(), after, limit)
			b.ok(err)
			for _, u := range list {
				upstream := "-"
				if u.UpstreamID != nil {
					upstream = *u.UpstreamID
				}
				lines = append(lines, fmt.Sprintf("%s: %s %d %q %s/%s %d held %d s", u.Job, u.Submission, u.Attempt,
					u.Reason, u.Provider, upstream, u.Held, u.AgeSeconds))
			}
			return lines
		}
		b.at(59 * time.Second)
		before := []string{
			`charge: uncertain 1 "no answer" provider/- 0 held 59 s`,
			`no provider: accepted 1 "" /no provider-1 7 held 59 s`,
			`no upstream id: accepted 1 "" provider/- 7 held 59 s`,
			`submitting: submitting 1 "" provider/- 7 held 59 s`,
			`uncertain: uncertain 1 "no answer" provider/- 7 held 59 s`,
			`unknown: unknown 1 "" provider/unknown-1 7 held 59 s`,
		}
		b.same(list("", 100), before)
		b.same(list("", 2), before[:2])
		b.same(list("no upstream id", 2), before[3:5])
		b.at(time.Minute)
		late := list("", 100)
		if len(late) != 8 || late[0] != `accepted: accepted 1 "" provider/accepted-1 7 held 60 s` ||
			late[4] != `rejected: rejected 1 "said no" provider/- 7 held 60 s` {
			b.Fatalf("past the deadline: %q", late)
		}
		_, err = b.UnresolvedJobs(b.Context(), "", 0)
		b.fails(err, ledger.Invalid, "limit")
	})
}
