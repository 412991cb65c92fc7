package timeline

import (
	"fmt"
	"strings"
)

// face is a kind of text: the class of its style, its size in pixels, and how much of the size a
// character takes at most, in hundredths. Of the fonts whose characters differ that is an average
// which words do not exceed.
type face struct {
	class   string
	size    int
	advance int
	style   string
}

const (
	mono = `font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:`
	sans = `font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:`
)

var (
	faceTitle = face{"title", 18, 62, sans + "@ink;font-weight:600"}
	faceBody  = face{"body", 13, 56, sans + "@soft"}
	faceName  = face{"name", 12, 62, mono + "@ink;font-weight:600"}
	faceCode  = face{"code", 12, 62, mono + "@ink"}
	faceNote  = face{"note", 12, 62, mono + "@soft"}
	faceGood  = face{"good", 12, 62, mono + "@green;font-weight:600"}
	faceBad   = face{"bad", 12, 62, mono + "@red;font-weight:600"}

	faces = []face{faceTitle, faceBody, faceName, faceCode, faceNote, faceGood, faceBad}
)

func (f face) width(text string) int { return (cells(text)*f.size*f.advance + 99) / 100 }
func (f face) fits(width int) int    { return max(0, width) * 100 / (f.size * f.advance) }
func (f face) height() int           { return f.size * 5 / 4 }

// color is an entry of the palette, for light and for dark surroundings.
type color struct{ name, light, dark string }

var palette = []color{
	{"paper", "#ffffff", "#0d1117"},
	{"rule", "#e1e5ea", "#262c36"},
	{"ink", "#1f2328", "#e6edf3"},
	{"soft", "#59636e", "#9198a1"},
	{"blue", "#0969da", "#4493f8"},
	{"sky", "#cfe5ff", "#16335c"},
	{"green", "#1a7f37", "#3fb950"},
	{"red", "#cf222e", "#f85149"},
	{"amber", "#9a6700", "#d29922"},
	{"violet", "#8250df", "#ab7df8"},
	{"lilac", "#e9dcff", "#33245a"},
}

// sheet is the style of everything but text. Text has a rim of paper, so that no line crosses it.
const sheet = `
.paper{fill:@paper;stroke:@rule}
.rule{stroke:@rule}
.life{stroke:@soft;stroke-opacity:.5}
.transaction{fill:@blue;fill-opacity:.3;stroke:none}
.read{fill:@sky;stroke:@blue}
.write{fill:@blue;stroke:@blue}
.call{fill:@lilac;stroke:@violet}
.wait{fill:url(#timeline-hatch);stroke:@amber;stroke-dasharray:3 2}
.hatch{stroke:@amber;stroke-opacity:.55;stroke-width:1.5}
.begin{fill:@paper;stroke:@blue;stroke-width:2}
.commit{fill:@green}
.rollback{fill:@amber}
.refused,.crash{fill:@red}
.retry{fill:none;stroke:@amber;stroke-width:2}
.sign{fill:none;stroke:@paper;stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
.halo{fill:@paper;stroke:none}
.number{fill:none;stroke:@ink;stroke-width:2;stroke-linejoin:round}
.want{stroke:@green;stroke-width:1.5;stroke-dasharray:6 4}
text{paint-order:stroke;stroke:@paper;stroke-width:4;stroke-linejoin:round}
`

// style is the sheet of a timeline and of the page around it.
func style() string { return Style(sheet) }

// Style is the style of a picture: its rules, in which @name stands for a color of the palette, and the
// kinds of text, for light and dark surroundings. Each color is given twice: first as itself, for programs
// that know no variables.
func Style(sheet string) string {
	var light, dark, rules strings.Builder
	var colors []string
	for _, c := range palette {
		fmt.Fprintf(&light, "--%s:%s;", c.name, c.light)
		fmt.Fprintf(&dark, "--%s:%s;", c.name, c.dark)
		for _, property := range []string{"fill", "stroke"} {
			plain := property + ":" + c.light
			colors = append(colors, property+":@"+c.name, plain+";"+property+":var(--"+c.name+")")
		}
	}
	fmt.Fprintf(&rules, ":root{color-scheme:light dark;%s}\n", &light)
	fmt.Fprintf(&rules, "@media (prefers-color-scheme:dark){:root{%s}}", &dark)
	rules.WriteString(sheet)
	for _, f := range faces {
		fmt.Fprintf(&rules, ".%s{font-size:%dpx;%s}\n", f.class, f.size, f.style)
	}
	return strings.NewReplacer(colors...).Replace(rules.String())
}
