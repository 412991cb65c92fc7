package books

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"jobledger/internal/strictjson"
	"jobledger/ledger"
)

// jsonLineMax bounds one line of a file of rows.
const jsonLineMax = 1 << 20

// readJSONL reads one JSON object per line. Blank lines are skipped.
func (s *Source) readJSONL(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), jsonLineMax)
	at := ledger.Place{}
	for lines.Scan() {
		at.Line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		r := record{Place: at}
		if err := r.decode(lines.Bytes()); err != nil {
			s.Rows++
			s.refuse(at, err)
			continue
		}
		if err := s.add(ctx, &r); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		at.Line++
		s.refuse(at, ledger.InvalidField("line", "has more than %d bytes", jsonLineMax))
		return nil
	}
	return lines.Err()
}

// decode reads the values of a JSON object as text, so that an amount reads as it was written.
func (r *record) decode(line []byte) error {
	if !utf8.Valid(line) {
		return ledger.InvalidField("line", "is not valid UTF-8")
	}
	object, err := members(line)
	if err != nil {
		return err
	}
	r.values = make(map[string]string, len(object))
	for name, raw := range object {
		var text string
		switch {
		case string(raw) == "null":
			continue
		case raw[0] == '"':
			if err := json.Unmarshal(raw, &text); err != nil {
				return ledger.InvalidField(name, "is not a text")
			}
			if strictjson.LoneSurrogate(raw) {
				return ledger.InvalidField(name, "is not valid UTF-8: it has a half of a surrogate pair")
			}
		case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
			text = string(raw)
		default:
			return ledger.InvalidField(name, "is neither a text nor a number")
		}
		if name == "type" {
			r.kind = text
		} else {
			r.values[name] = text
		}
	}
	return nil
}

// members splits a JSON object. One that names a member twice, if only in another case, is refused:
// readers disagree about which of the two counts.
func members(line []byte) (map[string]json.RawMessage, error) {
	no := ledger.InvalidField("line", "is not a JSON object")
	if !json.Valid(line) {
		return nil, no
	}
	in := json.NewDecoder(bytes.NewReader(line))
	if begin, err := in.Token(); err != nil || begin != json.Delim('{') {
		return nil, no
	}
	object, seen := make(map[string]json.RawMessage), make(map[string]bool)
	for in.More() {
		token, err := in.Token()
		name, ok := token.(string)
		var raw json.RawMessage
		if err != nil || !ok || in.Decode(&raw) != nil {
			return nil, no
		}
		folded := strictjson.Fold(name)
		if seen[folded] {
			return nil, ledger.InvalidField("line", "names %.40q twice", name)
		}
		seen[folded], object[name] = true, raw
	}
	return object, nil
}
