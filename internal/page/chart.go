package page

import (
	"fmt"
	"strings"

	"jobledger/ledger"
)

// chartHeight is how high a chart is in its own units. It is drawn as wide as there is room: what is
// written stands beside it and not in it.
const chartHeight = 240

// chart is an owner's balance over time: an area for each bucket, one upon the other.
type chart struct {
	Areas  []area
	From   ledger.Time
	To     ledger.Time
	Top    int64 // the credits at the upper edge
	Points int
	Every  int64 // each so many entries there is a point
}

// area is what one bucket held.
type area struct {
	Name string
	Path string
	Last int64
}

// newChart draws a history. Nil: there is none.
func newChart(steps []ledger.BalanceStep) *chart {
	if len(steps) == 0 {
		return nil
	}
	c := &chart{From: steps[0].At, To: steps[0].At, Points: len(steps), Every: 1}
	if n := len(steps); n > 1 {
		c.Every = steps[1].Seq - steps[0].Seq
	}
	for _, s := range steps {
		c.To = max(c.To, s.At)
		c.Top = max(c.Top, s.Available+s.Held+s.Used+s.Expired)
	}
	buckets := []struct {
		name string
		of   func(*ledger.BalanceStep) int64
	}{
		{"available", func(s *ledger.BalanceStep) int64 { return s.Available }},
		{"held", func(s *ledger.BalanceStep) int64 { return s.Held }},
		{"used", func(s *ledger.BalanceStep) int64 { return s.Used }},
		{"expired", func(s *ledger.BalanceStep) int64 { return s.Expired }},
	}
	below := make([]int64, len(steps))
	for _, b := range buckets {
		above := make([]int64, len(steps))
		for i := range steps {
			above[i] = below[i] + b.of(&steps[i])
		}
		c.Areas = append(c.Areas, area{b.name, c.path(steps, below, above), b.of(&steps[len(steps)-1])})
		below = above
	}
	return c
}

// path goes along the upper edge from the first point to the last, and back along the lower one. A balance
// stays as it is until the next entry: the edges are stairs.
func (c *chart) path(steps []ledger.BalanceStep, below, above []int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M0 %.1f", c.y(above[0]))
	for i := 1; i < len(steps); i++ {
		fmt.Fprintf(&b, "H%.1fV%.1f", c.x(steps[i].At), c.y(above[i]))
	}
	fmt.Fprintf(&b, "H%dV%.1f", barWidth, c.y(below[len(steps)-1]))
	for i := len(steps) - 1; i > 0; i-- {
		fmt.Fprintf(&b, "H%.1fV%.1f", c.x(steps[i].At), c.y(below[i-1]))
	}
	return b.String() + "H0Z"
}

// x is where a time is. The last point has a little room to stand on.
func (c *chart) x(at ledger.Time) float64 {
	const room = 20
	if c.To <= c.From {
		return 0
	}
	return float64(at-c.From) / float64(c.To-c.From) * (barWidth - room)
}

func (c *chart) y(credits int64) float64 {
	if c.Top == 0 {
		return chartHeight
	}
	return chartHeight - float64(credits)/float64(c.Top)*chartHeight
}
