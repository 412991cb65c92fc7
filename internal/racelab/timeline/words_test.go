package timeline

import (
	"slices"
	"testing"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"SELECT 1\n-> 1": "SELECT 1\n-> 1",
		"a\tb":           "a b",
		"a\x1b[2J\x00":   "a\ufffd[2J\ufffd",
		"a\xffb":         "a\ufffdb",
		"a\u202eb\ufffe": "a\ufffdb\ufffd", // a mark that turns the direction of text, and no character
		"größer 作業 ✓":    "größer 作業 ✓",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := line("  one\n two  three "); got != "one two three" {
		t.Errorf("%q", got)
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"COMMIT", 6, "COMMIT"},
		{"UPDATE balances", 15, "UPDATE balances"},
		{"UPDATE balances", 14, "UPDATE balanc…"},
		{"UPDATE balances", 8, "UPDATE…"}, // no space before the ellipsis
		{"UPDATE balances", 6, "UPDAT…"},
		{"UPDATE balances", 5, ""},
		{"UPDATE balances", -1, ""},
		{"作業作業", 8, "作業作業"},
		{"作業作業", 7, "作業作…"},
		{"", 0, ""},
	} {
		if got := shorten(c.in, c.n); got != c.want || cells(got) > max(c.n, 0) {
			t.Errorf("%q in %d cells: %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want []string
	}{
		{"", 10, nil},
		{"one two three", 20, []string{"one two three"}},
		{"one two three", 7, []string{"one two", "  three"}},
		{"one two three", 8, []string{"one two", "  three"}},
		{"one two three", 5, []string{"one", "  two", "  thr", "  ee"}},
		{"one\ntwo three", 7, []string{"one", "two", "  three"}},
		{"abcdefgh", 4, []string{"abcd", "  ef", "  gh"}},
		{"作業作業", 4, []string{"作業", "  作", "  業"}},
		{"ab", 0, []string{"a", "  b"}},
	} {
		if got := Wrap(c.in, c.n, "  "); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d cells: %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		at   int64
		want string
	}{{Steps, 12, "12"}, {Micros, 0, "0.000"}, {Micros, 12_034, "12.034"}, {Micros, 7, "0.007"}} {
		if got := c.unit.clock(c.at); got != c.want {
			t.Errorf("%d %s: %s, want %s", c.at, c.unit, got, c.want)
		}
	}
}
