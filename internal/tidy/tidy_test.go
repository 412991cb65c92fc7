// Package tidy holds the code to its limits: sizes, import directions, documentation. It has no code
// of its own, and no list of exceptions.
package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits. A change that hurts one wants another structure, not another limit.
const (
	fileLinesMax       = 400
	fileLinesMedianLow = 90
	fileLinesMedianTop = 150
	functionLinesMax   = 70
	functionMedianMax  = 12
	functionP90Max     = 40
	lineCharactersMax  = 110
	testRatioMin       = 0.9
	testRatioMax       = 1.5
)

// mayImport lists, for each folder, the packages of this module that it may import. Arrows point one
// way: main -> internal -> ledger -> db.
var mayImport = map[string][]string{
	".": {"jobledger/internal/cli"},
	"internal/cli": {
		"jobledger/ledger", "jobledger/internal/books", "jobledger/internal/providers",
		"jobledger/internal/service", "jobledger/internal/demo", "jobledger/internal/racelab",
		"jobledger/internal/racelab/timeline", "jobledger/internal/racelab/lesson",
		"jobledger/internal/racelab/guards", "jobledger/internal/racelab/kit",
		"jobledger/internal/bench", "jobledger/internal/httpcall", "jobledger/internal/outbox",
		"jobledger/internal/strictjson",
	},
	"internal/bench": {
		"jobledger/ledger", "jobledger/internal/crew", "jobledger/internal/racelab/scratch",
		"jobledger/internal/racelab/timeline",
	},
	"internal/strictjson": {},
	"internal/webhook":    {},
	"internal/httpcall":   {},
	"internal/outbox":     {"jobledger/ledger", "jobledger/internal/httpcall", "jobledger/internal/webhook"},
	"internal/providers": {
		"jobledger/ledger", "jobledger/internal/strictjson", "jobledger/internal/webhook",
		"jobledger/internal/httpcall",
	},
	"internal/poll": {"jobledger/ledger", "jobledger/internal/providers", "jobledger/internal/httpcall"},
	"internal/page": {
		"jobledger/ledger", "jobledger/internal/racelab", "jobledger/internal/racelab/timeline",
		"jobledger/internal/racelab/lesson", "jobledger/internal/racelab/scratch",
	},
	"internal/server": {
		"jobledger/ledger", "jobledger/internal/httpcall", "jobledger/internal/strictjson",
		"jobledger/internal/providers",
		"jobledger/internal/page",
	},
	"internal/mutants": {},
	"internal/check":   {"jobledger/internal/mutants"},
	"internal/service": {
		"jobledger/ledger", "jobledger/internal/server", "jobledger/internal/poll", "jobledger/internal/outbox",
		"jobledger/internal/racelab/scratch",
	},
	"internal/fakeprovider": {"jobledger/internal/webhook"},
	"internal/demo": {
		"jobledger/ledger", "jobledger/internal/service", "jobledger/internal/server",
		"jobledger/internal/providers", "jobledger/internal/webhook", "jobledger/internal/fakeprovider",
	},
	"internal/books": {"jobledger/ledger", "jobledger/internal/strictjson"},
	"internal/crew":  {"jobledger/ledger"},
	"internal/racelab": {
		"jobledger/ledger", "jobledger/internal/crew", "jobledger/internal/racelab/timeline",
	},
	"internal/racelab/timeline": {},
	"internal/racelab/lesson": {
		"jobledger/ledger", "jobledger/internal/racelab/timeline", "jobledger/internal/racelab/scratch",
	},
	"internal/racelab/guards":  {"jobledger/ledger", "jobledger/internal/racelab/scratch"},
	"internal/racelab/scratch": {"jobledger/ledger"},
	"internal/racelab/kit":     {"jobledger/ledger"},
	"ledger":                   {"jobledger/db"},
	"db":                       {},
	"db/dbtest":                {"jobledger/db"},
}

// source is one parsed file of the module.
type source struct {
	path, folder string
	test         bool
	text         string
	lines        []string
	set          *token.FileSet
	file         *ast.File
}

func load(t *testing.T) (all []source) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		all = append(all, source{
			path: name, folder: filepath.ToSlash(filepath.Dir(name)), test: isTest(name), text: string(text),
			lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), set: set, file: file,
		})
		return err
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("found %d files: %v", len(all), err)
	}
	return all
}

// isTest counts some packages as test code: nothing of the product imports them.
func isTest(path string) bool {
	path = filepath.ToSlash(path)
	return strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "db/dbtest/") ||
		strings.HasPrefix(path, "internal/mutants/") || strings.HasPrefix(path, "internal/check/")
}

func TestFiles(t *testing.T) {
	var sizes []int
	for _, s := range load(t) {
		if len(s.lines) > fileLinesMax {
			t.Errorf("%s has %d lines, at most %d", s.path, len(s.lines), fileLinesMax)
		}
		if !s.test {
			sizes = append(sizes, len(s.lines))
		}
		for i, line := range s.lines {
			if n := utf8.RuneCountInString(line); n > lineCharactersMax {
				t.Errorf("%s:%d has %d characters, at most %d", s.path, i+1, n, lineCharactersMax)
			}
		}
	}
	if m := percentile(sizes, 50); m < fileLinesMedianLow || m > fileLinesMedianTop {
		t.Errorf("the median file has %d lines, want %d to %d", m, fileLinesMedianLow, fileLinesMedianTop)
	}
}

