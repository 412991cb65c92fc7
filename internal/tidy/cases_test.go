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

// document gives one of docs.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// testCode gives the text of all files of tests.
func testCode(t *testing.T) string {
	t.Helper()
	var tests strings.Builder
	for _, s := range load(t) {
		if strings.HasSuffix(s.path, "_test.go") {
			tests.WriteString(s.text)
		}
	}
	return tests.String()
}

// Every case in docs/reliability.md has a test that is there, or says why it does not apply.
func TestCases(t *testing.T) {
	tests := testCode(t)
	rows := caseRow.FindAllStringSubmatch(document(t, "reliability.md"), -1)
	for _, row := range rows {
		names := testName.FindAllStringSubmatch(row[2], -1)
		if len(names) == 0 && !strings.HasPrefix(row[2], "does not apply: ") {
			t.Errorf("%s has neither a test nor a reason", row[1])
		}
		for _, name := range names {
			if !strings.Contains(tests, "func "+name[1]+"(") {
				t.Errorf("%s: there is no %s", row[1], name[1])
			}
		}
	}
	if len(rows) != knownCases {
		t.Errorf("%d cases, want %d", len(rows), knownCases)
	}
}

// threatRow is a row of the table in docs/security.md: who, what stops them, and the tests that show it.
var threatRow = regexp.MustCompile(`(?m)^\| (\*\*.+\*\*) \| .+ \| (.+) \|$`)

// knownThreats is how many rows that table has.
const knownThreats = 15

// Everybody in docs/security.md is stopped by something that a test shows, and each test is there.
func TestThreats(t *testing.T) {
	text, tests := document(t, "security.md"), testCode(t)
	for _, name := range testName.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(tests, "func "+name[1]+"(") {
			t.Errorf("there is no %s", name[1])
		}
	}
	rows := threatRow.FindAllStringSubmatch(text, -1)
	for _, row := range rows {
		if !testName.MatchString(row[2]) {
			t.Errorf("%s: no test shows what stops them", row[1])
		}
	}
	if len(rows) != knownThreats {
		t.Errorf("%d rows, want %d", len(rows), knownThreats)
	}
}
