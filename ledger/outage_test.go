package ledger_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// link forwards connections to a server, and cuts one when it is told to, at its COMMIT.
type link struct {
	listener net.Listener
	server   string
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
	l := &link{server: u.Host}
	query := u.Query()
	if dir := query.Get("host"); dir != "" {
		l.server = dir + "/.s.PGSQL.5432"
	}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.listener.Close() })
	go l.accept()
	query.Del("host")
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
		network := "tcp"
		if strings.HasPrefix(l.server, "/") {
			network = "unix"
		}
		server, err := net.Dial(network, l.server)
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
		rounds := 200
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
		direct.balance(fmt.Sprintf("0 0 %d 0", rounds*7))
		consumed := direct.query(`SELECT COUNT(*) FROM entries WHERE kind = 'consume'`)
		direct.same(consumed, []string{fmt.Sprint(rounds)})
		direct.audit()
	})
}

// A server that crashes under load, and comes back, has kept all that it acknowledged; the callers
// were told to try again, or that they do not know.
func TestServerCrashes(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		if !dbtest.NeedPostgres(t) {
			return
		}
		c := dbtest.StartCluster(t)
		b := &workbench{T: t, dsn: c.Database(t)}
		b.Ledger = b.open(ledger.Options{})
		crashes := 5
		if testing.Short() {
			crashes = 2
		}
		load := b.startLoad()
		for range crashes {
			goal := load.acknowledged.Load() + 40
			for end := time.Now().Add(20 * time.Second); load.acknowledged.Load() < goal; {
				if time.Now().After(end) {
					t.Fatal("the load does not go on")
				}
				time.Sleep(time.Millisecond)
			}
			b.ok(c.Crash())
			b.ok(c.Start())
		}
		load.check(b)
		b.audit()
		t.Logf("%d crashes, %d operations acknowledged, %d in doubt, %d refused",
			crashes, load.acknowledged.Load(), load.unknown.Load(), load.busy.Load())
	})
}

// load is callers that make and settle jobs, and note what they were told.
type load struct {
	stop                        chan bool
	running                     sync.WaitGroup
	acknowledged, unknown, busy atomic.Int64
	created, settled            sync.Map // by job, if acknowledged
}

func (b *workbench) startLoad() *load {
	b.Helper()
	b.give("load", 1_000_000)
	l := &load{stop: make(chan bool)}
	for c := range 6 {
		l.running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				default:
				}
				job := fmt.Sprint("job-", c, "-", i)
				l.note(b, &l.created, job, b.create(job, 7, ledger.ModeCharge))
				_, err := b.report(job, ledger.Failed)
				if ledger.CodeOf(err) != ledger.NotFound || err == nil { // its creation was refused
					l.note(b, &l.settled, job, err)
				}
			}
		})
	}
	return l
}

func (l *load) note(b *workbench, acknowledged *sync.Map, job string, err error) {
	switch {
	case err == nil:
		acknowledged.Store(job, true)
		l.acknowledged.Add(1)
	case ledger.CodeOf(err) == ledger.OutcomeUnknown:
		l.unknown.Add(1)
	case ledger.CodeOf(err) == ledger.Busy:
		l.busy.Add(1)
	default:
		b.Error(job, err)
	}
}

// check ends the load and looks for what was acknowledged.
func (l *load) check(b *workbench) {
	b.Helper()
	close(l.stop)
	l.running.Wait()
	there := map[string]ledger.Status{}
	for after := ""; ; {
		jobs, err := b.Jobs(b.Context(), ledger.JobFilter{After: after, Limit: ledger.PageMax})
		b.ok(err)
		if len(jobs) == 0 {
			break
		}
		for _, j := range jobs {
			there[j.ID] = j.Status
		}
		after = jobs[len(jobs)-1].ID
	}
	for status, acknowledged := range map[ledger.Status]*sync.Map{"": &l.created, "failed": &l.settled} {
		acknowledged.Range(func(job, _ any) bool {
			got, found := there[job.(string)]
			if !found || (status != "" && got != status) {
				b.Errorf("%s was acknowledged and is %q", job, got)
			}
			return true
		})
	}
}
