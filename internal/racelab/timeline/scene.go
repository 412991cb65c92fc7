package timeline

// A picture is made in two steps: the layout computes where everything is, as a scene; the drawing
// writes the scene as SVG and computes nothing. All places are whole pixels.

const (
	padding    = 24   // around everything, in pixels
	gap        = 8    // between neighbors
	widthSteps = 800  // of a picture of steps, at least
	widthTime  = 1200 // of a picture of time
	glyph      = 14   // the width of a mark, the height of marks and bars
	barMin     = 28   // the narrowest bar of a step

	charactersMax = 110 // in a line that is comfortable to read
)

// box is a rectangle: its upper left corner and its size.
type box struct{ x, y, w, h int }

func (b box) right() int  { return b.x + b.w }
func (b box) bottom() int { return b.y + b.h }
func (b box) middle() int { return b.x + b.w/2 }

// label is a line of text, and the box that it takes at most.
type label struct {
	box
	face face
	text string
}

// figure is a bar, which fills its box, or a mark, which stands in the middle of its box. Later ones
// are above earlier ones.
type figure struct {
	box
	kind    Kind
	tooltip string
}

// point is a corner of the number's line.
type point struct{ x, y int }

// scene is everything that is drawn, each thing at its place.
type scene struct {
	timeline *Timeline
	ruler    ruler

	width, height int
	plot          box // what time stretches over: the lanes and the chart
	edges         []int
	lives         []box // the lane's line of each actor, up to the actor's end
	figures       []figure
	number        []point
	want          int // the height of the right value; 0: there is none
	labels        []label
}

// layout computes where everything is.
func (t *Timeline) layout() *scene {
	s := &scene{timeline: t}
	margin := 0
	for _, v := range t.Number.verdicts() {
		margin = max(margin, gap+v.face.width(v.text))
	}
	gutter := faceName.width(shortName(t.Number.name()))
	for _, name := range t.Lanes {
		gutter = max(gutter, faceName.width(shortName(name)))
	}
	s.plot.x = padding + gutter + 2*gap
	s.ruler = t.ruler(s.plot.x, margin+padding)
	s.plot.w = s.ruler.right - s.plot.x
	s.width = s.ruler.right + margin + padding
	y := s.placeText(faceTitle, t.Title, padding)
	s.plot.y = s.placeText(faceBody, t.Description, y+gap/2) + 2*gap
	y = s.placeChart(s.placeLanes(s.plot.y))
	s.plot.h = y - s.plot.y
	y = s.placeTicks(y + gap/2)
	y = s.placeLegend(y + 2*gap)
	s.height = s.placeText(faceNote, t.Caption, y+2*gap) + padding - gap
	return s
}

// shortName is as much of a name as stands at the left of a picture.
func shortName(name string) string { return shorten(line(name), 24) }

// add places a line of text with its upper left corner.
func (s *scene) add(f face, x, y int, text string) {
	if text != "" {
		s.labels = append(s.labels, label{box{x, y, f.width(text), f.height()}, f, text})
	}
}

// placeText places text from y on, in as many lines as it takes, and gives the y below it.
func (s *scene) placeText(f face, text string, y int) int {
	for _, l := range Wrap(line(text), min(f.fits(s.width-2*padding), charactersMax), "") {
		s.add(f, padding, y, l)
		y += f.height() + 2
	}
	return y
}

// placeTicks places the times under the plot, and gives the y below them.
func (s *scene) placeTicks(y int) int {
	s.add(faceNote, padding, y, s.timeline.Unit.heading())
	for _, t := range s.ruler.ticks {
		x := t.x + inset
		if s.timeline.Unit == Micros {
			x = t.x - faceNote.width(t.text)/2
		}
		s.add(faceNote, x, y, t.text)
	}
	return y + faceNote.height()
}

// placeLegend explains the figures that occur, in as many lines as it takes, and gives the y below.
func (s *scene) placeLegend(y int) int {
	occurs := make(map[Kind]bool)
	for _, f := range s.figures {
		occurs[f.kind] = true
	}
	x := padding
	for _, k := range kinds {
		if !occurs[k.kind] {
			continue
		}
		width := glyph
		if k.bar {
			width = barMin
		}
		end := x + width + gap + faceNote.width(k.name)
		if end > s.width-padding {
			x, end = padding, end-x+padding
			y += faceNote.height() + gap
		}
		sample := box{x, y, width, glyph}
		if k.kind == transaction {
			sample.y, sample.h = y+(glyph-spanHeight)/2, spanHeight
		}
		s.figures = append(s.figures, figure{box: sample, kind: k.kind})
		s.add(faceNote, x+width+gap, y, k.name)
		x = end + 2*gap
	}
	return y + faceNote.height()
}
