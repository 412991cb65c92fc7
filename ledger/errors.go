package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"jobledger/db"
)

// Code names a kind of refusal. The list is closed.
type Code string

// The codes, in the order in which they are checked.
const (
	Invalid                Code = "INVALID"
	Unauthenticated        Code = "UNAUTHENTICATED"
	Forbidden              Code = "FORBIDDEN"
	NotFound               Code = "NOT_FOUND"
	IdempotencyMismatch    Code = "IDEMPOTENCY_MISMATCH"
	StaleAttempt           Code = "STALE_ATTEMPT"
	ReconciliationRequired Code = "SUBMISSION_RECONCILIATION_REQUIRED"
	NotAllowed             Code = "NOT_ALLOWED"
	InsufficientCredits    Code = "INSUFFICIENT_CREDITS"
	Inconsistent           Code = "INCONSISTENT"
	Busy                   Code = "BUSY"
	OutcomeUnknown         Code = "OUTCOME_UNKNOWN"
	Internal               Code = "INTERNAL"
)

// CodeInfo is what a code means outside the package.
type CodeInfo struct {
	Code      Code
	HTTP      int // HTTP status
	Exit      int // exit status of the command line
	Retryable bool
	Meaning   string
}

// Codes is the one table of all codes, in the order in which they are checked.
var Codes = []CodeInfo{
	{Invalid, 422, 2, false, "a field or argument is not acceptable; the message names it"},
	{Unauthenticated, 401, 4, false, "no valid token"},
	{Forbidden, 403, 4, false, "the token may not do this"},
	{NotFound, 404, 3, false, "there is no such owner, job or lot"},
	{IdempotencyMismatch, 409, 5, false, "the key was used before with other content"},
	{StaleAttempt, 409, 5, false, "the report is not about the job's current attempt"},
	{ReconciliationRequired, 409, 5, false, "nobody knows yet whether the provider took the job"},
	{NotAllowed, 409, 5, false, "not possible in the present state"},
	{InsufficientCredits, 402, 6, false, "the owner has fewer spendable credits than that"},
	{Inconsistent, 500, 8, false, "the ledger contradicts itself; nothing was changed"},
	{Busy, 503, 7, true, "nothing was written; safe to retry"},
	{OutcomeUnknown, 503, 9, true, "it may or may not be done; retry with the same key"},
	{Internal, 500, 1, false, "an unexpected failure"},
}

// Info gives a code's row of [Codes].
func (c Code) Info() CodeInfo {
	for _, info := range Codes {
		if info.Code == c {
			return info
		}
	}
	return Codes[len(Codes)-1]
}

// Error is every error that a [Ledger] returns. Its JSON form is a contract.
type Error struct {
	Code      Code     `json:"code"`
	Message   string   `json:"message"`
	Field     string   `json:"field,omitempty"`     // INVALID: the field at fault
	Fields    []string `json:"fields,omitempty"`    // IDEMPOTENCY_MISMATCH: the fields that differ
	Available *int64   `json:"available,omitempty"` // INSUFFICIENT_CREDITS: spendable credits
	Requested *int64   `json:"requested,omitempty"` // INSUFFICIENT_CREDITS
	cause     error
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause, if another error was.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf gives the code of any error: that of an [Error], else INTERNAL.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

func fail(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InvalidField is the refusal of what a field holds: INVALID, and a message that begins with the field.
func InvalidField(field, format string, args ...any) *Error {
	return &Error{Code: Invalid, Field: field, Message: field + ": " + fmt.Sprintf(format, args...)}
}

func mismatch(what string, fields []string) *Error {
	return &Error{
		Code:    IdempotencyMismatch,
		Message: what + " exists with other content; it differs in " + strings.Join(fields, ", "),
		Fields:  fields,
	}
}

func insufficient(owner string, available, requested int64) *Error {
	return &Error{
		Code:      InsufficientCredits,
		Message:   fmt.Sprintf("%s has %d credits available and %d were requested", owner, available, requested),
		Available: &available,
		Requested: &requested,
	}
}

// wrap gives an error from below its code. Errors that have one pass.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Code: Internal, Message: err.Error(), cause: err}
	switch {
	case errors.Is(err, db.ErrOutcomeUnknown):
		e.Code = OutcomeUnknown
		e.Message = "repeat with the same key to learn it: " + err.Error()
	case errors.Is(err, db.ErrBusy):
		e.Code = Busy
	case errors.Is(err, db.ErrExists):
		e.Code = NotAllowed
	case errors.Is(err, db.ErrNoLedger), errors.Is(err, db.ErrNewer), errors.Is(err, db.ErrReadOnly):
		e.Code, e.Field, e.Message = Invalid, "db", "db: "+err.Error()
	case errors.Is(err, db.ErrConstraint), errors.Is(err, db.ErrDamaged):
		e.Code = Inconsistent
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Message = Busy, "gave up before anything was written: "+err.Error()
	}
	return e
}
