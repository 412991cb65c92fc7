package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
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
	if _, known := errors.AsType[*Error](err); known {
		return err
	}
	state := sqlState(err)
	if _, unmade := errors.AsType[*pgconn.ConnectError](err); unmade {
		return unconnected(state, err)
	}
	if plain(err) {
		return err
	}
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

// unconnected is the error of a connection that was not made. It has run out of its own time more often
// than of its caller's: what that looks like is no reason to stop.
func unconnected(state string, err error) error {
	kind := ErrBusy
	if state != "" {
		kind = kindOf(state)
	}
	if kind == nil {
		return lastLine(err)
	}
	return &Error{Kind: kind, Reason: "cannot connect to the server", Err: lastLine(err)}
}

// refusedPostgres words the error of a BEGIN ... READ WRITE on a standby. It may become the primary, or
// the next connection may be to the one that is.
func refusedPostgres(err error) error {
	switch e, _ := errors.AsType[*pgconn.PgError](err); sqlState(err) {
	case "25006", "0A000": // read-only transaction; not supported "during recovery"
		return &Error{Kind: ErrBusy, Reason: "the server is a standby, or read-only", Err: e}
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
	switch class(state) {
	case "23":
		return ErrConstraint
	case "08":
		return ErrBusy
	}
	return nil
}

// class is that of a SQLSTATE: its first two characters.
func class(state string) string { return state[:min(2, len(state))] }

// lostConnection tells the errors of a connection from those of a statement. Whatever the server did
// not get to commit, it rolls back.
func lostConnection(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) ||
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
	return e.SeverityUnlocalized == "ERROR" && e.Code != "40003" &&
		slices.Contains([]string{"23", "25", "40", "53"}, class(e.Code))
}

// explainPostgres words the errors of a first look at a database for the person who named it, without
// what the DSN has to hide.
func explainPostgres(dsn string, err error) error {
	name := Name(dsn)
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Kind == ErrNoLedger {
			name = "no ledger at " + name
		}
		return locate(name, e)
	}
	if plain(err) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if kind := kindOf(e.Code); kind == ErrNoLedger {
			return refuse("no ledger at %s: %s", name, e.Message)
		} else if kind != nil {
			return &Error{Kind: kind, Reason: name + ": " + e.Message, Err: nil}
		}
		return refuse("%s: %s (SQLSTATE %s)", name, e.Message, e.Code)
	}
	return &Error{Kind: ErrBusy, Reason: "cannot reach " + name, Err: lastLine(err)}
}

// lastLine drops from the text of a connection error what stands before its reason: the DSN.
func lastLine(err error) error {
	text := err.Error()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return errors.New(strings.TrimSpace(lines[len(lines)-1]))
}
