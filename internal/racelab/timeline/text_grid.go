package timeline

import (
	"slices"
	"strings"
)

// between stands between two columns.
const between = "  "

// fit gives every column what its longest line needs; where that is too much, the wide columns share
// equally what the narrow ones leave. It tells whether that is enough for reading.
func (g *grid) fit(width int) bool {
	room := width - g.clockWidth()
	if g.number != "" {
		room -= len(between) + g.numberWidth()
	}
	g.widths = make([]int, len(g.names))
	for i, name := range g.names {
		g.widths[i] = cells(name)
		for _, r := range g.rows {
			for _, line := range strings.Split(r.cells[i], "\n") {
				g.widths[i] = max(g.widths[i], cells(line))
			}
		}
	}
	share := 0
	for i, w := range slices.Sorted(slices.Values(g.widths)) {
		if share = room/(len(g.widths)-i) - len(between); w > share {
			break
		}
		room -= w + len(between)
	}
	for i, w := range g.widths {
		g.widths[i] = min(w, max(share, columnMin))
	}
	return share >= columnMin || room >= 0 && slices.Max(g.widths) <= share
}

func (g *grid) clockWidth() int {
	width := len(g.unit.heading())
	for _, r := range g.rows {
		width = max(width, cells(g.unit.clock(r.start)))
	}
	return width
}

func (g *grid) numberWidth() int {
	width := cells(g.number)
	for _, r := range g.rows {
		width = max(width, cells(r.value))
	}
	return width
}

// render writes the grid, a line of names first. The times and the number are at the right of their
// columns.
func (g *grid) render() string {
	var b strings.Builder
	left, right := g.clockWidth(), g.numberWidth()
	put := func(clock string, parts []string, value string) {
		line := blank(left-cells(clock)) + clock
		for i, part := range parts {
			line += between + part + blank(g.widths[i]-cells(part))
		}
		line += between + blank(right-cells(value)) + value
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	put(strings.ToUpper(g.unit.heading()), g.names, strings.ToUpper(g.number))
	for _, r := range g.rows {
		clock, value := g.unit.clock(r.start), r.value
		for _, parts := range g.lines(r) {
			put(clock, parts, value)
			clock, value = "", ""
		}
	}
	return b.String()
}

// lines wraps the cells of a row, which has at least one line.
func (g *grid) lines(r row) [][]string {
	wrapped, height := make([][]string, len(r.cells)), 1
	for i, cell := range r.cells {
		wrapped[i] = Wrap(cell, g.widths[i], "  ")
		height = max(height, len(wrapped[i]))
	}
	lines := make([][]string, height)
	for n := range lines {
		lines[n] = make([]string, len(r.cells))
		for i, cell := range wrapped {
			switch {
			case n < len(cell):
				lines[n][i] = cell[n]
			case r.cells[i] == waiting:
				lines[n][i] = waiting
			}
		}
	}
	return lines
}

func blank(n int) string { return strings.Repeat(" ", max(0, n)) }
