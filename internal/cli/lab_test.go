package cli_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jobledger/internal/racelab/lesson"
)

// TestLabList: a table that fits a terminal, with every lesson in it.
func TestLabList(t *testing.T) {
	stdout, stderr, exit := run(t, "", "lab list")
	if exit != 0 || stderr != "" || !strings.HasPrefix(stdout, "LESSON ") {
		t.Errorf("exit %d, %s, %s", exit, stdout, stderr)
	}
	for line := range strings.Lines(stdout) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	document, _, _ := run(t, "", "lab list --json")
	var list struct {
		Items []struct{ Lesson, Title, Shows, Guard, Function string }
	}
	if err := json.Unmarshal([]byte(document), &list); err != nil || len(list.Items) != len(lesson.All()) {
		t.Fatalf("%d lessons: %v", len(list.Items), err)
	}
	for _, l := range list.Items {
		if !strings.Contains(stdout, "\n"+l.Lesson+" ") || l.Title == "" || l.Shows == "" || l.Guard == "" ||
			l.Function == "" {
			t.Errorf("got %+v", l)
		}
	}
}

// TestLabRun prints what the lesson's golden file holds; $JOBLEDGER_DB means nothing to it.
func TestLabRun(t *testing.T) {
	t.Setenv("JOBLEDGER_DB", "nowhere/ledger.db")
	for _, l := range lesson.All() {
		for line, file := range map[string]string{
			"lab run " + l.Name:                l.Name,
			"lab run --fixed " + l.Name:        l.Name + "-fixed",
			"--fixed lab run --json " + l.Name: "",
		} {
			stdout, stderr, exit := run(t, "", line)
			if exit != 0 || stderr != "" {
				t.Errorf("%s: exit %d, %s", line, exit, stderr)
			}
			if file == "" {
				var r lesson.Result
				if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Lesson != l.Name || !r.Fixed {
					t.Errorf("%s: %v, %s", line, err, stdout)
				}
				continue
			}
			want, err := os.ReadFile(filepath.Join("..", "racelab", "lesson", "testdata", "sqlite", file+".txt"))
			if err != nil || stdout != string(want) {
				t.Errorf("%s: %v, got\n%s", line, err, stdout)
			}
		}
	}
}

// TestLabPictures: the files are written, are well-formed, and are the same each time.
func TestLabPictures(t *testing.T) {
	svg, html := filepath.Join(t.TempDir(), "x.svg"), filepath.Join(t.TempDir(), "x.html")
	line := "lab run check-then-act --svg " + svg + " --html=" + html
	var first []string
	for range 2 {
		if _, stderr, exit := run(t, "", line); exit != 0 || stderr != "" {
			t.Fatalf("exit %d: %s", exit, stderr)
		}
		var pictures []string
		for _, path := range []string{svg, html} {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pictures = append(pictures, string(text))
		}
		if first != nil && (first[0] != pictures[0] || first[1] != pictures[1]) {
			t.Error("the second run drew something else")
		}
		first = pictures
	}
	d := xml.NewDecoder(strings.NewReader(first[0]))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"<svg", "<!doctype html>"} {
		if !strings.Contains(strings.ToLower(first[i]), want) || !strings.Contains(first[i], "run check-then-act") {
			t.Errorf("%s is not in %.200s", want, first[i])
		}
	}
}

// TestLabRefuses: one clear line, exit 2, and no picture.
func TestLabRefuses(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "x.svg")
	for line, want := range map[string]string{
		"lab":                       `^jobledger: lab needs a command: list, run`,
		"lab run":                   `^jobledger: missing argument LESSON`,
		"lab run lost-updat":        `^jobledger: there is no lesson "lost-updat": did you mean lost-update\?$`,
		"lab run lost":              `^jobledger: there is no lesson "lost": see jobledger lab list$`,
		"lab run lost-update twice": `too many arguments`,
		"lab list --fixed":          `unknown flag --fixed for lab list`,
		"lab run lost-update --svg " + filepath.Join(picture, "x"): `^jobledger: svg: `,
	} {
		stdout, stderr, exit := run(t, "", line)
		if exit != 2 || stdout != "" || !regexp.MustCompile(want).MatchString(strings.TrimSpace(stderr)) {
			t.Errorf("%s: exit %d, %q, %s", line, exit, stdout, stderr)
		}
	}
	_, stderr, exit := run(t, "some.db", "lab run lost-update --svg "+picture)
	if exit != 2 || !strings.HasPrefix(stderr, "jobledger: db: the lab uses no database that exists") {
		t.Errorf("exit %d, %s", exit, stderr)
	}
	if _, err := os.Stat(picture); err == nil {
		t.Error("there is a picture of nothing")
	}
}
