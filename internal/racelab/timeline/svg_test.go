package timeline

import (
	"encoding/xml"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// node is an element of a picture, as any program reads it.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []node     `xml:",any"`
}

func (n *node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (n *node) number(t *testing.T, name string) int {
	t.Helper()
	value, err := strconv.Atoi(n.attr(name))
	if err != nil {
		t.Errorf("%s: %s: %v", n.XMLName.Local, name, err)
	}
	return value
}

// all gives the elements of a name, at any depth.
func (n *node) all(name string) (list []*node) {
	for i := range n.Nodes {
		if n.Nodes[i].XMLName.Local == name {
			list = append(list, &n.Nodes[i])
		}
		list = append(list, n.Nodes[i].all(name)...)
	}
	return list
}

// drawn reads back what WriteSVG writes.
func drawn(t *testing.T, line *Timeline) (picture string, root *node) {
	t.Helper()
	var b strings.Builder
	if err := line.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	root = new(node)
	if err := xml.Unmarshal([]byte(b.String()), root); err != nil {
		t.Fatal(err)
	}
	return b.String(), root
}

// The texts of the picture itself, with the fonts that its style gives them, do not touch each other.
func TestDrawnTextsAreApart(t *testing.T) {
	rule := regexp.MustCompile(`\.(\w+)\{font-size:(\d+)px`)
	for name, line := range samples() {
		_, root := drawn(t, line)
		sizes := make(map[string]int)
		for _, m := range rule.FindAllStringSubmatch(root.all("style")[0].Text, -1) {
			sizes[m[1]], _ = strconv.Atoi(m[2])
		}
		var boxes []box
		for _, text := range root.all("text") {
			size := sizes[text.attr("class")]
			if size == 0 {
				t.Fatalf("%s: no size for %q", name, text.attr("class"))
			}
			width := cells(text.Text) * size * 60 / 100
			if text.attr("class") == faceBody.class {
				width = cells(text.Text) * size * 53 / 100
			}
			b := box{text.number(t, "x"), text.number(t, "y") - size, width, size + 3}
			for _, other := range boxes {
				if overlap(b, other) {
					t.Errorf("%s: %q is drawn over another text: %v, %v", name, text.Text, b, other)
				}
			}
			if b.right() > root.number(t, "width") || b.bottom() > root.number(t, "height") {
				t.Errorf("%s: %q leaves the picture: %v", name, text.Text, b)
			}
			boxes = append(boxes, b)
		}
	}
}

func TestPictureIsTheSameAlways(t *testing.T) {
	first, again := samples(), samples()
	for name := range first {
		a, _ := drawn(t, first[name])
		b, _ := drawn(t, again[name])
		if a != b {
			t.Errorf("%s: two pictures differ", name)
		}
	}
}

func TestPictureTellsWhatItIs(t *testing.T) {
	line := lostUpdate()
	_, root := drawn(t, line)
	ids := map[string]string{}
	for _, n := range append(root.all("title"), root.all("desc")...) {
		if id := n.attr("id"); id != "" {
			ids[id] = n.Text
		}
	}
	names := strings.Fields(root.attr("aria-labelledby"))
	if root.attr("role") != "img" || len(names) != 2 || ids[names[0]] != line.Title ||
		ids[names[1]] != line.Description+" held at the end: 205 (wrong; right is 410)" {
		t.Errorf("role %q, labelled by %q of %q", root.attr("role"), names, ids)
	}
	var texts []string
	for _, n := range root.all("text") {
		texts = append(texts, n.Text)
	}
	for _, want := range []string{
		line.Title, line.Caption, "T1", "T2", "held", "step", "9", "reads 0", "waits for T1", "writes 205", "205",
		"wrong: 205", "right: 410", "read", "write", "wait", "transaction", "BEGIN", "COMMIT",
	} {
		if !slices.Contains(texts, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	for _, absent := range []string{"crash", "refused", "ROLLBACK", "retry", "call"} {
		if slices.Contains(texts, absent) {
			t.Errorf("the legend explains %q, which does not occur", absent)
		}
	}
}

// Every kind has its own look, apart from its color: marks their own outline, bars their own style.
func TestKindsDifferInShape(t *testing.T) {
	looks := make(map[string]Kind)
	for _, k := range kinds {
		look := glyphs[k.kind]
		if k.bar {
			rule := regexp.MustCompile(`(?m)^\.` + string(k.kind) + `\{.*$`).FindString(style())
			look = regexp.MustCompile(`\.\w+\{|#\w+`).ReplaceAllString(rule, "")
		}
		if other, taken := looks[look]; taken || look == "" {
			t.Errorf("%s looks like %q: %q", k.kind, other, look)
		}
		looks[look] = k.kind
	}
	if len(looks) != len(kinds) || len(glyphs) != 6 {
		t.Errorf("%d looks, %d glyphs of %d kinds", len(looks), len(glyphs), len(kinds))
	}
}

// What comes from outside stays text, and there is nothing that a program could run or fetch.
func TestPictureIsSafe(t *testing.T) {
	const evil = `</text><script>alert("1")</script>&'<a href="https://x"/>` + "\x1b\x00\xff]]>"
	line := lostUpdate()
	line.Title, line.Description, line.Caption, line.Number.Name = evil, evil, evil, evil
	line.Lanes = []string{evil, evil}
	for i := range line.Events {
		line.Events[i].Label, line.Events[i].Detail = evil, evil
	}
	picture, root := drawn(t, line)
	elements := make(map[string]int)
	var count func(n *node)
	count = func(n *node) {
		elements[n.XMLName.Local]++
		for i := range n.Nodes {
			count(&n.Nodes[i])
		}
	}
	count(root)
	allowed := []string{
		"circle", "defs", "desc", "g", "path", "pattern", "rect", "style", "svg", "text", "title",
	}
	if got := slices.Sorted(maps.Keys(elements)); !slices.Equal(got, allowed) {
		t.Errorf("elements %v, want %v", got, allowed)
	}
	if strings.Contains(strings.Replace(picture, "http://www.w3.org/2000/svg", "", 1), "http://") ||
		regexp.MustCompile(`url\([^#]|@import|<\?|<!`).MatchString(picture) {
		t.Error("the picture names something outside of itself")
	}
}
