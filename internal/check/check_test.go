package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each alternative of each pattern names a test of its folder: one that names none would be left out without
// a word.
func TestTableNamesTests(t *testing.T) {
	for i := range techniques {
		for _, u := range techniques[i].runs {
			names := testsIn(t, u.folder)
			pattern, _, _ := strings.Cut(u.tests, "/")
			alternatives, flags := strings.CutPrefix(pattern, "(?i)")
			for alternative := range strings.SplitSeq(alternatives, "|") {
				if flags {
					alternative = "(?i)" + alternative
				}
				if !regexp.MustCompile("(?m)" + alternative).MatchString(names) {
					t.Errorf("%s: no test in %s is named %s", techniques[i].id, u.folder, alternative)
				}
			}
		}
		if (len(techniques[i].runs) == 0) != (techniques[i].notRun != "") {
			t.Errorf("%s has neither runs nor a reason, or both", techniques[i].id)
		}
	}
}

// testsIn gives the names of a package's tests, one in each line.
func testsIn(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return strings.Join(names, "\n")
}

// A run without a test is a violation, and of several the first is kept, with what does it again. The runs
// are of this program itself.
func TestViolations(t *testing.T) {
	none, broken := in(".", "^TestOfThisName$"), run{folder: ".", tests: "[", short: true}
	c := &checker{built: map[string]string{fmt.Sprint(".", false): os.Args[0]}}
	for _, test := range []struct {
		runs   []run
		wanted string
	}{
		{[]run{none}, "no test in ./. is named ^TestOfThisName$"},
		{[]run{none, broken}, "no test in ./. is named ^TestOfThisName$"},
		{[]run{broken, none}, "go test -count=1 -v -short -run '[' ./.: exit status "},
		{[]run{in(".", "^TestTableNamesTests$")}, ""},
	} {
		r := c.try(t.Context(), &technique{id: "T", runs: test.runs})
		if !strings.Contains(r.violation, test.wanted) || (r.violation == "") != (test.wanted == "") {
			t.Errorf("%v: %q, want %q", test.runs, r.violation, test.wanted)
		}
	}
}
