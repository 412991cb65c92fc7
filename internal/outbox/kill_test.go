//go:build unix

package outbox_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"jobledger/internal/outbox"
	"jobledger/ledger"
)

// These make the test binary a process that settles the job k in the ledger that the first names, and sends
// what is due: until it is killed. With the second it only settles, says so, and stands still.
const (
	childVariable = "JOBLEDGER_OUTBOX_CHILD"
	stillVariable = "JOBLEDGER_OUTBOX_STILL"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childVariable); dsn != "" {
		if err := child(context.Background(), dsn); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
		}
		os.Exit(1) // it was to be killed
	}
	os.Exit(m.Run())
}

func child(ctx context.Context, dsn string) error {
	l, err := ledger.Open(ctx, dsn, ledger.Options{})
	if err != nil {
		return err
	}
	_, err = l.Settle(ctx, ledger.Report{Job: "k", Outcome: ledger.Failed, Source: ledger.Poll})
	if err != nil {
		return err
	}
	if os.Getenv(stillVariable) != "" {
		fmt.Println("settled")
		select {}
	}
	_, err = outbox.New(l, outbox.Options{AllowPrivate: true, Timeout: time.Minute}).Once(ctx)
	return err
}

// process prepares such a process, which settles the job k.
func (b *bench) process(environment ...string) *exec.Cmd {
	b.Helper()
	_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: "k", Owner: "o", Cost: 1})
	b.ok(err)
	process := exec.CommandContext(b.Context(), os.Args[0])
	process.Env = append(append(os.Environ(), childVariable+"="+b.dsn), environment...)
	process.Stderr = os.Stderr
	return process
}

// kill kills a process that has settled the job k.
func (b *bench) kill(process *exec.Cmd) {
	b.Helper()
	b.ok(process.Process.Kill())
	process.Wait()
	job, err := b.Job(b.Context(), "k")
	b.ok(err)
	if job.Status != ledger.Status(ledger.Failed) {
		b.Fatalf("the job is %s", job.Status)
	}
}

// A process settles a job and is killed before it does anything else: another one tells of it, once.
func TestKilledAfterTheCommit(t *testing.T) {
	each(t, func(b *bench) {
		r := b.receive(accept)
		b.add(r.URL)
		process := b.process(stillVariable + "=1")
		out, err := process.StdoutPipe()
		b.ok(err)
		b.ok(process.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "settled\n" {
			b.Errorf("it says %q, %v", line, err)
		}
		b.kill(process)
		b.states("settled:k pending 0 0")
		b.once(b.sender(), outbox.Sent{Delivered: 1})
		b.states("settled:k delivered 1 204")
		b.same(r.got(), []string{"settled:k"})
	})
}

// A process settles a job and is killed while it tells of it. Another one tells of it again, once the
// lease of the first has ended, and not before.
func TestKilledInTheCall(t *testing.T) {
	each(t, func(b *bench) {
		called, release := make(chan bool), make(chan bool)
		r := b.receive(func(w http.ResponseWriter, _ string, times int) {
			if times == 1 {
				close(called)
				<-release
			}
		})
		b.Cleanup(func() { close(release) })
		b.add(r.URL)
		process := b.process()
		b.ok(process.Start())
		select {
		case <-called:
		case <-time.After(patience):
			b.Error("nobody was called")
		}
		b.kill(process)
		b.states("settled:k pending 1 0")
		s := b.sender()
		b.once(s, outbox.Sent{})
		b.forward(2 * time.Minute)
		b.once(s, outbox.Sent{Delivered: 1})
		b.states("settled:k delivered 2 200")
		b.same(r.got(), []string{"settled:k", "settled:k"})
	})
}
