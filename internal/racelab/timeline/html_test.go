package timeline

import (
	"encoding/xml"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readPage reads back the page that WriteHTML writes.
func readPage(t *testing.T, line *Timeline) (page string, cells [][]string) {
	t.Helper()
	var b strings.Builder
	if err := line.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(b.String(), "<table>")
	table, _, found := strings.Cut(table, "</table>")
	if !found {
		t.Fatalf("no table in\n%s", &b)
	}
	root := new(node)
	if err := xml.Unmarshal([]byte("<table>"+table+"</table>"), root); err != nil {
		t.Fatal(err)
	}
	for _, row := range root.all("tr") {
		var texts []string
		for i := range row.Nodes {
			texts = append(texts, row.Nodes[i].Text)
		}
		cells = append(cells, texts)
	}
	return b.String(), cells
}

func TestPageHasThePictureAndATable(t *testing.T) {
	line := lostUpdate()
	picture, _ := drawn(t, line)
	page, rows := readPage(t, line)
	if !strings.Contains(page, picture) || !strings.Contains(page, "<p>"+line.Number.ending()+"</p>") ||
		!strings.Contains(page, "<title>"+line.Title+"</title>") {
		t.Errorf("the picture, its end or its title is not in\n%s", page)
	}
	if !strings.Contains(page, "\nfigure svg{max-width:100%;height:auto}\n") {
		t.Error("a picture that is wider than the page does not shrink to it")
	}
	for i, want := range map[int][]string{
		0: {"step", "actor", "what", "held"},
		1: {"0", "", "", "0"},
		2: {"1", "T1", "BEGIN", ""},
		4: {"3", "T1", "SELECT held FROM balances WHERE owner = 'alice'\n-> 0", ""},
		8: {"7", "T1", "COMMIT\n-> ok", "205"},
	} {
		if len(rows) != 11 || !slices.Equal(rows[i], want) {
			t.Errorf("%d rows, row %d is %q, want %q", len(rows), i, rows[min(i, len(rows)-1)], want)
		}
	}
	line.Number.Points = nil
	if page, rows := readPage(t, line); len(rows[0]) != 3 || len(rows[2]) != 3 || strings.Contains(page, "<p>") {
		t.Errorf("without a number: %q", rows)
	}
}

func TestPageIsSafeAndAlone(t *testing.T) {
	const evil = `</td></title><script>alert(1)</script><img src=x onerror=alert(1)>&amp;"`
	line := lostUpdate()
	line.Title, line.Lanes[0], line.Number.Name, line.Events[0].Detail = evil, evil, evil, evil
	page, rows := readPage(t, line)
	if regexp.MustCompile(`(?i)<(script|img|link|iframe|object|a)\b`).MatchString(page) {
		t.Errorf("what came from outside is more than text:\n%s", page)
	}
	if rows[2][1] != evil || rows[2][2] != evil || rows[0][3] != evil {
		t.Errorf("what came from outside is lost: %q", rows[:3])
	}
	if !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'"`) ||
		strings.Count(page, "http") != strings.Count(page, "http-equiv")+1 { // and the name of SVG
		t.Error("the page may use something outside of itself")
	}
	again, _ := readPage(t, line)
	if page != again {
		t.Error("two pages differ")
	}
}
