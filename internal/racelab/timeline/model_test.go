package timeline

import (
	"io"
	"strings"
	"testing"
)

func TestWhatCannotBeShownIsRefused(t *testing.T) {
	for _, c := range []struct {
		want   string
		damage func(*Timeline)
	}{
		{`"years" is no unit`, func(t *Timeline) { t.Unit = "years" }},
		{"event 3 is in lane 2 of 2", func(t *Timeline) { t.Events[3].Lane = 2 }},
		{"event 3 is in lane -1 of 2", func(t *Timeline) { t.Events[3].Lane = -1 }},
		{`event 0 is of no kind: "sleep"`, func(t *Timeline) { t.Events[0].Kind = "sleep" }},
		{`event 0 is of no kind: "transaction"`, func(t *Timeline) { t.Events[0].Kind = transaction }},
		{"event 2, read, lasts from 3 to 3", func(t *Timeline) { t.Events[2].End = 3 }},
		{"event 2, read, lasts from 3 to 2", func(t *Timeline) { t.Events[2].End = 2 }},
		{"event 6, commit, lasts from 7 to 8", func(t *Timeline) { t.Events[6].End = 8 }},
		{"event 0, begin, lasts from -1 to -1", func(t *Timeline) { t.Events[0].Start, t.Events[0].End = -1, -1 }},
		{"event 7 begins at 5, after one at 6", func(t *Timeline) { t.Events[7].Start = 5 }},
		{"the points of held are not in order", func(t *Timeline) { t.Number.Points[0].At = 8 }},
		{"the points of held are not in order", func(t *Timeline) { t.Number.Points[0].At = -1 }},
	} {
		line := lostUpdate()
		c.damage(line)
		for _, err := range []error{
			line.WriteText(io.Discard, 80), line.WriteSVG(io.Discard), line.WriteHTML(io.Discard),
		} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
	}
	for name, line := range samples() {
		if err := line.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failing is a place that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestErrorsOfWritingAreTold(t *testing.T) {
	line := lostUpdate()
	for i, err := range []error{
		line.WriteText(failing{}, 80), line.WriteSVG(failing{}), line.WriteHTML(failing{}),
	} {
		if err != io.ErrShortWrite {
			t.Errorf("%d: %v", i, err)
		}
	}
}
