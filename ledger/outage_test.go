package ledger_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// link forwards connections to a server, and cuts one when it is told to, at its COMMIT.
type link struct {
	listener net.Listener
	network  string       // of the server
	server   string       // its address
	cut      atomic.Int32 // one of the cuts; it happens once
}

const (
	noCut     int32 = iota
	cutAfter        // the server gets the COMMIT, the client no answer
	cutBefore       // the server gets nothing
)

// newLink gives a DSN of the same database through a link.
func newLink(t *testing.T, dsn string) (*link, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	server, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l := new(link)
	l.network, l.server = pgconn.NetworkAddress(server.Host, server.Port)
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.listener.Close() })
	go l.accept()
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.listener.Addr().String(), query.Encode()
	return l, u.String()
}

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(l.network, l.server)
		if err != nil {
			client.Close()
			continue
		}
		go func() {
			defer client.Close()
			_, _ = io.Copy(client, server)
		}()
		go l.forward(client, server)
	}
}

// forward passes on what the client says.
func (l *link) forward(client, server net.Conn) {
	defer server.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		cut := noCut
		if bytes.Contains(buffer[:n], []byte("COMMIT\x00")) {
			cut = l.cut.Swap(noCut)
		}
		if cut == cutBefore {
			client.Close()
			return
		}
		if cut == cutAfter {
			client.Close() // before the server can answer
		}
		if _, err := server.Write(buffer[:n]); err != nil || cut != noCut {
			return
		}
	}
}

// A link that breaks at a COMMIT leaves the outcome unknown, and the same call again makes it known:
// there is one settlement, whether the server had got the COMMIT or not.
func TestLinkIsCutAtTheCommit(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		rounds := 400 // every other cut is after the COMMIT
		if testing.Short() {
			rounds = 20
		}
		direct := &workbench{T: t, dsn: dsn}
		direct.Ledger = direct.open(ledger.Options{})
		direct.give("g", int64(rounds)*7)
		l, through := newLink(t, dsn)
		b := &workbench{T: t, dsn: through}
		b.Ledger = b.open(ledger.Options{Writers: 1})
		won := map[int32]int{}
		for i := range rounds {
			job := fmt.Sprint("job-", i)
			b.ok(b.create(job, 7, ledger.ModeHold))
			cut := cutAfter + int32(i%2)
			l.cut.Store(cut)
			_, err := b.report(job, ledger.Completed)
			b.fails(err, ledger.OutcomeUnknown)
			s, err := direct.report(job, ledger.Completed)
			b.ok(err)
			if s.Won {
				won[cut]++
			}
			if s.Consumed != 7 || s.Returned != 0 || s.Job.Status != ledger.Status(ledger.Completed) {
				b.Fatalf("round %d: %+v", i, s)
			}
		}
		// The server may see the end of the link before it comes to a COMMIT that it was sent.
		if won[cutBefore] != rounds/2 || won[cutAfter] > rounds/4 {
			t.Errorf("the second call won %v of %d rounds each", won, rounds/2)
		}
		t.Logf("%d links cut after the COMMIT, %d before; the second call settled %d and %d jobs",
			rounds/2, rounds/2, won[cutAfter], won[cutBefore])
		direct.balance(fmt.Sprintf("0 0 %d 0", rounds*7))
		consumed := direct.query(`SELECT COUNT(*) FROM entries WHERE kind = 'consume'`)
		direct.same(consumed, []string{fmt.Sprint(rounds)})
		direct.audit()
	})
}

// A link finds the server as the driver does, whatever the URL leaves out.
func TestLinkFindsTheServer(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u@localhost/x":                    "tcp localhost:5432",
		"postgres://u@[::1]:7/x":                      "tcp [::1]:7",
		"postgres://u@/x?host=/var/run&port=7":        "unix /var/run/.s.PGSQL.7",
		"postgres://u@/x?host=%2Fvar%2Frun&a=b%20%3F": "unix /var/run/.s.PGSQL.5432",
	} {
		if l, _ := newLink(t, dsn); l.network+" "+l.server != want {
			t.Errorf("%s: %s %s, want %s", dsn, l.network, l.server, want)
		}
	}
}

// A copy whose link breaks at its COMMIT is of unknown outcome. The target tells: all of it is there, or
// nothing.
func TestCopyIsCutAtTheCommit(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		source, target := newWorkbench(t, dbtest.SQLite(t)), newWorkbench(t, dsn)
		source.give("g", 5)
		l, through := newLink(t, dsn)
		b := newWorkbench(t, through)
		for _, cut := range []int32{cutBefore, cutAfter} {
			l.cut.Store(cut)
			_, err := b.CopyFrom(t.Context(), source.Ledger, ledger.ImportParams{})
			b.fails(err, ledger.OutcomeUnknown)
		}
		target.audit()
		if _, err := target.CopyFrom(t.Context(), source.Ledger, ledger.ImportParams{}); err != nil {
			target.fails(err, ledger.NotAllowed)
		}
		target.same(target.query(`SELECT owner FROM balances`), []string{"demo"})
	})
}
