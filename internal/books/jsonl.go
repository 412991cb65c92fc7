package books

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

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
		s.refuse(at, invalid("line", "has more than %d bytes", jsonLineMax))
		return nil
	}
	return lines.Err()
}

// decode reads the values of a JSON object as text, so that an amount reads as it was written.
func (r *record) decode(line []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil || object == nil {
		return invalid("line", "is not a JSON object")
	}
	r.values = make(map[string]string, len(object))
	for name, raw := range object {
		var text string
		switch {
		case string(raw) == "null":
			continue
		case raw[0] == '"':
			if err := json.Unmarshal(raw, &text); err != nil {
				return invalid(name, "is not a text")
			}
			if strings.ContainsRune(text, '\ufffd') && !bytes.Contains(raw, []byte("\ufffd")) {
				return invalid(name, "is not valid UTF-8")
			}
		case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
			text = string(raw)
		default:
			return invalid(name, "is neither a text nor a number")
		}
		if name == "type" {
			r.kind = text
		} else {
			r.values[name] = text
		}
	}
	return nil
}
