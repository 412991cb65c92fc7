package cli

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/db/dbtest"
)

// isSVG tells whether a file is a whole picture.
func isSVG(t *testing.T, name string) bool {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var picture struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		Title   string   `xml:"title"`
	}
	err = xml.Unmarshal(text, &picture)
	return err == nil && picture.Title == "6 notifications race for 2 jobs of 7 credits, held at creation"
}

func TestRaceDraws(t *testing.T) {
	dir := t.TempDir()
	svg, html := filepath.Join(dir, "race.svg"), filepath.Join(dir, "race.html")
	args := []string{"--jobs", "2", "--notifications", "3", "--mode", "hold", "--svg", svg, "--html", html}
	exit, out, errs := race(t, args...)
	if exit != 0 || errs != "" || !strings.Contains(out, "Every job settled exactly once.") || !isSVG(t, svg) {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
	const caption = "jobledger race --notifications 3 --jobs 2 --mode hold</text>"
	page, err := os.ReadFile(html)
	if err != nil || !strings.Contains(string(page), caption) {
		t.Errorf("%v: the page has not the command:\n%s", err, page)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("there is %v, %v", left, err)
	}
}

func TestPictureIsReplaced(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.svg"), filepath.Join(dir, "b.svg")
	if err := os.WriteFile(file, []byte(strings.Repeat("an older picture ", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.svg", link); err != nil {
		t.Fatal(err)
	}
	exit, _, errs := race(t, "--jobs=2", "--notifications=3", "--mode=hold", "--svg", link)
	info, err := os.Lstat(link)
	if exit != 0 || err != nil || info.Mode()&os.ModeSymlink == 0 || !isSVG(t, file) {
		t.Errorf("exit %d: %s; the link is %v, %v", exit, errs, info, err)
	}
	if info, err = os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Errorf("the file is %v, %v", info, err)
	}
	// What is no file is written to, and stays what it is.
	exit, _, errs = race(t, "--svg", os.DevNull)
	if info, err = os.Stat(os.DevNull); exit != 0 || err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Errorf("exit %d: %s; %s is %v, %v", exit, errs, os.DevNull, info, err)
	}
}

func TestPictureThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for _, c := range [][2]string{
		{"svg", ""}, {"svg", filepath.Join(dir, "none", "a.svg")}, {"html", dir},
		{"html", filepath.Join(os.DevNull, "a.html")},
	} {
		exit, out, errs := race(t, "--"+c[0]+"="+c[1])
		named := strings.HasPrefix(errs, "jobledger: "+c[0]+": ")
		if exit != 2 || out != "" || !named || strings.Count(errs, "\n") != 1 {
			t.Errorf("--%s=%s: exit %d: %s%s", c[0], c[1], exit, out, errs)
		}
	}
}

// Two pictures are two files, by whatever names; of one file the second would leave nothing of the first.
func TestPicturesAreTwoFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	err := errors.Join(os.WriteFile("b", nil, 0o600), os.Symlink("b", "file"), os.Symlink(dir, "folder"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"a", "a"}, {"a", "./a"}, {"a", filepath.Join(dir, "a")}, {"b", "file"}, {"folder/a", "a"},
	} {
		exit, out, errs := race(t, "--svg", c[0], "--html", c[1])
		want := fmt.Sprintf("jobledger: html: %q is the file of --svg too\n", c[1])
		if _, err := os.Stat("a"); exit != 2 || out != "" || errs != want || err == nil {
			t.Errorf("%q: exit %d: %s%s", c, exit, out, errs)
		}
	}
}

// A name that was mistyped costs no ledger.
func TestPictureIsNoDatabase(t *testing.T) {
	file := dbtest.SQLite(t)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--svg", "--html"} {
		exit, out, errs := race(t, "--jobs=2", "--notifications=3", "--mode=hold", flag, file)
		after, err := os.ReadFile(file)
		if exit != 2 || out != "" || !strings.Contains(errs, "is a database") || !bytes.Equal(after, before) {
			t.Errorf("%s: exit %d: %s%s, %v", flag, exit, out, errs, err)
		}
	}
	if err := replace(file, nil, pictureMode); err == nil {
		t.Error("a database was replaced")
	}
}

// What cannot be put in its place leaves nothing behind.
func TestReplaceCleansUp(t *testing.T) {
	dir := t.TempDir()
	err := replace(filepath.Join(dir, strings.Repeat("long", 100)), []byte("<svg/>"), pictureMode)
	if left, readErr := os.ReadDir(dir); err == nil || readErr != nil || len(left) != 0 {
		t.Errorf("%v; left are %v, %v", err, left, readErr)
	}
}
