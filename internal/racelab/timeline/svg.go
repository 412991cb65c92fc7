package timeline

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// glyphs draws each mark, around the middle of its place.
var glyphs = map[Kind]string{
	Begin:  `<path d="M-4-5.5 5.5 0-4 5.5z" stroke-linejoin="round"/>`,
	Commit: `<circle r="7"/><path class="sign" d="M-3 .5-1 2.5 3.2-2.2"/>`,
	Rollback: `<rect x="-6.5" y="-6.5" width="13" height="13" rx="2.5"/>` +
		`<path class="sign" d="M1.5-3.5-2 0l3.5 3.5"/>`,
	Refused: `<path d="M-3-7h6l4 4v6l-4 4h-6l-4-4v-6z"/><path class="sign" d="M-3 0h6"/>`,
	Retry:   `<path d="M4.2-3.2A5.3 5.3 0 1 0 5.3 1"/><path d="M5.5-6.5v4h-4"/>`,
	Crash: `<path d="M0-7.5 1.9-3.2 6-5 4-1 7.5 1.2 3.6 2.4 4 7 0 4.6-4 7-3.6 2.4-7.5 1.2-4-1-6-5` +
		`-1.9-3.2z"/>`,
}

// WriteSVG writes the picture: a row for each actor, time to the right, the number below. It stands
// alone, has no scripts, and suits light and dark surroundings.
func (t *Timeline) WriteSVG(w io.Writer) error {
	if err := t.check(); err != nil {
		return err
	}
	_, err := io.WriteString(w, t.layout().draw())
	return err
}

// description is all that the picture tells those who do not see it.
func (t *Timeline) description() string { return line(t.Description + " " + t.Number.ending()) }

// pen collects what is drawn.
type pen struct{ strings.Builder }

func (p *pen) put(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// draw writes the scene as SVG.
func (s *scene) draw() string {
	p := new(pen)
	p.put(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" `+
		`aria-labelledby="timeline-title timeline-desc">`, s.width, s.height)
	p.put(`<title id="timeline-title">%s</title>`, html.EscapeString(line(s.timeline.Title)))
	p.put(`<desc id="timeline-desc">%s</desc>`, html.EscapeString(s.timeline.description()))
	p.put("<style>\n%s</style>", style())
	p.put(`<defs><pattern id="timeline-hatch" width="6" height="6" patternUnits="userSpaceOnUse" ` +
		`patternTransform="rotate(45)"><path class="hatch" d="M3 0V6"/></pattern></defs>`)
	p.put(`<rect class="paper" x=".5" y=".5" width="%d" height="%d" rx="8"/>`, s.width-1, s.height-1)
	s.drawGround(p)
	for i := range s.figures {
		s.figures[i].draw(p)
	}
	s.drawNumber(p)
	for _, l := range s.labels {
		p.put(`<text class="%s" x="%d" y="%d">%s</text>`,
			l.face.class, l.x, l.y+l.face.size, html.EscapeString(l.text))
	}
	p.put("</svg>")
	return p.String()
}

// drawGround draws what everything else stands on: the lines of the ruler and of the lanes.
func (s *scene) drawGround(p *pen) {
	for _, t := range s.ruler.ticks {
		p.put(`<path class="rule" d="M%d.5 %dV%d"/>`, t.x, s.plot.y, s.plot.bottom())
	}
	for _, y := range append(s.edges, s.plot.bottom()) {
		p.put(`<path class="rule" d="M%d %d.5H%d"/>`, padding, y, s.width-padding)
	}
	for _, b := range s.lives {
		p.put(`<path class="life" d="M%d %d.5H%d"/>`, b.x, b.y, b.right())
	}
}

// draw writes one bar or mark.
func (f *figure) draw(p *pen) {
	tooltip := ""
	if f.tooltip != "" {
		tooltip = "<title>" + html.EscapeString(f.tooltip) + "</title>"
	}
	if sign, ok := glyphs[f.kind]; ok {
		p.put(`<g class="%s" transform="translate(%d %d)">%s<circle class="halo" r="8"/>%s</g>`,
			f.kind, f.middle(), f.y+f.h/2, tooltip, sign)
		return
	}
	p.put(`<rect class="%s" x="%d.5" y="%d.5" width="%d" height="%d" rx="3">%s</rect>`,
		f.kind, f.x, f.y, f.w-1, f.h-1, tooltip)
}

// drawNumber draws the number's line, and the right value as a line across.
func (s *scene) drawNumber(p *pen) {
	if s.want > 0 {
		p.put(`<path class="want" d="M%d %dH%d"/>`, s.plot.x, s.want, s.plot.right())
	}
	if len(s.number) == 0 {
		return
	}
	corners := make([]string, len(s.number))
	for i, c := range s.number {
		corners[i] = fmt.Sprintf("%d %d", c.x, c.y)
	}
	p.put(`<path class="number" d="M%s"/>`, strings.Join(corners, "L"))
}
