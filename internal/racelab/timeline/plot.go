package timeline

// Plot is the part of a picture that time stretches over: the lanes and the number's line, in the
// picture's pixels. What is between Top and Bottom and not left of Left has a time; labels right of Right
// belong to the end.
type Plot struct {
	Left, Top, Right, Bottom int
	Height                   int // of the whole picture

	x func(at int64) int
}

// Plot tells where in its picture a timeline's times are.
func (t *Timeline) Plot() Plot {
	s := t.layout()
	return Plot{s.plot.x, s.plot.y, s.ruler.right, s.plot.bottom(), s.height, s.ruler.x}
}

// X is where a time is: from 0 to the end of the last event.
func (p *Plot) X(at int64) int { return p.x(at) }
