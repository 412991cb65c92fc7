package lesson

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"jobledger/internal/racelab/scratch"
)

// busyTimeout is set for every statement inside a transaction, in milliseconds. It is longer than a
// run may take: had SQLite ever used it there, the run would have been given up.
const busyTimeout = 60_000

var sqliteEngine = engine{
	name:    SQLite,
	begin:   "BEGIN IMMEDIATE",
	open:    openSQLite,
	attempt: attemptSQLite,
	gone:    func(context.Context, *session) error { return nil }, // the connection was in this process
	refusal: refusalSQLite,
}

// openSQLite opens a file, which makes it.
func openSQLite(place scratch.Place) (*sqlx.DB, error) {
	// Nothing here has to survive a crash of the machine, so nothing is synced.
	options := url.Values{"_pragma": {
		"busy_timeout(" + fmt.Sprint(busyTimeout) + ")", "journal_mode(WAL)", "synchronous(OFF)", "foreign_keys(1)",
	}}
	path := filepath.ToSlash(place.DSN)
	if path[0] != '/' {
		path = "/" + path // a Windows drive letter
	}
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: options.Encode()}
	return sqlx.Open(place.Driver, dsn.String())
}

// attemptSQLite asks SQLite not to wait where it would, outside a transaction, so that the scheduler
// sees the wait and lets the actor try again when another has moved. Inside a transaction SQLite
// is left to do as it does for everybody.
func attemptSQLite(ctx context.Context, s *session, q query) (a answer, waits bool) {
	if s.open {
		return s.ask(ctx, q), false
	}
	if err := s.patience(ctx, 0); err != nil {
		return answer{err: err}, false
	}
	a = s.ask(ctx, q)
	if err := s.patience(ctx, busyTimeout); err != nil {
		return answer{err: err}, false
	}
	return a, codeOf(a.err) == sqliteBusy
}

func (s *session) patience(ctx context.Context, milliseconds int) error {
	_, err := s.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", milliseconds))
	return err
}

// The primary result codes that are answers and not accidents.
const (
	sqliteBusy       = 5
	sqliteConstraint = 19
)

// codeOf gives the primary result code of SQLite's error, or 0.
func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func refusalSQLite(err error) string {
	switch codeOf(err) {
	case sqliteBusy:
		return "database is locked"
	case sqliteConstraint:
		return constraintBroken
	}
	return ""
}

// constraintBroken is the answer of every engine to what its tables do not allow.
const constraintBroken = "a constraint is broken"
