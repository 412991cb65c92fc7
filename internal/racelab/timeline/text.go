package timeline

import (
	"io"
	"maps"
	"slices"
	"strings"
)

// columnMin is the narrowest column in which a statement can be read.
const columnMin = 16

// waiting fills the cell of an actor who waits.
const waiting = "|"

// row is one moment of the text: the time, a cell for each column, the number if it changes then.
type row struct {
	start int64
	cells []string
	value string
}

// grid is the text before it is laid out: each cell wraps at its column's width.
type grid struct {
	unit   Unit
	names  []string
	number string // the name of the last column; empty: there is none
	rows   []row
	widths []int
}

// WriteText writes a column for each actor, time going down, with the number at the right where it
// changes. Lines have at most width characters, as far as the names allow. Where so many columns
// have no room beside each other, each line names its actor instead. The text begins with the columns'
// names: title, description and caption are the caller's to print.
func (t *Timeline) WriteText(w io.Writer, width int) error {
	if err := t.check(); err != nil {
		return err
	}
	g := t.columns()
	if !g.fit(width) {
		g = t.list()
		g.fit(width)
	}
	_, err := io.WriteString(w, g.render())
	return err
}

// columns has a column for each lane, and a row for each time at which something begins or changes.
func (t *Timeline) columns() *grid {
	g := &grid{unit: t.Unit, number: t.Number.name()}
	for _, name := range t.Lanes {
		g.names = append(g.names, line(name))
	}
	rows := make(map[int64]*row)
	at := func(start int64) *row {
		if rows[start] == nil {
			rows[start] = &row{start: start, cells: make([]string, len(t.Lanes))}
		}
		return rows[start]
	}
	for _, e := range t.Events {
		cell := &at(e.Start).cells[e.Lane]
		*cell = strings.TrimPrefix(*cell+"\n"+clean(e.text()), "\n")
	}
	for _, p := range t.Number.Points {
		at(p.At).value = decimal(p.Value)
	}
	for _, e := range t.Events {
		if e.Kind == Wait {
			e.fill(rows)
		}
	}
	for _, start := range slices.Sorted(maps.Keys(rows)) {
		g.rows = append(g.rows, *rows[start])
	}
	return g
}

// fill shows a wait in the empty cells of the rows over which it lasts.
func (e *Event) fill(rows map[int64]*row) {
	for start, r := range rows {
		if start > e.Start && start < e.End && r.cells[e.Lane] == "" {
			r.cells[e.Lane] = waiting
		}
	}
}

// list has a row for each event, which names the actor.
func (t *Timeline) list() *grid {
	g := t.columns()
	moments := g.rows
	g.names, g.rows = []string{"ACTOR", "WHAT"}, nil
	for _, m := range moments {
		first := len(g.rows)
		for _, e := range t.Events {
			if e.Start == m.start {
				g.rows = append(g.rows, row{e.Start, []string{line(t.Lanes[e.Lane]), clean(e.text())}, ""})
			}
		}
		if len(g.rows) == first {
			g.rows = append(g.rows, row{m.start, make([]string, len(g.names)), ""})
		}
		g.rows[len(g.rows)-1].value = m.value
	}
	return g
}
