package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

// usage is the error of a wrong command line. field is the argument at fault, if there is one.
func usage(field, format string, args ...any) error {
	return &ledger.Error{Code: ledger.Invalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// checks gives the first of several checks that failed.
func checks(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// count reads a flag that takes a whole number within bounds.
func count(c *cli.Context, flag string, lowest, highest int64) (int64, error) {
	text := c.String(flag)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text || n < lowest || n > highest {
		return 0, usage(flag, "%s: %q is not a number from %d to %d", flag, text, lowest, highest)
	}
	return n, nil
}

// limit reads the flag --limit of the lists.
func limit(c *cli.Context) (int, error) {
	n, err := count(c, "limit", 1, ledger.PageMax)
	return int(n), err
}

// oneOf refuses a word that is not in a list.
func oneOf[T ~string](field string, word T, allowed ...T) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	return usage(field, "%s: %q is not one of %s", field, word, join(allowed))
}

func join[T ~string](words []T) string {
	var list []string
	for _, w := range words {
		list = append(list, string(w))
	}
	return strings.Join(list, ", ")
}

// givenID checks an id that a flag may leave out.
func givenID(c *cli.Context, flag string) error {
	if !c.IsSet(flag) {
		return nil
	}
	return ledger.CheckID(flag, c.String(flag))
}

// when reads a flag that takes a time, either RFC 3339 or a span from now such as 90m, 72h or 30d.
func when(c *cli.Context, flag string) (ledger.When, error) {
	text := c.String(flag)
	if !c.IsSet(flag) {
		return ledger.When{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return ledger.OnTime(t), nil
	}
	d, err := parseSpan(text)
	if err != nil {
		return ledger.When{}, usage(flag,
			"%s: %q is neither a time (2026-12-31T00:00:00Z) nor a span from now (90m, 72h, 30d)", flag, text)
	}
	return ledger.After(d), nil
}

// spanMax is the longest span that a time.Duration holds in whole days.
const spanMax = 106_751

// parseSpan reads a duration that may also have days, first: 30d, 1d12h, -2d.
func parseSpan(text string) (time.Duration, error) {
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
