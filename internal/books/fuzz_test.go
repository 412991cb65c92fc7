package books

import (
	"bytes"
	"strings"
	"testing"

	"jobledger/ledger"
)

// Whatever a file has, it is read or refused: nothing panics, and no error is without a code.
func FuzzBooks(f *testing.F) {
	for _, text := range []string{
		"type,owner,available\nbalance,ann,3\n", "\xef\xbb\xbftype,owner\r\nbalance,ann\r\n", "type\n\"a\nb\"",
		`{"type":"balance","owner":"ann","available":3}`, `{"type":"balance","owner":"ann","available":3.0}`,
		`{"type":"job","id":"j","owner":"ann","cost":7,"cost":8}`, `{"a":{"a":{"a":1}}}`, "\xff\xfea", "\x00", "",
		`{"type":"lot","ref":"r","owner":"ann","available":9007199254740992}`, "a,a\n1,2", "1\r2\r3",
	} {
		f.Add([]byte(text), true)
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, asCSV bool) {
		format := JSONL
		if asCSV {
			format = CSV
		}
		s, err := Open(t.Context(), Stdin, bytes.NewReader(text), Options{Format: format})
		if err != nil {
			if ledger.CodeOf(err) != ledger.Invalid || strings.ContainsRune(err.Error(), '\n') {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		books := s.Books()
		for _, err := range books.Owners {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
