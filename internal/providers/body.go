package providers

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"jobledger/internal/strictjson"
	"jobledger/ledger"
)

// reader finds what matters in the documents of a provider. A pointer that is nil is not looked for.
type reader struct {
	id, status, cost, job, attempt *strictjson.Pointer
	outcomes                       map[string]ledger.Outcome
	// asked: the documents are answers about one job. One that has not the id where it should be is a page of
	// something else; it need not be there only if there is no pointer to it.
	asked bool
}

// read gives what a document says.
func (r *reader) read(body []byte) (said Said, err error) {
	document, err := strictjson.Parse(body)
	if err != nil {
		return said, ledger.InvalidField("body", "%v", err)
	}
	found := false
	if said.Word, found, err = text(document, "status", r.status); err == nil && !found {
		err = missing("status", r.status)
	}
	if err != nil {
		return Said{}, err
	}
	said.Outcome = r.outcomes[said.Word]
	for _, m := range []struct {
		name string
		at   *strictjson.Pointer
		into *string
	}{{"id", r.id, &said.UpstreamID}, {"job", r.job, &said.Job}} {
		if *m.into, found, err = text(document, m.name, m.at); err == nil && found {
			err = ledger.CheckID(m.name, *m.into)
		}
		if err != nil {
			return Said{}, err
		}
	}
	if said.UpstreamID == "" && (r.asked && r.id != nil || said.Job == "" && !r.asked) {
		return Said{}, missing("id", r.id)
	}
	if said.Attempt, err = r.readAttempt(document); err == nil {
		said.Cost, err = r.readCost(document, said.Outcome)
	}
	if err != nil {
		return Said{}, err
	}
	return said, nil
}

// readAttempt reads the number of the attempt, if there is one.
func (r *reader) readAttempt(document any) (int64, error) {
	n, found, err := wholeNumber(document, "attempt", r.attempt)
	if err == nil && found && n == 0 {
		err = ledger.InvalidField("attempt", "0 is out of range; attempts count from 1")
	}
	return n, err
}

// readCost reads what a completed job cost. Of others it is not asked: they cost nothing.
func (r *reader) readCost(document any, outcome ledger.Outcome) (*int64, error) {
	if outcome != ledger.Completed {
		return nil, nil
	}
	n, found, err := wholeNumber(document, "cost", r.cost)
	if err != nil || !found {
		return nil, err
	}
	return &n, nil
}

func missing(name string, at *strictjson.Pointer) error {
	if at == nil {
		return ledger.InvalidField(name, "the body names neither the provider's id nor ours")
	}
	return ledger.InvalidField(name, "there is nothing at %q in the body", at)
}

// text reads a text, a number or a truth value as text. What is null is as if it were not there.
func text(document any, name string, at *strictjson.Pointer) (value string, found bool, err error) {
	if at == nil {
		return "", false, nil
	}
	v, found, err := at.Lookup(document)
	if err != nil {
		return "", false, ledger.InvalidField("body", "%v", err) // the document itself can be read in two ways
	}
	switch v := v.(type) {
	case nil:
		return "", false, nil
	case string:
		if strings.ContainsRune(v, utf8.RuneError) {
			return "", false, ledger.InvalidField(name, "%.40q has a character that could not be read", v)
		}
		return v, found, nil
	case json.Number:
		return v.String(), found, nil
	case bool:
		return strconv.FormatBool(v), found, nil
	}
	return "", false, ledger.InvalidField(name, "at %q in the body is neither a text nor a number", at)
}

// wholeNumber reads a number from 0 to 2^53-1, which may stand in a text. One with a fraction, a sign or
// an exponent is an error: what it would be rounded to is nobody's business.
func wholeNumber(document any, name string, at *strictjson.Pointer) (n int64, found bool, err error) {
	digits, found, err := text(document, name, at)
	if err != nil || !found {
		return 0, false, err
	}
	n, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != digits || n < 0 || n > ledger.AmountMax {
		return 0, false, ledger.InvalidField(name, "%s is not a whole number from 0 to %d",
			fmt.Sprintf("%.40q", digits), ledger.AmountMax)
	}
	return n, true, nil
}
