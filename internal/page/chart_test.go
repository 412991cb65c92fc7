package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// A bar is as wide as it must be, whatever the amounts are, and what is not nothing is seen.
func TestBar(t *testing.T) {
	for _, b := range []ledger.Balance{
		{Available: 1}, {Available: 93, Held: 7}, {Available: ledger.AmountMax, Held: 1, Used: 1, Expired: 1},
		{Available: 1, Held: 1, Used: 1, Expired: 1, Scheduled: 1},
		{Used: ledger.AmountMax, Expired: ledger.AmountMax},
	} {
		x := 0
		for _, p := range balanceBar(b) {
			if p.X != x || p.W < 6 {
				t.Errorf("%+v: %+v", b, balanceBar(b))
			}
			x += p.W
		}
		if x != barWidth {
			t.Errorf("%+v is %d wide", b, x)
		}
	}
	if parts := balanceBar(ledger.Balance{}); parts != nil {
		t.Errorf("nothing is drawn as %+v", parts)
	}
}

// A chart stacks the buckets: its stairs rise and fall with the entries, and stay inside.
func TestChart(t *testing.T) {
	steps := []ledger.BalanceStep{
		{Seq: 1, At: 0, Available: 100}, {Seq: 2, At: 490, Available: 50, Held: 50},
		{Seq: 3, At: 980, Available: 50, Used: 50},
	}
	c := newChart(steps)
	var got []string
	for _, a := range c.Areas {
		got = append(got, fmt.Sprint(a.Name, " ", a.Last, " ", a.Path))
	}
	want := `available 50 M0 0.0H490.0V120.0H980.0V120.0H1000V240.0H980.0V240.0H490.0V240.0H0Z
held 0 M0 0.0H490.0V0.0H980.0V120.0H1000V120.0H980.0V120.0H490.0V0.0H0Z
used 50 M0 0.0H490.0V0.0H980.0V0.0H1000V120.0H980.0V0.0H490.0V0.0H0Z
expired 0 M0 0.0H490.0V0.0H980.0V0.0H1000V0.0H980.0V0.0H490.0V0.0H0Z`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("drawn as\n%s", text)
	}
	if c.Top != 100 || c.To != 980 || c.Every != 1 {
		t.Errorf("%+v", c)
	}
	if newChart(nil) != nil {
		t.Error("nothing has a chart")
	}
	if one := newChart(steps[:1]); one.Areas[0].Path != "M0 0.0H1000V240.0H0Z" {
		t.Errorf("one entry is drawn as %s", one.Areas[0].Path)
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1000", 12345: "12_345", -12345: "-12_345",
		9007199254740991: "9_007_199_254_740_991",
	} {
		if got := strings.ReplaceAll(amount(n), "\u202f", "_"); got != want {
			t.Errorf("%d is shown as %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min", 90 * time.Minute: "1 h 30 min",
		49 * time.Hour: "2 d 1 h",
	} {
		if got := age(d); got != want {
			t.Errorf("%v is shown as %q, want %q", d, got, want)
		}
	}
	for _, id := range []string{"a", ".", "..", "/.", "//.", "/..", "...", "a/.."} {
		if s := segment(id); pathID(strings.ReplaceAll(s, "%2F", "/")) != id || s == "." || s == ".." {
			t.Errorf("%q is %q in a path", id, s)
		}
	}
}