func TestFunctions(t *testing.T) {
	var sizes []int
	for _, s := range load(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
			if n > functionLinesMax {
				t.Errorf("%s: %s has %d lines, at most %d", s.path, f.Name.Name, n, functionLinesMax)
			}
			if !s.test {
				sizes = append(sizes, n)
			}
		}
	}
	if m := percentile(sizes, 50); m > functionMedianMax {
		t.Errorf("the median function has %d lines, at most %d", m, functionMedianMax)
	}
	if p := percentile(sizes, 90); p > functionP90Max {
		t.Errorf("9 of 10 functions have up to %d lines, at most %d", p, functionP90Max)
	}
	t.Logf("%d functions: median %d, 9 of 10 up to %d lines",
		len(sizes), percentile(sizes, 50), percentile(sizes, 90))
}

func percentile(sizes []int, p int) int {
	slices.Sort(sizes)
	return sizes[(len(sizes)-1)*p/100]
}

func TestTestsAreAsLongAsTheCode(t *testing.T) {
	var code, tests int
	for _, s := range load(t) {
		if s.test {
			tests += len(s.lines)
		} else {
			code += len(s.lines)
		}
	}
	ratio := float64(tests) / float64(code)
	if ratio < testRatioMin || ratio > testRatioMax {
		t.Errorf("%d lines of tests for %d of code: %.2f, want %.1f to %.1f",
			tests, code, ratio, testRatioMin, testRatioMax)
	}
	t.Logf("%d lines of code, %d of tests", code, tests)
}

func TestImports(t *testing.T) {
	for _, s := range load(t) {
		if s.test {
			continue
		}
		allowed, known := mayImport[s.folder]
		if !known {
			t.Errorf("%s is in a folder that the import rules do not name", s.path)
		}
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(path, "jobledger/") && !slices.Contains(allowed, path) {
				t.Errorf("%s may not import %s", s.path, path)
			}
			standard := !strings.Contains(strings.Split(path, "/")[0], ".")
			if s.folder == "ledger" && !standard && path != "github.com/google/uuid" {
				t.Errorf("%s may not import %s: the rules stand on the standard library and db", s.path, path)
			}
		}
	}
}

// TestClock keeps the rules on the transaction's time.
func TestClock(t *testing.T) {
	for _, s := range load(t) {
		if s.folder == "ledger" && !s.test && strings.Contains(s.text, "time.Now") {
			t.Errorf("%s reads the clock: a transaction has one time, Tx.Now", s.path)
		}
	}
}

// TestOneWriter keeps the exported methods of Ledger one transaction each: they all go through write
// and read, and only those reach the database.
func TestOneWriter(t *testing.T) {
	for _, s := range load(t) {
		if s.folder != "ledger" || s.test || filepath.Base(s.path) == "ledger.go" {
			continue
		}
		for _, call := range []string{".db.Write(", ".db.Read("} {
			if strings.Contains(s.text, call) {
				t.Errorf("%s calls %s directly", s.path, call)
			}
		}
	}
}

// TestMoneyMovesInOnePlace finds every statement that changes a balance, a lot or the journal. Beside
// move there is only the restore of an export, which puts back what move once wrote and updates nothing.
func TestMoneyMovesInOnePlace(t *testing.T) {
	for _, s := range load(t) {
		if s.test || s.folder != "ledger" {
			continue
		}
		for statement, restored := range map[string]int{
			"UPDATE balances": 0, "UPDATE lots": 0,
			"INSERT INTO lots": 1, "INSERT INTO entries": 1, "INSERT INTO postings": 1,
		} {
			want := map[string]int{"move.go": 1, "restore_rows.go": restored}[filepath.Base(s.path)]
			if n := strings.Count(s.text, statement); n != want {
				t.Errorf("%s has %q %d times, want %d: only move moves money", s.path, statement, n, want)
			}
		}
	}
}

func TestExportedIsDocumented(t *testing.T) {
	for _, s := range load(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no comment", s.path, name)
			}
		}
	}
}

func undocumented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if name, bare := bareSpec(spec); bare && d.Doc == nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// bareSpec names an exported type, constant or variable without a comment of its own.
func bareSpec(spec ast.Spec) (name string, bare bool) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return spec.Name.Name, spec.Name.IsExported() && spec.Doc == nil && spec.Comment == nil
	case *ast.ValueSpec:
		for _, id := range spec.Names {
			if id.IsExported() && spec.Doc == nil && spec.Comment == nil {
				return id.Name, true
			}
		}
	}
	return fmt.Sprint(spec), false
}

func TestNothingIsLeftBehind(t *testing.T) {
	for _, s := range load(t) {
		for _, word := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "t.Sk" + "ip("} {
			if strings.Contains(s.text, word) {
				t.Errorf("%s has a %s", s.path, word)
			}
		}
	}
}
