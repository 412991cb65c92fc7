package ledger_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"jobledger/ledger"
)

// An amount is taken only as it would be written, and whatever is taken is in range.
func FuzzAmount(f *testing.F) {
	for _, text := range []string{
		"1", "0", "-1", "+5", "007", "1e3", "5.0", " 5", "5 ", "0x10", "٣", "5", "9007199254740991",
		"9007199254740992", "9223372036854775808", "1_000", "1,000", "NaN", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ledger.ParseAmount("amount", text)
		switch {
		case err == nil && (strconv.FormatInt(n, 10) != text || n < 1 || n > ledger.AmountMax):
			t.Errorf("%q is %d", text, n)
		case err != nil && (ledger.CodeOf(err) != ledger.Invalid || !strings.HasPrefix(err.Error(), "amount: ")):
			t.Errorf("%q: %v", text, err)
		}
	})
}

// An id is taken as it is, and only if every engine keeps it so.
func FuzzID(f *testing.F) {
	long := strings.Repeat("x", 256)
	for _, text := range []string{"a", "", " a", "a\x00b", "a\xff", "é", "e\u0301", "\u200b", long} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := ledger.CheckID("id", text)
		fit := utf8.ValidString(text) && len(text) >= 1 && len(text) <= 255 && strings.TrimSpace(text) == text
		if err == nil && (!fit || strings.ContainsAny(text, "\x00\n\r\t\x7f")) {
			t.Errorf("%q is taken", text)
		}
		if err != nil && ledger.CodeOf(err) != ledger.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// What is no export that this program wrote is refused, and nothing of it is kept.
func FuzzRestore(f *testing.F) {
	path := filepath.Join(f.TempDir(), "fuzz.db")
	if _, err := ledger.Create(f.Context(), path, ledger.Options{}); err != nil {
		f.Fatal(err)
	}
	l, err := ledger.Open(f.Context(), path, ledger.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	if _, err := l.Grant(f.Context(), ledger.GrantParams{Owner: "a", Amount: 5, Key: "k"}); err != nil {
		f.Fatal(err)
	}
	var export bytes.Buffer
	if err := l.Export(f.Context(), &export); err != nil {
		f.Fatal(err)
	}
	f.Add(export.Bytes())
	f.Add([]byte("{}\n"))
	f.Add(bytes.Replace(export.Bytes(), []byte(`"amount":5`), []byte(`"amount":6`), 1))
	f.Fuzz(func(t *testing.T, text []byte) {
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		r, err := l.Restore(t.Context(), open, ledger.ImportParams{})
		if err == nil && r.Imported > 0 {
			t.Errorf("%q was taken: %+v", text, r)
		}
		if err != nil && ledger.CodeOf(err) == ledger.Internal {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// A span is one that can be added to any time, and its opposite is the other way.
func FuzzSpan(f *testing.F) {
	for _, text := range []string{"90m", "30d", "1d12h", "-2d", "106750d", "106752d", "1.5h", "d", "--1h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ledger.ParseSpan(text)
		if err != nil || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
			return
		}
		if back, err := ledger.ParseSpan("-" + text); err != nil || back != -d || d < 0 {
			t.Errorf("%q is %v, and its opposite %v, %v", text, d, back, err)
		}
	})
}
