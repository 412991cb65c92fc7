package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"jobledger/internal/strictjson"
	"jobledger/ledger"
)

// number is a whole number as it was sent: a JSON value of a body, or a word of a path or a query. It is
// read by those who know its field's name and bounds, as the words of a command line are, and never as a
// floating-point number. Empty: not given.
type number string

// UnmarshalJSON keeps the text.
func (n *number) UnmarshalJSON(text []byte) error {
	*n = number(text)
	return nil
}

// object is a JSON object as it was sent. Empty: not given.
type object string

// UnmarshalJSON keeps the text.
func (o *object) UnmarshalJSON(text []byte) error {
	*o = object(text)
	return nil
}

// amount gives credits, 1 to [ledger.AmountMax].
func (n number) amount(field string) (int64, error) { return ledger.ParseAmount(field, string(n)) }

// within gives a number within bounds.
func (n number) within(field string, lowest, highest int64) (int64, error) {
	return ledger.ParseNumber(field, string(n), lowest, highest)
}

// or gives a number within bounds, or what it means that there is none.
func (n number) or(without int64, field string, lowest, highest int64) (int64, error) {
	if n == "" {
		return without, nil
	}
	return n.within(field, lowest, highest)
}

// limit gives the size of a page.
func (n number) limit() (int, error) {
	most, err := n.or(pageDefault, "limit", 1, ledger.PageMax)
	return int(most), err
}

// pageDefault is how many items a page has if the request does not say.
const pageDefault = 100

// moment is a time: RFC 3339, or a span from now. Empty: not given.
type moment string

func (m moment) when(field string) (ledger.When, error) {
	if m == "" {
		return ledger.When{}, nil
	}
	return ledger.ParseWhen(field, string(m))
}

// flag is a word of a query that is true or false. Empty: false.
type flag string

func (f flag) on(field string) (bool, error) {
	switch f {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, ledger.InvalidField(field, "%q is neither true nor false", string(f))
}

// givenID checks an id that may be left out.
func givenID(field, id string) error {
	if id == "" {
		return nil
	}
	return ledger.CheckID(field, id)
}

// first gives the first of several checks that failed.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// idempotencyKey gives the key of a write that names itself in the header Idempotency-Key, as a quoted
// string or bare, or in the member key. If it is in both they must agree.
func idempotencyKey(header, member string) (string, error) {
	if inner, quoted := strings.CutPrefix(header, `"`); quoted {
		var ended bool
		if header, ended = strings.CutSuffix(inner, `"`); !ended || strings.ContainsAny(header, `"\`) {
			return "", ledger.InvalidField("key", "the header Idempotency-Key is not a quoted string")
		}
	}
	switch {
	case header == "" && member == "":
		p := newProblem(ledger.InvalidField("key",
			"is missing: send the header Idempotency-Key, or the member key"))
		p.Status = http.StatusBadRequest
		return "", p
	case header != "" && member != "" && header != member:
		return "", ledger.InvalidField("key", "%q is not what the header Idempotency-Key says, %q", member, header)
	case member == "":
		member = header
	}
	return member, ledger.CheckID("key", member)
}

// checkQuery refuses parameters that the operation does not have, and those that are given twice: which
// of the two is meant would be a guess.
func checkQuery(query string, known map[string]bool) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return refuse(http.StatusBadRequest, ledger.Invalid, "the query is malformed: "+err.Error())
	}
	for name, list := range values {
		switch {
		case !known[name]:
			return ledger.InvalidField(name, "there is no such parameter")
		case len(list) > 1:
			return ledger.InvalidField(name, "is given %d times", len(list))
		}
	}
	return nil
}

// checkPath refuses a path with an id that can be nobody's, under the name that the path gives it.
func checkPath(r *http.Request, ids []string) error {
	for _, name := range ids {
		if err := ledger.CheckID(name, r.PathValue(name)); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the one JSON document of a body into v. A body that two readers could understand in two ways
// is malformed.
func decode(body []byte, v any) error {
	err := strictjson.Decode(body, v)
	if err == nil {
		return checkBlank(body, v)
	}
	p := refuse(http.StatusBadRequest, ledger.Invalid, err.Error())
	if pointer, _, found := strings.Cut(p.Detail, ": "); found && strings.HasPrefix(pointer, "/") {
		p.Field = strings.ReplaceAll(pointer[1:], "/", ".")
	}
	return p
}

// checkBlank refuses an empty text in a member that may be left out, unless it is tagged as free text. A
// client that has lost a report's upstream id must not be read as one that names none.
func checkBlank(body []byte, v any) error {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options == "omitempty" && f.Tag.Get("blank") == "" && string(sent[name]) == `""` {
			return ledger.InvalidField(name, "is empty: say what it is, or leave it out")
		}
	}
	return nil
}

// decodeFree is decode for a body that may be left out.
func decodeFree(body []byte, v any) error {
	if len(body) == 0 {
		return nil
	}
	return decode(body, v)
}
