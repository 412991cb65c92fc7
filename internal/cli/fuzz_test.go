package cli

import (
	"strings"
	"testing"

	"jobledger/ledger"
)

// A command line is understood or refused, whatever it has.
func FuzzCommandLine(f *testing.F) {
	for _, line := range []string{
		"grant alice 5 --key k", "--db x grant -- --alice 5", "job create j --owner=o --cost 7", "--json", "-- -",
		"notify j failed --cost", "backup f --force --force", "help job help", "grant --key=", "--=x", "---",
	} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		_, err := parseArgs(testApp(), strings.Split(line, "\x00"))
		if err != nil && ledger.CodeOf(err) != ledger.Invalid {
			t.Errorf("%q: %v", line, err)
		}
	})
}
