package ledger_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"jobledger/internal/fakeprovider"
	"jobledger/ledger"
)

// workerVariable tells a process of this test binary to be a worker that stops at a point.
const workerVariable = "JOBLEDGER_WORKER_TEST"

// errand is what such a worker gets. It creates job j and then works.
type errand struct {
	DSN, Provider, Stop string
	Deadline            time.Duration // since start; 0: none
}

// Wherever a worker is killed, what is returned afterwards follows from what it had saved; the
// provider has made one job at most, and makes no second one.
func TestKillAroundTheProviderCall(t *testing.T) {
	if text := os.Getenv(workerVariable); text != "" {
		workUntilKilled(t, text)
		return
	}
	const inTheCall = "" // no point of the worker's: the provider has the job and does not answer
	for _, c := range []struct {
		stop      string
		act       fakeprovider.Act
		creations int
		canceled  string // what a cancellation answers
	}{
		{beforeMarker, fakeprovider.Accept, 0, "won canceled"},
		{afterMarker, fakeprovider.Accept, 0, string(ledger.ReconciliationRequired)},
		{inTheCall, fakeprovider.Hang, 1, string(ledger.ReconciliationRequired)},
		{beforeSave, fakeprovider.Accept, 1, string(ledger.ReconciliationRequired)},
		{beforeSave, fakeprovider.Reject, 0, string(ledger.ReconciliationRequired)},
		{beforeSave, fakeprovider.Drop, 1, string(ledger.ReconciliationRequired)},
		{afterSave, fakeprovider.Drop, 1, string(ledger.ReconciliationRequired)},
		{afterSave, fakeprovider.Accept, 1, "won canceled"},
		{afterSave, fakeprovider.Reject, 0, "conflict failed"},
	} {
		eachWorkbench(t, func(b *workbench) {
			p, client := startProvider(b.T, c.act, fakeprovider.Accept)
			b.give("g", 7)
			b.killed(errand{b.dsn, p.URL, c.stop, 0}, p)
			s, err := b.Cancel(b.Context(), "j", "")
			got := fmt.Sprint(s.Verdict, " ", s.Job.Status)
			if err != nil {
				got = string(ledger.CodeOf(err))
			}
			if got != c.canceled || p.Creations() != c.creations {
				b.Fatalf("killed %s, provider %s: cancel says %q after %d creations, want %q after %d",
					c.stop, c.act, got, p.Creations(), c.canceled, c.creations)
			}
			if err != nil {
				b.unresolved(p, client, c.creations)
				// B32: an operator who has looked ends it, once.
				r := ledger.Reconciliation{Job: "j", Evidence: "ticket 4711", Operator: "sue"}
				b.reconciled("rejected: won failed, failed 7 0", true, r)
				b.reconciled("rejected replayed: won failed, failed 7 0", true, r)
			}
			b.balance("7 0 0 0")
		})
	}
}

// B18: a hold outlives its process, is in sight while it lasts, and ends at the deadline, once. B88:
// the same creation again, by the next process, is the same job.
func TestB18HoldOutlivesItsProcess(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		p, _ := startProvider(b.T)
		b.give("g", 7)
		b.killed(errand{b.dsn, p.URL, beforeMarker, time.Hour}, p)
		again := ledger.JobParams{ID: "j", Owner: "demo", Cost: 7, Deadline: on(time.Hour)}
		r, err := b.CreateJob(b.Context(), again)
		b.ok(err)
		if !r.Replayed {
			b.Fatalf("created anew: %+v", r)
		}
		for at, timedOut := range []int64{0, 1, 0} {
			b.at(time.Hour + time.Duration(at-1)*tick)
			report, err := b.Audit(b.Context(), ledger.AuditParams{Quiescent: true})
			b.ok(err)
			if report.OK != (at == 2) {
				b.Fatalf("%d ticks after the deadline: quiescent %t", at-1, report.OK)
			}
			swept, err := b.Sweep(b.Context(), ledger.PageMax)
			b.ok(err)
			if swept.TimedOut != timedOut {
				b.Fatalf("%d ticks after the deadline: %+v", at-1, swept)
			}
		}
		b.balance("7 0 0 0")
		b.evidence("j", "sweep timed_out won 1", "job.timed_out")
	})
}

// killed runs a worker in a process of its own, and kills it where the errand says; or, if it says
// nothing, as soon as the provider has the job.
func (b *workbench) killed(e errand, p *fakeprovider.Provider) {
	b.Helper()
	text, err := json.Marshal(e)
	b.ok(err)
	self, err := os.Executable()
	b.ok(err)
	cmd := exec.CommandContext(b.Context(), self, "-test.run=^TestKillAroundTheProviderCall$")
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	b.ok(err)
	b.ok(cmd.Start())
	for scanner := bufio.NewScanner(out); e.Stop != "" && scanner.Scan(); {
		if scanner.Text() == e.Stop {
			break
		}
	}
	for deadline := time.Now().Add(20 * time.Second); e.Stop == "" && p.Creations() == 0; {
		if time.Sleep(time.Millisecond); time.Now().After(deadline) {
			break
		}
	}
	b.ok(cmd.Process.Kill())
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		b.Fatalf("the worker ended by itself: %v %s", err, &stderr)
	}
}

// workUntilKilled is the worker. It says each point before it goes on, and does not go on from the
// one where it is to be killed.
func workUntilKilled(t *testing.T, text string) {
	var e errand
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	l := faultOpen(t, e.DSN, ledger.Options{Clock: func() time.Time { return start }})
	p := ledger.JobParams{ID: "j", Owner: "demo", Cost: 7}
	if e.Deadline > 0 {
		p.Deadline = on(e.Deadline)
	}
	if _, err := l.CreateJob(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	client := &fakeprovider.Client{URL: e.Provider, HTTP: &http.Client{Timeout: time.Minute}}
	came, err := work(l, client, fakeprovider.Order{Job: "j"}, func(point string) {
		fmt.Fprintln(os.Stdout, point)
		if point == e.Stop {
			time.Sleep(time.Minute)
		}
	})
	t.Fatalf("nobody killed the worker: %q, %v", came, err)
}
