package db_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// link is a way to a server that a test can spoil.
type link struct {
	network, address string // of the server
	is               atomic.Int32
}

// What a link does.
const (
	passing int32 = iota
	cutting       // the server gets the next COMMIT, the client no answer
	closed        // each connection is closed at once
	silent        // new connections are let in, and hear nothing
)

// newLink gives a DSN of the same database through a link.
func newLink(t *testing.T, dsn string) (*link, string) {
	t.Helper()
	config, err := pgconn.ParseConfig(dsn)
	must(t, err)
	l := &link{}
	l.network, l.address = pgconn.NetworkAddress(config.Host, config.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { client.Close() })
			go l.serve(client)
		}
	}()
	u, err := url.Parse(dsn)
	must(t, err)
	query := u.Query()
	query.Del("host")
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = listener.Addr().String(), query.Encode()
	return l, u.String()
}

// serve passes on what the client and the server say to each other.
func (l *link) serve(client net.Conn) {
	if l.is.Load() == silent {
		return
	}
	defer client.Close()
	server, err := net.Dial(l.network, l.address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, server)
	}()
	for buffer := make([]byte, 1<<16); ; {
		n, err := client.Read(buffer)
		if err != nil || l.is.Load() == closed {
			return
		}
		cut := bytes.Contains(buffer[:n], []byte("COMMIT\x00")) && l.is.CompareAndSwap(cutting, passing)
		if cut {
			client.Close() // before the server can answer
		}
		if _, err := server.Write(buffer[:n]); err != nil || cut {
			return
		}
	}
}

// The tables may be there if the answer to the COMMIT that made them is lost.
func TestCreateWithoutAnAnswer(t *testing.T) {
	if !dbtest.NeedPostgres(t) {
		return
	}
	l, through := newLink(t, dbtest.EmptyPostgres(t))
	l.is.Store(cutting)
	_, err := db.Create(t.Context(), through, db.Options{})
	wantIs(t, err, db.ErrOutcomeUnknown)
	_, err = db.Create(t.Context(), through, db.Options{})
	must(t, err)
}

// Who reads and who writes waits as long for a server that is away, and is told in one line.
func TestServerThatIsAway(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		l, through := newLink(t, dsn)
		address := strings.Split(strings.TrimPrefix(through, "postgres://postgres@"), "/")[0]
		through = strings.Replace(through, address, address+","+address, 1)
		const wait = 2 * time.Second // in which a busy machine connects, too
		d := open(t, through, db.Options{BusyWait: wait})
		calls := map[string]func() error{
			"write": func() error { return d.Write(t.Context(), func(*db.Tx) error { return nil }) },
			"read":  func() error { return d.Read(t.Context(), func(*db.Tx) error { return nil }) },
		}
		for name, call := range calls {
			must(t, call())
			l.is.Store(closed)
			began := time.Now()
			err := call()
			took := time.Since(began)
			if !errors.Is(err, db.ErrBusy) || strings.Contains(err.Error(), "\n") || took < wait || took > 10*wait {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			time.AfterFunc(wait/3, func() { l.is.Store(passing) })
			must(t, call())
		}
		l.is.Store(closed)
		ctx, cancel := context.WithTimeout(t.Context(), wait/3)
		defer cancel()
		wantIs(t, d.Read(ctx, func(*db.Tx) error { return nil }), context.DeadlineExceeded)
	})
}

// A connection that is not made in its own time is tried again, and is not its caller's end.
func TestServerThatDoesNotAnswer(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		l, through := newLink(t, dsn)
		patient := reopen(t, through+"&connect_timeout=3", db.Options{})
		hasty := reopen(t, through, db.Options{BusyWait: time.Second})
		l.is.Store(silent)
		write := func(*db.Tx) error { return nil }
		wantIs(t, hasty.Write(t.Context(), write), db.ErrBusy)
		done := queue(t, t.Context(), patient, write)
		time.AfterFunc(500*time.Millisecond, func() { l.is.Store(passing) })
		must(t, answer(t, done))
	})
}
