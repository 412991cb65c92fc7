// Package timeline shows what several actors did to one database, as text in columns, as a picture
// (SVG) and as a page around the picture (HTML). The same [Timeline] gives the same bytes, always.
package timeline

import (
	"errors"
	"fmt"
)

// Timeline is what several actors did, and what became of one number meanwhile.
type Timeline struct {
	Title       string   `json:"title"`       // one line
	Description string   `json:"description"` // what it shows, in a sentence or two
	Caption     string   `json:"caption"`     // the command that gives this picture
	Lanes       []string `json:"lanes"`       // the actors' names, in order; short: a worker, T1, sweeper
	Unit        Unit     `json:"unit"`        // what the times below count
	Events      []Event  `json:"events"`      // of each lane in their order in time
	Number      Series   `json:"number"`
}

// Unit is what the times of a timeline count.
type Unit string

// The units. With Steps the picture gives every step a column as wide as its labels need. The first
// step is 1. A statement of step 3 has Start 3 and End 4, a mark or a point of step 3 is at 3; several
// events of one actor in one step stand beside each other.
const (
	Steps  Unit = "steps"  // the turns of a scheduler that lets one actor do one thing at a time
	Micros Unit = "micros" // microseconds since some beginning
)

// Event is one thing that an actor did.
type Event struct {
	Lane  int   `json:"lane"`  // an index of Lanes
	Start int64 `json:"start"` // 0 or more
	End   int64 `json:"end"`   // of a bar after Start; of a mark equal to Start
	Kind  Kind  `json:"kind"`

	// Label stands in the picture: a few words, such as "reads 205" or "COMMIT". It may be empty, and
	// is shortened where there is no room for it.
	Label string `json:"label"`

	// Detail is the whole statement and its answer, with line breaks where they help. It is the tooltip
	// of the picture and what the text shows; where it is empty, Label takes its place.
	Detail string `json:"detail"`
}

// Kind is what an event is; every kind has its own shape in the picture.
type Kind string

// The kinds. The first four are bars, things that take time; the others are marks. What lies between
// a Begin and the end of its transaction in the same lane is underlined as a transaction.
const (
	Read  Kind = "read"  // a statement that reads
	Write Kind = "write" // a statement that writes
	Call  Kind = "call"  // a call of the ledger or of a provider, from the call to its answer
	Wait  Kind = "wait"  // for somebody else's lock, or turn

	Begin    Kind = "begin"
	Commit   Kind = "commit"
	Rollback Kind = "rollback"
	Refused  Kind = "refused" // a statement or a call that was answered no
	Retry    Kind = "retry"   // of what was refused as busy
	Crash    Kind = "crash"   // the end of a process; an actor whose last event it is has no line after
)

// Series is a number over the time of the events: a step function.
type Series struct {
	Name   string  `json:"name"`           // such as "balance"
	Points []Point `json:"points"`         // in order of time; none: there is no number to show
	Want   *int64  `json:"want,omitempty"` // the right value at the end; nil: none is known
}

// Point is the value of the number from a time on, up to the next point.
type Point struct {
	At    int64 `json:"at"` // 0: from the beginning, before the first step
	Value int64 `json:"value"`
}

// transaction is the figure under what lies between a Begin and the end of its transaction. No event
// has this kind.
const transaction Kind = "transaction"

// kinds is how each kind is called in a legend, and whether it is a bar, in the order of a legend.
var kinds = []struct {
	kind Kind
	name string
	bar  bool
}{
	{Read, "read", true},
	{Write, "write", true},
	{Call, "call", true},
	{Wait, "wait", true},
	{transaction, "transaction", true},
	{Begin, "BEGIN", false},
	{Commit, "COMMIT", false},
	{Rollback, "ROLLBACK", false},
	{Refused, "refused", false},
	{Retry, "retry", false},
	{Crash, "crash", false},
}

// isBar tells bars from marks. What is neither is no kind of an event.
func (k Kind) isBar() (bar, known bool) {
	for _, each := range kinds {
		if each.kind == k && k != transaction {
			return each.bar, true
		}
	}
	return false, false
}

// lasts tells whether the event takes time.
func (e *Event) lasts() bool { return e.End > e.Start }

// text is what is told of an event where there is room.
func (e *Event) text() string {
	if e.Detail != "" {
		return e.Detail
	}
	return e.Label
}

// check finds what cannot be shown.
func (t *Timeline) check() error {
	if t.Unit != Steps && t.Unit != Micros {
		return fmt.Errorf("timeline: %q is no unit", t.Unit)
	}
	last := make(map[int]int64)
	for i, e := range t.Events {
		bar, known := e.Kind.isBar()
		switch {
		case e.Lane < 0 || e.Lane >= len(t.Lanes):
			return fmt.Errorf("timeline: event %d is in lane %d of %d", i, e.Lane, len(t.Lanes))
		case !known:
			return fmt.Errorf("timeline: event %d is of no kind: %q", i, e.Kind)
		case e.Start < 0 || e.End < e.Start || bar != e.lasts():
			return fmt.Errorf("timeline: event %d, %s, lasts from %d to %d", i, e.Kind, e.Start, e.End)
		case e.Start < last[e.Lane]:
			return fmt.Errorf("timeline: event %d begins at %d, after one at %d", i, e.Start, last[e.Lane])
		}
		last[e.Lane] = e.Start
	}
	for i, p := range t.Number.Points {
		if p.At < 0 || i > 0 && p.At < t.Number.Points[i-1].At {
			return errors.New("timeline: the points of " + t.Number.Name + " are not in order of time")
		}
	}
	return nil
}

// end is the last time that anything has to do with: with Steps, the end of the last step.
func (t *Timeline) end() (end int64) {
	step := int64(0)
	if t.Unit == Steps {
		step = 1
	}
	for _, e := range t.Events {
		end = max(end, e.End, e.Start+step)
	}
	for _, p := range t.Number.Points {
		end = max(end, p.At+step)
	}
	return end
}
