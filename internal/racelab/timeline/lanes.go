package timeline

const (
	laneHeight = 48
	laneMiddle = 33 // where in a lane its bars and marks are; their labels are above
	spanHeight = 6
	labelMax   = 32 // characters of a label that a step makes room for
)

// placed is an event in its lane.
type placed struct {
	*Event
	offset int // of a step: how far it stands from the column's beginning, behind others of its lane
	box    box
}

// byLane sorts the events by lanes.
func (t *Timeline) byLane() [][]placed {
	lanes := make([][]placed, len(t.Lanes))
	for i := range t.Events {
		p := placed{Event: &t.Events[i]}
		lane := lanes[p.Lane]
		if t.Unit == Steps {
			p.offset = inset
			if n := len(lane); n > 0 && lane[n-1].Start == p.Start {
				p.offset = lane[n-1].offset + lane[n-1].need()
			}
		}
		lanes[p.Lane] = append(lane, p)
	}
	return lanes
}

// short is the label as far as there may be room for it.
func (e *Event) short() string { return shorten(line(e.Label), labelMax) }

// need is the width that an event of a step takes, with its label and the gap behind it.
func (e *Event) need() int {
	width := glyph
	if e.lasts() {
		width = barMin
	}
	return max(width, faceCode.width(e.short())) + gap
}

// laneDistances is the room that events and their labels need up to the next step in which their
// lane has something, or the end.
func (t *Timeline) laneDistances(end int64) (list []distance) {
	for _, lane := range t.byLane() {
		next := end
		for i := len(lane) - 1; i >= 0; i-- {
			e := lane[i]
			list = append(list, distance{e.Start, next, e.offset + e.need()})
			if e.lasts() {
				list = append(list, distance{e.Start, e.End, e.offset + barMin + gap})
			}
			if i > 0 && lane[i-1].Start < e.Start {
				next = e.Start
			}
		}
	}
	return list
}

// placeLanes places the actors' rows with all that is in them, and gives the y below them.
func (s *scene) placeLanes(y int) int {
	for n, lane := range s.timeline.byLane() {
		middle := y + laneMiddle
		s.edges = append(s.edges, y)
		s.add(faceName, padding, middle-faceName.height()/2, shortName(s.timeline.Lanes[n]))
		life := box{s.plot.x, middle, s.plot.w, 0}
		for i := range lane {
			s.placeEvent(&lane[i], middle)
		}
		if last := len(lane) - 1; last >= 0 && lane[last].Kind == Crash {
			life.w = lane[last].box.middle() - s.plot.x
		}
		s.lives = append(s.lives, life)
		s.placeSpans(lane, middle)
		s.placeFigures(lane, true)
		s.placeFigures(lane, false)
		s.placeLabels(lane, false, y+gap) // what marks say is more than what bars say
		s.placeLabels(lane, true, y+gap)
		y += laneHeight
	}
	return y
}

// placeEvent computes the box of a bar or a mark.
func (s *scene) placeEvent(e *placed, middle int) {
	e.box = box{s.ruler.x(e.Start) + e.offset, middle - glyph/2, glyph, glyph}
	switch {
	case s.timeline.Unit == Steps && e.lasts():
		e.box.w = s.ruler.x(e.End) - inset - e.box.x
		if e.End == e.Start+1 {
			e.box.w = min(e.box.w, e.need()-gap)
		}
	case e.lasts():
		e.box.w = max(2, s.ruler.x(e.End)-e.box.x-1) // a pixel apart from the next
	case s.timeline.Unit == Micros && e.Kind == Commit:
		e.box.x -= glyph + 1 // inside the bar that ends with it
	case s.timeline.Unit == Micros:
		e.box.x -= glyph / 2
	}
}

// placeSpans adds the transactions of a lane.
func (s *scene) placeSpans(lane []placed, middle int) {
	begin := -1
	for _, e := range lane {
		switch e.Kind {
		case Begin:
			begin = e.box.middle()
		case Commit, Rollback, Crash:
			if begin >= 0 {
				span := box{begin, middle - spanHeight/2, e.box.middle() - begin, spanHeight}
				s.figures = append(s.figures, figure{box: span, kind: transaction})
			}
			begin = -1
		}
	}
}

// placeFigures adds the bars of a lane or, above them, its marks. What would hide one of its kind is
// made one with it.
func (s *scene) placeFigures(lane []placed, bars bool) {
	last := make(map[Kind]int)
	for _, e := range lane {
		if e.lasts() != bars {
			continue
		}
		f := figure{e.box, e.Kind, s.timeline.tooltip(e.Event)}
		if before, ok := last[f.kind]; ok && s.figures[before].right() > f.x {
			s.figures[before].join(&f, bars)
			continue
		}
		last[f.kind] = len(s.figures)
		s.figures = append(s.figures, f)
	}
}

// join lets a figure stand for the next one too. A bar is as long as both then.
func (f *figure) join(next *figure, bars bool) {
	f.tooltip += "\n" + next.tooltip
	if bars {
		f.w = max(f.w, next.right()-f.x)
	}
}

// placeLabels writes the labels of a lane above its bars or its marks, each up to the next one that is
// there already: shortened or left to the tooltip where that is near.
func (s *scene) placeLabels(lane []placed, bars bool, y int) {
	for i := len(lane) - 1; i >= 0; i-- {
		e := lane[i]
		if e.lasts() != bars {
			continue
		}
		end := s.width - padding
		for _, other := range s.labels {
			switch {
			case other.y != y || other.right()+gap <= e.box.x:
			case other.x <= e.box.x:
				end = 0
			default:
				end = min(end, other.x-gap)
			}
		}
		s.add(faceCode, e.box.x, y, shorten(e.short(), faceCode.fits(end-e.box.x)))
	}
}

// tooltip is the whole story of an event.
func (t *Timeline) tooltip(e *Event) string {
	return clean(t.Lanes[e.Lane] + ", " + t.Unit.heading() + " " + t.Unit.clock(e.Start) + ": " + e.text())
}
