package timeline

import "strconv"

const (
	chartHeight = 92
	underPlot   = 12 // below the lowest value, so that its verdict does not lie on the rule
)

// name is what the number is called; empty: there is none.
func (n *Series) name() string {
	if len(n.Points) == 0 {
		return ""
	}
	return line(n.Name)
}

// final is the value at the end.
func (n *Series) final() int64 { return n.Points[len(n.Points)-1].Value }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// distances is the room that each value needs until the number changes again.
func (n *Series) distances(end int64) (list []distance) {
	for i, p := range n.Points {
		next := end
		if i+1 < len(n.Points) {
			next = n.Points[i+1].At
		}
		if next > p.At {
			list = append(list, distance{p.At, next, inset + glyph + faceCode.width(decimal(p.Value)) + gap})
		}
	}
	return list
}

// verdict is what stands at the end of the line, beside a value.
type verdict struct {
	value int64
	text  string
	face  face
}

// verdicts compares the last value with the right one.
func (n *Series) verdicts() []verdict {
	if len(n.Points) == 0 {
		return nil
	}
	last := n.final()
	if n.Want == nil {
		return []verdict{{last, decimal(last), faceCode}}
	}
	right := verdict{*n.Want, "right: " + decimal(*n.Want), faceGood}
	if *n.Want == last {
		return []verdict{right}
	}
	return []verdict{{last, "wrong: " + decimal(last), faceBad}, right}
}

// ending tells in words how the number ends; nothing if there is none.
func (n *Series) ending() string {
	if len(n.Points) == 0 {
		return ""
	}
	text := n.name() + " at the end: " + decimal(n.final())
	switch {
	case n.Want == nil:
		return text
	case *n.Want == n.final():
		return text + " (right)"
	}
	return text + " (wrong; right is " + decimal(*n.Want) + ")"
}

// placeChart places the number's line from y on, and gives the y below it.
func (s *scene) placeChart(y int) int {
	n := &s.timeline.Number
	if len(n.Points) == 0 {
		return y
	}
	s.edges = append(s.edges, y)
	s.add(faceName, padding, y+(chartHeight-faceName.height())/2, shortName(n.name()))
	height := n.scale(y+faceCode.height()+gap, y+chartHeight-underPlot)
	if n.Want != nil {
		s.want = height(*n.Want)
	}
	end := s.ruler.right
	for i := len(n.Points) - 1; i >= 0; i-- {
		p := n.Points[i]
		x, y := s.ruler.x(p.At), height(p.Value)
		if s.timeline.Unit == Steps && p.At > 0 {
			x += inset + glyph/2 // the middle of a mark of that step
		}
		if x == end && len(s.number) > 0 {
			continue // the number changes again within the same pixel
		}
		s.number = append(s.number, point{end, y}, point{x, y})
		if text := decimal(p.Value); inset+faceCode.width(text) < end-x {
			s.add(faceCode, x+inset, y-faceCode.height()-2, text)
		}
		end = x
	}
	s.placeVerdicts(height)
	return y + chartHeight
}

// scale tells how high a value is between top and bottom.
func (n *Series) scale(top, bottom int) func(value int64) int {
	low, high := n.final(), n.final()
	for _, p := range n.Points {
		low, high = min(low, p.Value), max(high, p.Value)
	}
	if n.Want != nil {
		low, high = min(low, *n.Want), max(high, *n.Want)
	}
	if low == high {
		return func(int64) int { return (top + bottom) / 2 }
	}
	span := float64(high) - float64(low)
	return func(value int64) int {
		return bottom - int((float64(value)-float64(low))/span*float64(bottom-top))
	}
}

// placeVerdicts writes the verdicts at the right of the plot, each at its value's height, or as near
// as the other lets it.
func (s *scene) placeVerdicts(height func(int64) int) {
	list := s.timeline.Number.verdicts()
	apart := faceGood.height() + 2
	for i, v := range list {
		y := height(v.value)
		if first := height(list[0].value); i > 0 && y >= first {
			y = max(y, first+apart)
		} else if i > 0 {
			y = min(y, first-apart)
		}
		s.add(v.face, s.plot.right()+gap, y-v.face.height()/2, v.text)
	}
}
