package timeline

import (
	"fmt"
	"strings"
	"testing"
)

// The plot says where things are in the picture that is written: every label of a step begins where the
// step does, and the frame is that of the drawing.
func TestPlot(t *testing.T) {
	list := &Timeline{
		Title: "two", Lanes: []string{"A", "B"}, Unit: Steps,
		Events: []Event{
			{Lane: 0, Start: 1, End: 2, Kind: Read, Label: "reads 1"},
			{Lane: 1, Start: 2, End: 3, Kind: Write, Label: "writes 2"},
			{Lane: 0, Start: 3, End: 3, Kind: Commit, Label: "COMMIT"},
		},
		Number: Series{Name: "n", Points: []Point{{0, 1}, {3, 2}}},
	}
	var picture strings.Builder
	if err := list.WriteSVG(&picture); err != nil {
		t.Fatal(err)
	}
	p := list.Plot()
	for step, label := range map[int64]string{1: "reads 1", 2: "writes 2", 3: "COMMIT"} {
		want := fmt.Sprintf(`x="%d" y=`, p.X(step)+inset)
		if !strings.Contains(picture.String(), want) {
			t.Errorf("nothing is at step %d, %s, %q", step, label, want)
		}
	}
	if !strings.Contains(picture.String(), fmt.Sprintf(`height="%d"`, p.Height)) {
		t.Errorf("the picture is not %d high", p.Height)
	}
	if frame := fmt.Sprintf("%dV%d", p.Top, p.Bottom); !strings.Contains(picture.String(), frame) {
		t.Errorf("no line goes from the top to the bottom: %s", frame)
	}
	if p.X(4) > p.Right || p.X(0) != p.Left {
		t.Errorf("time goes from %d to %d in %d to %d", p.X(0), p.X(4), p.Left, p.Right)
	}
}
