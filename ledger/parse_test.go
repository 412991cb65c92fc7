package ledger_test

import (
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

func TestParseSpan(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "72h": 72 * time.Hour, "30d": 30 * day, "1d12h": 36 * time.Hour,
		"-1h": -time.Hour, "-2d": -2 * day, "0s": 0, "1.5h": 90 * time.Minute, "106750d": 106750 * day,
	} {
		if got, err := ledger.ParseSpan(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "-", "5", "d", "1.5d", "-d", "+1d", "1d-1h", "--1h", "1d2d", "106751d", "106750d900000h",
		"99999999999999999999d", "9999999999h", "1w", "1 h", "tomorrow",
	} {
		if got, err := ledger.ParseSpan(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestParseWhen(t *testing.T) {
	moment := time.Date(2026, 12, 31, 22, 30, 0, 0, time.UTC)
	for text, want := range map[string]ledger.When{
		"2026-12-31T22:30:00Z": ledger.OnTime(moment),
		"30d":                  ledger.After(30 * 24 * time.Hour),
		"-1h":                  ledger.After(-time.Hour),
	} {
		if got, err := ledger.ParseWhen("at", text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	_, err := ledger.ParseWhen("at", "2026-12-31")
	if e, ok := err.(*ledger.Error); !ok || e.Code != ledger.Invalid || e.Field != "at" {
		t.Errorf("a date: got %v", err)
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "7": 7, "10": 10, "-1": -1} {
		if got, err := ledger.ParseNumber("n", text, -1, 10); err != nil || got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range strings.Split(",11,-2,010,-0,0x5,1e0,5.0,+5, 5,99999999999999999999,five", ",") {
		if got, err := ledger.ParseNumber("n", text, -1, 10); ledger.CodeOf(err) != ledger.Invalid {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
}
