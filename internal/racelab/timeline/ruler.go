package timeline

import "strings"

// inset is how far in its column the content of a step begins.
const inset = 4

// ruler tells where a time is in the picture.
type ruler struct {
	x     func(at int64) int
	right int // where time ends
	ticks []tick
}

// tick is a line across the plot, and the time at its foot.
type tick struct {
	x    int
	text string
}

// ruler makes the timeline's ruler, from left on, with a margin at the right of the picture.
func (t *Timeline) ruler(left, margin int) ruler {
	if t.Unit == Steps {
		return t.stepRuler(left, margin)
	}
	return t.timeRuler(left, widthTime-margin)
}

// distance is how far a step must be from an earlier one, so that what stands between has room.
type distance struct {
	from, to int64
	pixels   int
}

// stepRuler puts each step as near to the one before as everything lets it, and spreads the steps if
// there is room left.
func (t *Timeline) stepRuler(left, margin int) ruler {
	const stepMin = 36
	last := max(t.end(), 1)
	wants := append(t.laneDistances(last), t.Number.distances(last)...)
	xs := make([]int, last+1)
	xs[0] = left
	for step := int64(1); step <= last; step++ {
		if xs[step] = xs[step-1]; step > 1 {
			xs[step] += stepMin
		}
		for _, d := range wants {
			if d.to == step {
				xs[step] = max(xs[step], xs[d.from]+d.pixels)
			}
		}
	}
	wanted := max(widthSteps, min(2*padding+faceTitle.width(line(t.Title)), widthTime))
	free := max(0, wanted-margin-xs[last])
	r := ruler{x: func(at int64) int { return xs[at] }}
	for step := int64(1); step < last; step++ {
		xs[step] += free * int(step-1) / int(last-1)
		r.ticks = append(r.ticks, tick{xs[step], Steps.clock(step)})
	}
	xs[last] += free
	r.right = xs[last]
	return r
}

// timeRuler spreads the time over the room between left and right.
func (t *Timeline) timeRuler(left, right int) ruler {
	const ticksMax = 10
	end := max(t.end(), 1)
	r := ruler{right: right, x: func(at int64) int {
		return left + int(float64(at)*float64(right-left)/float64(end))
	}}
	stride := round(end, ticksMax)
	for at := int64(0); at <= end; at += stride {
		text := strings.TrimSuffix(strings.TrimRight(Micros.clock(at), "0"), ".")
		r.ticks = append(r.ticks, tick{r.x(at), text})
	}
	return r
}

// round gives the smallest of 1, 2, 5, 10, 20, ... that fits into span at most n times.
func round(span, n int64) int64 {
	for power := int64(1); ; power *= 10 {
		for _, digit := range []int64{1, 2, 5} {
			if span/(digit*power) <= n {
				return digit * power
			}
		}
	}
}
