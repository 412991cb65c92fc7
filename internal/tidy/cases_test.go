package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	caseRow  = regexp.MustCompile(`(?m)^\| (B\d+) \| (.+) \|$`)
	testName = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
)

// knownCases is how many cases from the field there are.
const knownCases = 110

// Every case in docs/reliability.md has a test that is there, or says why it does not apply.
func TestCases(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, s := range load(t) {
		if strings.HasSuffix(s.path, "_test.go") {
			tests.WriteString(s.text)
		}
	}
	rows := caseRow.FindAllStringSubmatch(string(document), -1)
	for _, row := range rows {
		names := testName.FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 && !strings.HasPrefix(row[2], "does not apply: ") {
			t.Errorf("%s has neither a test nor a reason", row[1])
		}
		for _, name := range names {
			if !strings.Contains(tests.String(), "func "+name[1]+"(") {
				t.Errorf("%s: there is no %s", row[1], name[1])
			}
		}
	}
	if len(rows) != knownCases {
		t.Errorf("%d cases, want %d", len(rows), knownCases)
	}
}
