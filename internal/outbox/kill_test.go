//go:build unix

package outbox_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"jobledger/internal/outbox"
	"jobledger/ledger"
)

// childVariable makes the test binary a process that settles the job k in the ledger that it names, and
// sends what is due: until it is killed.
const childVariable = "JOBLEDGER_OUTBOX_CHILD"

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
	_, err = outbox.New(l, outbox.Options{AllowPrivate: true, Timeout: time.Minute}).Once(ctx)
	return err
}

// A process settles a job and is killed while it tells of it. Another one tells of it again, once the
// lease of the first has ended, and not before.
func TestKilledAfterTheCommit(t *testing.T) {
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
		_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: "k", Owner: "o", Cost: 1})
		b.ok(err)
		process := exec.CommandContext(b.Context(), os.Args[0])
		process.Env = append(os.Environ(), childVariable+"="+b.dsn)
		process.Stderr = os.Stderr
		b.ok(process.Start())
		select {
		case <-called:
		case <-time.After(patience):
			b.Error("nobody was called")
		}
		b.ok(process.Process.Kill())
		process.Wait()
		job, err := b.Job(b.Context(), "k")
		b.ok(err)
		if job.Status != ledger.Status(ledger.Failed) {
			b.Fatalf("the job is %s", job.Status)
		}
		b.states("settled:k pending 1 0")
		s := b.sender()
		b.once(s, outbox.Sent{})
		b.forward(2 * time.Minute)
		b.once(s, outbox.Sent{Delivered: 1})
		b.states("settled:k delivered 2 200")
		b.same(r.got(), []string{"settled:k", "settled:k"})
	})
}
