package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseNumber reads a whole number within bounds as people and programs must write it: decimal digits,
// no plus sign, no leading zero, fraction or exponent. Errors: INVALID.
func ParseNumber(field, text string, lowest, highest int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text || n < lowest || n > highest {
		return 0, InvalidField(field, "%q is not a number from %d to %d", shorten(text), lowest, highest)
	}
	return n, nil
}

// ParseWhen reads a moment: a time as RFC 3339, or a span from now as of [ParseSpan]. Errors: INVALID.
func ParseWhen(field, text string) (When, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return OnTime(t), nil
	}
	d, err := ParseSpan(text)
	if err != nil {
		return When{}, InvalidField(field,
			"%q is neither a time (2026-12-31T00:00:00Z) nor a span from now (90m, 72h, 30d)", shorten(text))
	}
	return After(d), nil
}

// spanMax is the longest span that a time.Duration holds in whole days.
const spanMax = 106_751

// ParseSpan reads a duration that may also have days, first: 30d, 1d12h, -2d. Its errors have no code.
func ParseSpan(text string) (time.Duration, error) {
	unsigned, negative := strings.CutPrefix(text, "-")
	var days time.Duration
	if number, rest, found := strings.Cut(unsigned, "d"); found {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n >= spanMax {
			return 0, fmt.Errorf("%q has a wrong number of days", text)
		}
		days, unsigned = time.Duration(n)*24*time.Hour, rest
	}
	var d time.Duration
	if unsigned != "" || days == 0 {
		var err error
		if d, err = time.ParseDuration(unsigned); err != nil || d < 0 {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
	}
	d += days
	switch {
	case d < 0:
		return 0, fmt.Errorf("%q is too long", text)
	case negative:
		return -d, nil
	}
	return d, nil
}
