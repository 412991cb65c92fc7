package ledger

import "time"

// When is a moment that a caller gives either as a time or as a span from now. A span is kept as
// one when a write is repeated: the same span is the same content, whenever it is said. The zero
// value means not given.
type When struct {
	given bool
	span  bool
	at    Time
	after time.Duration
}

// OnTime is a moment given as a time.
func OnTime(t time.Time) When { return When{given: true, at: At(t)} }

// After is a moment given as a span from now.
func After(d time.Duration) When { return When{given: true, span: true, after: d} }

// from gives the moment, or nil if none was given, for a write recorded at a time.
func (w When) from(recorded Time) *Time {
	if !w.given {
		return nil
	}
	at := w.at
	if w.span {
		at = recorded + Time(w.after.Microseconds())
	}
	return &at
}

// check refuses moments that RFC 3339 cannot hold, and spans into the past.
func (w When) check(field string) error {
	if w.after < 0 {
		return InvalidField(field, "is a span into the past")
	}
	return w.checkPast(field)
}

// checkPast is check where the past is welcome.
func (w When) checkPast(field string) error {
	if w.at < 0 || w.at > timeMax {
		return InvalidField(field, "is before 1970 or after 9999")
	}
	return nil
}
