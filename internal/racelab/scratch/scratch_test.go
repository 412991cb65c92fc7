package scratch_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/racelab/scratch"
	"jobledger/ledger"
)

// TestPlaces: a database can be made in a place, it is not the one in the server's URL, and it is gone
// with the place, also when its maker was stopped.
func TestPlaces(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		server := ""
		if strings.HasPrefix(dsn, "postgres") {
			server = dsn
		}
		ctx, stop := context.WithCancel(t.Context())
		place, err := scratch.Make(ctx, server)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		if place.DSN == dsn || !strings.Contains(strings.ReplaceAll(place.DSN, "-", "_"), scratch.Prefix) {
			t.Errorf("the place is %s", place.DSN)
		}
		if err := write(t, place); err != nil {
			t.Error(err)
		}
		if err := place.Remove(); err != nil {
			t.Error(err)
		}
		if server == "" {
			if _, err := os.Stat(filepath.Dir(place.DSN)); !os.IsNotExist(err) {
				t.Errorf("the directory is still there: %v", err)
			}
		} else if err := write(t, place); err == nil {
			t.Error("the database is still there")
		}
	})
}

func write(t *testing.T, place scratch.Place) error {
	t.Helper()
	pool, err := sql.Open(place.Driver, place.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.ExecContext(t.Context(), `CREATE TABLE t (n INTEGER)`)
	return err
}

// A server that takes the connection and says nothing is given up, at the latest when the caller is.
func TestSilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	server := "postgres://u:secret@" + listener.Addr().String() + "/x?sslmode=disable"
	if err := scratch.Check(ctx, "lab-db", server); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	began := time.Now()
	err = scratch.Check(t.Context(), "lab-db", server)
	if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), "does not answer within 5s") {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestServersThatAreNone(t *testing.T) {
	for _, server := range []string{"ledger.db", "mysql://localhost/x", "postgres://u:secret@127.0.0.1:1/x"} {
		_, err := scratch.Make(t.Context(), server)
		if ledger.CodeOf(err) != ledger.Invalid || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", server, err)
		}
	}
}
