package cli_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/cli"
	"jobledger/ledger"
)

// TestDeliverRuns: deliver, and a server that delivers, send what happens while they run, until they are
// told to end.
func TestDeliverRuns(t *testing.T) {
	for _, line := range []string{
		"deliver --allow-private", "serve --addr 127.0.0.1:0 --deliver --allow-private",
	} {
		t.Run(line, func(t *testing.T) {
			dsn := dbtest.SQLite(t)
			got := make(chan string, 9)
			receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got <- r.Header.Get("webhook-id")
			}))
			defer receiver.Close()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan int, 1)
			var out, errs bytes.Buffer
			go func() {
				args := append([]string{"jobledger", "--db=" + dsn}, strings.Split(line, " ")...)
				ended <- cli.Run(ctx, cli.Program{Args: args, Stdout: &out, Stderr: &errs})
			}()
			for _, line := range []string{
				"endpoint add " + receiver.URL + " --secret-file " + secretFile(t, hookSecret),
				"grant alice 9 --key k", "job create j1 --owner alice --cost 2", "notify j1 completed",
			} {
				if _, stderr, exit := run(t, dsn, line); exit != 0 {
					t.Fatalf("%s: %s", line, stderr)
				}
			}
			select {
			case <-got:
			case <-time.After(30 * time.Second):
				t.Fatal("nothing was sent")
			}
			wantDelivered(t, dsn)
			stop()
			if exit := <-ended; exit != 0 || out.Len() == 0 {
				t.Errorf("exit %d: %s%s", exit, &out, &errs)
			}
		})
	}
}

// wantDelivered waits until the one delivery of a ledger is recorded.
func wantDelivered(t *testing.T, dsn string) {
	t.Helper()
	l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		list, err := l.Deliveries(t.Context(), ledger.DeliveryFilter{Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && list[0].Status == ledger.DeliveryDelivered {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", list)
		}
	}
}
