package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// The kinds of errors. A caller tells them apart with errors.Is; the text is for people.
var (
	// ErrBusy: another process held the lock for longer than the bound, the disk is full, or the server
	// cannot be reached.
	// Nothing was written; it is safe to try again.
	ErrBusy = errors.New("the database is busy")
	// ErrOutcomeUnknown: the commit may or may not have happened. Only the same operation again,
	// with the same key, tells.
	ErrOutcomeUnknown = errors.New("the outcome is unknown")
	// ErrNoLedger: there is no jobledger database at that place.
	ErrNoLedger = errors.New("no ledger")
	// ErrNewer: the database was written by a newer binary, or migrated while this one ran.
	ErrNewer = errors.New("the database is newer than this binary")
	// ErrExists: something is in the place of what was to be made.
	ErrExists = errors.New("it is there already")
	// ErrReadOnly: the file or its directory, or the server, cannot be written.
	ErrReadOnly = errors.New("the database is read-only")
	// ErrIO: the disk failed to read or write.
	ErrIO = errors.New("the disk failed")
	// ErrDamaged: the engine found the file corrupt.
	ErrDamaged = errors.New("the database is damaged")
	// ErrConstraint: a constraint or trigger of the schema refused the statement.
	ErrConstraint = errors.New("a constraint refused the change")
	// ErrClosed: the handle was closed.
	ErrClosed = errors.New("the database is closed")
)

// Error is an error of a known kind: one of the sentinels of this package, and what caused it.
type Error struct {
	Kind   error
	Reason string // what a person reads in place of the kind's text; may be empty
	Err    error  // may be nil
}

// Error gives the reason, or the kind, and then the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.text()
	}
	return e.text() + ": " + e.Err.Error()
}

func (e *Error) text() string {
	if e.Reason == "" {
		return e.Kind.Error()
	}
	return e.Reason
}

// Unwrap lets errors.Is and errors.As see both the kind and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// PanicError is what a panicking operation answers with; its effects were rolled back.
type PanicError struct {
	Value any
	Stack []byte
}

// Error gives the value of the panic, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// changed is an error that another transaction may have brought about.
type changed struct{ error }

// Unwrap gives the error that is marked.
func (c changed) Unwrap() error { return c.error }

// Changed marks the error of an operation that finds something written which, when it looked before,
// was not there. Where another transaction can have written it between two statements of this one,
// the operation is run again; if it comes to the same, or nobody can have, err is its answer.
func Changed(err error) error { return changed{err} }

// unknown marks an error after which nobody can tell whether the commit happened.
func unknown(err error) error { return &Error{Kind: ErrOutcomeUnknown, Err: err} }

// refuse says why a path is not opened.
func refuse(format string, args ...any) error {
	return &Error{Kind: ErrNoLedger, Reason: fmt.Sprintf(format, args...)}
}

// plain reports whether err needs no class: the ends of contexts and empty results pass as they are.
func plain(err error) bool {
	return err == nil || errors.Is(err, sql.ErrNoRows) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
