package bench

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
)

// draw writes the chart, from top on.
func (c *chart) draw(w io.Writer, top int) {
	text := func(class string, x, y int, anchor, s string) {
		fmt.Fprintf(w, `<text class="%s" x="%d" y="%d" text-anchor="%s">%s</text>`+"\n",
			class, x, y, anchor, html.EscapeString(s))
	}
	text("title", 16, top+28, "start", c.title)
	text("body", 16, top+48, "start", c.note)
	plot := top + titleHeight
	low, high := c.powers()
	x := func(at float64) int { return plotLeft + scaled(at, c.x[0].at, c.x[len(c.x)-1].at, plotRight-plotLeft) }
	y := func(micros float64) int {
		return plot + plotHeight - scaled(math.Log10(max(micros, .001)), low, high, plotHeight)
	}
	for _, t := range c.x {
		fmt.Fprintf(w, `<path class="rule" d="M%d.5 %dV%d"/>`+"\n", x(t.at), plot, plot+plotHeight)
		text("note", x(t.at), plot+plotHeight+20, "middle", t.text)
	}
	for power := low; power <= high; power++ {
		fmt.Fprintf(w, `<path class="rule" d="M%d %d.5H%d"/>`+"\n", plotLeft, y(math.Pow(10, power)), plotRight)
		text("note", plotLeft-8, y(math.Pow(10, power))+4, "end", powerName(power))
	}
	if c.sync > 0 {
		fmt.Fprintf(w, `<path class="sync" d="M%d %dH%d"/>`+"\n", plotLeft, y(c.sync), plotRight)
	}
	for i, l := range c.lines {
		fmt.Fprintf(w, `<path class="line l%d" d="`, i%colors)
		for k, p := range l.points {
			fmt.Fprintf(w, "%c%d %d", "ML"[min(k, 1)], x(p.x), y(p.y))
		}
		fmt.Fprintf(w, "\"/>\n")
	}
	for i, place := range c.names(y) {
		fmt.Fprintf(w, `<path class="line l%d" d="M%d %dh14"/>`+"\n", i%colors, plotRight+10, place-4)
		text("name", plotRight+30, place, "start", c.lines[i].name)
	}
}

// names gives each line's name a place at the height of its end, or as near as the others let it.
func (c *chart) names(y func(float64) int) []int {
	const apart = 16
	order, places := make([]int, len(c.lines)), make([]int, len(c.lines))
	for i := range c.lines {
		order[i] = i
		if n := len(c.lines[i].points); n > 0 {
			places[i] = y(c.lines[i].points[n-1].y) + 4
		}
	}
	slices.SortStableFunc(order, func(i, k int) int { return places[i] - places[k] })
	for n := 1; n < len(order); n++ {
		places[order[n]] = max(places[order[n]], places[order[n-1]]+apart)
	}
	return places
}

// powers are the powers of ten between which all values are.
func (c *chart) powers() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	note := func(micros float64) {
		power := math.Log10(max(micros, .001))
		low, high = min(low, math.Floor(power)), max(high, math.Ceil(power))
	}
	if c.sync > 0 {
		note(c.sync)
	}
	for _, l := range c.lines {
		for _, p := range l.points {
			note(p.y)
		}
	}
	return min(low, high-1), high
}

// scaled places a value between two others onto a number of pixels.
func scaled(at, low, high float64, pixels int) int {
	if high == low {
		return pixels / 2
	}
	return int(math.Round((at - low) / (high - low) * float64(pixels)))
}

// powerName is a power of ten of microseconds.
func powerName(power float64) string {
	switch n := math.Pow(10, power); {
	case n < 1000:
		return fmt.Sprintf("%g us", n)
	case n < 1e6:
		return fmt.Sprintf("%g ms", n/1e3)
	default:
		return fmt.Sprintf("%g s", n/1e6)
	}
}
