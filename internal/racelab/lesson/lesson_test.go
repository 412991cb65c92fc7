package lesson

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// versions are the two of every lesson, by the ends of their files' names.
var versions = map[string]bool{"": false, "-fixed": true}

// TestGolden: every lesson shows what its file holds; the wrong version a wrong number, and the fixed
// one none.
func TestGolden(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		for _, l := range s.lessons() {
			for suffix, fixed := range versions {
				r := s.play(t, l, fixed)
				if err := r.verdict(); err != nil {
					t.Error(err)
				}
				var b bytes.Buffer
				if err := r.WriteText(&b, 80); err != nil {
					t.Fatal(err)
				}
				compare(t, filepath.Join("testdata", s.name, l.Name+suffix+".txt"), b.Bytes())
			}
		}
	})
}

func compare(t *testing.T, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %v, got\n%s", golden, err, got)
	}
	for line := range bytes.Lines(got) {
		if n := len(bytes.TrimRight(line, "\n")); n > 80 || bytes.HasSuffix(line, []byte(" \n")) {
			t.Errorf("%s: %d columns, or space at the end: %q", golden, n, line)
		}
	}
}

// TestEveryRunIsTheSame compares the bytes of all that a run gives: text, document and picture.
func TestEveryRunIsTheSame(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		for _, l := range s.lessons() {
			for _, fixed := range versions {
				first := everything(t, s.play(t, l, fixed))
				for range s.runs - 1 {
					if again := everything(t, s.play(t, l, fixed)); !bytes.Equal(first, again) {
						t.Fatalf("%s: first\n%s\nthen\n%s", l.Name, first, again)
					}
				}
			}
		}
	})
}

func everything(t *testing.T, r Result) []byte {
	t.Helper()
	var b bytes.Buffer
	err := r.WriteText(&b, 80)
	if err == nil {
		err = json.NewEncoder(&b).Encode(r)
	}
	if err == nil {
		err = r.Timeline.WriteSVG(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLessonsAreWhole looks at what no run would notice.
func TestLessonsAreWhole(t *testing.T) {
	known := functions(t)
	seen := map[string]bool{}
	for _, l := range All() {
		if seen[l.Name] {
			t.Errorf("%s is there twice", l.Name)
		}
		seen[l.Name] = true
		if !known[l.Function] {
			t.Errorf("%s: there is no function %s", l.Name, l.Function)
		}
		if n := strings.Count(l.Shows+" ", ". "); n != 2 {
			t.Errorf("%s shows itself in %d sentences", l.Name, n)
		}
		if n := strings.Count(l.Guard+" ", ". "); n != 1 {
			t.Errorf("%s: the guard is %d sentences", l.Name, n)
		}
		if len(l.Engines) == 0 || len(l.Title) > 42 || strings.HasSuffix(l.Title, ".") {
			t.Errorf("%s: engines %v, title %q", l.Name, l.Engines, l.Title)
		}
		for _, script := range []string{l.Wrong, l.Fixed} {
			steps, err := parse(l.Actors, script)
			if err != nil {
				t.Errorf("%s: %v", l.Name, err)
			}
			for lane, actor := range l.Actors {
				if !slices.ContainsFunc(steps, func(s step) bool { return s.lane == lane }) {
					t.Errorf("%s: %s has nothing to do in\n%s", l.Name, actor, script)
				}
			}
		}
	}
	if l, found := Find("lost-update"); !found || l.Name != "lost-update" || len(seen) != len(Names()) {
		t.Errorf("found %v %v", l.Name, found)
	}
	if _, found := Find("lost"); found {
		t.Error("half a name is found")
	}
}

// functions gives the functions of package ledger, named as go doc finds them: ledger.settle,
// ledger.claim.take.
func functions(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "ledger", "*.go"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	known := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				known["ledger."+receiver(f)+f.Name.Name] = true
			}
		}
	}
	return known
}

// receiver gives the type of a method and a dot, or nothing.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	expr := f.Recv.List[0].Type
	if pointer, ok := expr.(*ast.StarExpr); ok {
		expr = pointer.X
	}
	if name, ok := expr.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// TestJSON holds the contract of the document.
func TestJSON(t *testing.T) {
	l, _ := Find("lost-update")
	r, err := l.Run(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const begins = `{"lesson":"lost-update","fixed":false,"engine":"sqlite","shows":"T1 and T2 `
	const holds = `"numbers":[{"name":"held","value":205,"want":410,"ok":false},`
	if !strings.HasPrefix(string(document), begins) || !strings.Contains(string(document), holds) {
		t.Errorf("got %s", document)
	}
	var fields map[string]any
	if err := json.Unmarshal(document, &fields); err != nil || len(fields) != 8 {
		t.Errorf("%d fields: %v", len(fields), err)
	}
}
