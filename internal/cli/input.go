package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/internal/strictjson"
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
	return ledger.ParseNumber(flag, c.String(flag), lowest, highest)
}

// counts reads a flag that takes whole numbers within bounds, with commas between them.
func counts(c *cli.Context, flag string, lowest, highest int64) (list []int, err error) {
	for text := range strings.SplitSeq(c.String(flag), ",") {
		n, err := ledger.ParseNumber(flag, text, lowest, highest)
		if err != nil {
			return nil, err
		}
		list = append(list, int(n))
	}
	return list, nil
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
	if !c.IsSet(flag) {
		return ledger.When{}, nil
	}
	return ledger.ParseWhen(flag, c.String(flag))
}

// metadata reads the flag --metadata as strictly as the server reads it as a member of a body: so that no
// two readers can disagree about what was kept.
func metadata(c *cli.Context) (ledger.JSON, error) {
	if !c.IsSet("metadata") {
		return "", nil
	}
	text := c.String("metadata")
	if strings.TrimSpace(text) == "" {
		return "", usage("metadata", "metadata: is not a JSON object")
	}
	if err := strictjson.Check([]byte(`{"metadata":` + text + `}`)); err != nil {
		return "", usage("metadata", "metadata: %v", err)
	}
	return ledger.JSON(text), nil // whether it is an object, the ledger says
}
