package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	duplicateTable  = "42P07"
	uniqueViolation = "23505"
)

// sqlState gives the five characters by which the server tells an error; empty if it is not the
// server's.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// classifyPostgres gives an error its kind, by its SQLSTATE or for what became of the connection.
func classifyPostgres(err error) error {
	if _, known := errors.AsType[*Error](err); known || plain(err) {
		return err
	}
	state := sqlState(err)
	if state == "" {
		if lostConnection(err) {
			return &Error{Kind: ErrBusy, Reason: "the connection to the server is lost", Err: err}
		}
		return err
	}
	if kind := kindOf(state); kind != nil {
		return &Error{Kind: kind, Err: err}
	}
	return err
}

func kindOf(state string) error {
	switch state {
	case "40001", "40P01", // serialization failure, deadlock
		"55P03", "57014", // no lock in time, no answer in time
		"53000", "53100", "53200", "53300", "53400", // disk, memory or connections are used up
		"57P01", "57P02", "57P03", "57P05", "25P03": // the server stops or starts, or ended the session
		return ErrBusy
	case "25006", "42501": // read-only transaction, no privilege
		return ErrReadOnly
	case "XX001", "XX002":
		return ErrDamaged
	case "22003": // a number that its column cannot hold
		return ErrConstraint
	case "3D000", "3F000", "28000", "28P01": // no such database or schema, not let in
		return ErrNoLedger
	}
	switch state[:2] {
	case "23":
		return ErrConstraint
	case "08":
		return ErrBusy
	}
	return nil
}

// lostConnection tells the errors of a connection from those of a statement. Whatever the server did
// not get to commit, it rolls back.
func lostConnection(err error) bool {
	_, unmade := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return unmade || network || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// How often an operation runs again after its first attempt.
const (
	repeatsMax     = 7
	repeatsChanged = 2 // the other transaction has ended: what is found again is there to stay
)

// conflictPostgres tells whether another transaction was in the way. Under READ COMMITTED, a key that
// one statement did not find may be there for the next: the loser of such a race must look again.
func conflictPostgres(err error) (repeats int) {
	_, found := errors.AsType[changed](err)
	switch state := sqlState(err); {
	case state == "40001", state == "40P01": // serialization failure, deadlock
		return repeatsMax
	case found, state == uniqueViolation:
		return repeatsChanged
	}
	return 0
}

// rolledBackPostgres tells the failures of a COMMIT after which nothing is written: the server said so,
// as an error of the transaction and not of the session, or the COMMIT was never sent.
func rolledBackPostgres(err error) bool {
	if errors.Is(err, errRolledBack) {
		return true
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return pgconn.SafeToRetry(err)
	}
	return e.Severity == "ERROR" && e.Code != "40003" && strings.Contains("23 25 40 53", e.Code[:2])
}

// explainPostgres words the errors of a first look at a database for the person who named it, without
// what the DSN has to hide.
func explainPostgres(dsn string, err error) error {
	if plain(err) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	name := Name(dsn)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if kind := kindOf(e.Code); kind == ErrNoLedger {
			return refuse("no ledger at %s: %s", name, e.Message)
		} else if kind != nil {
			return &Error{Kind: kind, Reason: name + ": " + e.Message, Err: nil}
		}
		return refuse("%s: %s (SQLSTATE %s)", name, e.Message, e.Code)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Kind == ErrNoLedger {
			name = "no ledger at " + name
		}
		return locate(name, e)
	}
	return &Error{Kind: ErrBusy, Reason: "cannot reach " + name, Err: lastLine(err)}
}

// lastLine drops from the text of a connection error what stands before its reason: the DSN.
func lastLine(err error) error {
	text := err.Error()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return errors.New(strings.TrimSpace(lines[len(lines)-1]))
}
