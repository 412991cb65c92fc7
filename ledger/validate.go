package ledger

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits on everything that comes from outside.
const (
	AmountMax   = 1<<53 - 1 // the largest integer that every JSON reader holds exactly
	idMax       = 255       // bytes
	eventIDMax  = idMax + len("conflict::") + 19
	afterMax    = eventIDMax + len("/") + 36 // the longest place in a list: of a delivery
	textMax     = 1024                       // bytes of a reason, a detail or evidence
	metadataMax = 4096                       // bytes
	timeMax     = Time(253402300799999999)
	PageMax     = 1000 // items in one page of a list
)

// CheckID refuses an id or key that is not 1 to 255 bytes of valid UTF-8, or that has control
// characters or space at an end. Ids are compared byte for byte.
func CheckID(field, id string) error { return checkKey(field, id, idMax) }

// checkKey is CheckID for what is made of ids, and so can be longer.
func checkKey(field, id string, bytesMax int) error {
	switch {
	case id == "":
		return InvalidField(field, "is empty; it takes 1 to %d bytes", bytesMax)
	case len(id) > bytesMax:
		return InvalidField(field, "has %d bytes; it takes 1 to %d", len(id), bytesMax)
	case !utf8.ValidString(id):
		return InvalidField(field, "is not valid UTF-8")
	case strings.ContainsFunc(id, unicode.IsControl):
		return InvalidField(field, "%q has a control character", id)
	case strings.TrimSpace(id) != id:
		return InvalidField(field, "%q begins or ends with space", id)
	}
	return nil
}

// checkOptionalID is CheckID where the empty id means none.
func checkOptionalID(field, id string) error {
	if id == "" {
		return nil
	}
	return CheckID(field, id)
}

// checkAfter refuses a place in a list that cannot be one: no engine may be asked for it.
func checkAfter(after string) error {
	if after == "" {
		return nil
	}
	return checkKey("after", after, afterMax)
}

// ParseAmount reads credits as people and programs must write them: decimal digits only, 1 to
// 2^53-1, no sign, leading zero, fraction or exponent.
func ParseAmount(field, text string) (int64, error) {
	digits := text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseInt(text, 10, 64)
	if !digits || err != nil || (text[0] == '0' && text != "0") || n > AmountMax {
		return 0, InvalidField(field, "%q is not an amount; it takes digits only, 1 to %d, without a leading zero",
			shorten(text), AmountMax)
	}
	return n, checkAmount(field, n)
}

func checkAmount(field string, n int64) error {
	if n < 1 || n > AmountMax {
		return InvalidField(field, "%d is out of range; it takes 1 to %d", n, AmountMax)
	}
	return nil
}

// checkText refuses free text that is too long or that not every engine can store.
func checkText(field, text string) error {
	if len(text) > textMax {
		return InvalidField(field, "has %d bytes; it takes at most %d", len(text), textMax)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return InvalidField(field, "is not valid UTF-8 without NUL")
	}
	return nil
}

// checkMetadata gives a metadata object in its compact form.
func checkMetadata(m JSON) (JSON, error) {
	if m == "" {
		return "{}", nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(m), &object); err != nil || object == nil || !utf8.ValidString(string(m)) {
		return "", InvalidField("metadata", "is not a JSON object")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(m)); err != nil {
		return "", InvalidField("metadata", "is not a JSON object")
	}
	if compact.Len() > metadataMax {
		return "", InvalidField("metadata", "has %d bytes; it takes at most %d", compact.Len(), metadataMax)
	}
	return JSON(compact.String()), nil
}

func checkOneOf[T ~string](field string, value T, allowed ...T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return InvalidField(field, "%q is not one of %s", shorten(string(value)), strings.Join(names, ", "))
}

// shorten keeps a message on one line, whatever was typed.
func shorten(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}

// firstError gives the first of several checks that failed.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
