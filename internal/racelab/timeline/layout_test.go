package timeline

import (
	"slices"
	"strings"
	"testing"
)

// overlap tells whether two boxes share more than their edges.
func overlap(a, b box) bool {
	return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom()
}

func TestNothingIsDrawnOverALabel(t *testing.T) {
	for name, line := range samples() {
		s := line.layout()
		page := box{0, 0, s.width, s.height}
		for i, l := range s.labels {
			if l.x < padding || l.right() > page.right() || l.y < padding || l.bottom() > page.bottom() {
				t.Errorf("%s: %q leaves the picture: %v", name, l.text, l.box)
			}
			for _, other := range s.labels[:i] {
				if overlap(l.box, other.box) {
					t.Errorf("%s: %q and %q overlap: %v, %v", name, l.text, other.text, l.box, other.box)
				}
			}
			for _, f := range s.figures {
				if overlap(l.box, f.box) {
					t.Errorf("%s: %q is under a %s: %v, %v", name, l.text, f.kind, l.box, f.box)
				}
			}
		}
	}
}

// Every event has its place: bars of a lane lie side by side, marks of a kind do not hide each other,
// and what begins later is further right.
func TestFiguresAreApart(t *testing.T) {
	for name, line := range samples() {
		s := line.layout()
		for i, f := range s.figures {
			isBar, _ := f.kind.isBar()
			if f.w < 2 || f.x < padding || f.right() > s.width-padding/2 || f.bottom() > s.height-padding {
				t.Errorf("%s: a %s at %v", name, f.kind, f.box)
			}
			for _, other := range s.figures[:i] {
				otherBar, _ := other.kind.isBar()
				steps := line.Unit == Steps && f.kind != transaction && other.kind != transaction
				if (isBar && otherBar || f.kind == other.kind || steps) && overlap(f.box, other.box) {
					t.Errorf("%s: a %s at %v is over a %s at %v", name, f.kind, f.box, other.kind, other.box)
				}
			}
		}
	}
}

// Steps are as wide as their labels need, so that none is shortened; nor are the number's values.
func TestStepsHaveRoomForTheirLabels(t *testing.T) {
	for name, line := range samples() {
		if line.Unit != Steps {
			continue
		}
		s := line.layout()
		count := make(map[string]int)
		for _, l := range s.labels {
			count[l.text]++
		}
		for _, e := range line.Events {
			if count[e.Label]--; e.Label != "" && count[e.Label] < 0 {
				t.Errorf("%s: %q is not there as often as it should", name, e.Label)
			}
		}
		for i, p := range line.Number.Points {
			if i+1 < len(line.Number.Points) && line.Number.Points[i+1].At == p.At {
				continue // it changes again in the same step
			}
			if count[decimal(p.Value)]--; count[decimal(p.Value)] < 0 {
				t.Errorf("%s: the value %d is not there", name, p.Value)
			}
		}
	}
}

func TestLongLabelsAreShortened(t *testing.T) {
	line := lostUpdate()
	line.Events[4].Label = strings.Repeat("UPDATE balances ", 9)
	line.Lanes[1] = strings.Repeat("T2 ", 20)
	var found []string
	for _, l := range line.layout().labels {
		if strings.HasSuffix(l.text, "…") {
			found = append(found, l.text)
		}
	}
	if len(found) != 2 || cells(found[0]) > 24 && cells(found[1]) > 24 {
		t.Errorf("shortened: %q", found)
	}
	for _, f := range line.layout().figures {
		if strings.Contains(f.tooltip, "step 5") && !strings.Contains(f.tooltip, "WHERE owner") {
			t.Errorf("the tooltip is %q", f.tooltip)
		}
	}
}

// A commit by the clock is the end of its bar, and stands inside it.
func TestCommitIsInsideItsBar(t *testing.T) {
	line := racing(1, 1, 90_000)
	line.Events[1].Kind = Commit
	figures := line.layout().figures
	bar, mark := figures[0], figures[1]
	if bar.kind != Call || mark.kind != Commit || mark.right() != bar.right() || mark.x < bar.x {
		t.Errorf("a %s at %v, a %s at %v", bar.kind, bar.box, mark.kind, mark.box)
	}
}

// What a crowded lane cannot show is in the tooltips: nothing is left out.
func TestTooltipsTellEverything(t *testing.T) {
	for name, line := range samples() {
		told := 0
		for _, f := range line.layout().figures {
			told += strings.Count(f.tooltip, ", "+line.Unit.heading()+" ")
		}
		if told != len(line.Events) {
			t.Errorf("%s: %d of %d events are told of", name, told, len(line.Events))
		}
	}
}

func TestNumberGoesWhereItShould(t *testing.T) {
	line := lostUpdate()
	s := line.layout()
	commit := box{}
	for _, f := range s.figures {
		if strings.Contains(f.tooltip, "step 7") {
			commit = f.box
		}
	}
	var xs, ys []int
	for _, p := range s.number {
		xs, ys = append(xs, p.x), append(ys, p.y)
	}
	// Right to left, and lower values further down.
	if !slices.Equal(xs, []int{s.plot.right(), commit.middle(), commit.middle(), s.plot.x}) {
		t.Errorf("the corners are at %v; the commit at %d, the plot %v", xs, commit.middle(), s.plot)
	}
	half := (s.want + ys[3] + 1) / 2 // 205 is half way from 0 to 410
	if !slices.Equal(ys, []int{half, half, ys[3], ys[3]}) || s.want >= half {
		t.Errorf("the heights are %v, that of the right value %d", ys, s.want)
	}
	line.Unit, line.Number.Points[1].At = Micros, line.end() // a change that is the last thing to happen
	if s := line.layout(); s.number[0].x != s.plot.right() || s.number[0].y == s.number[2].y {
		t.Errorf("the last change is not seen: %v", s.number)
	}
	for _, c := range []struct {
		want   *int64
		ending string
	}{
		{new(int64(410)), "held at the end: 205 (wrong; right is 410)"},
		{new(int64(205)), "held at the end: 205 (right)"},
		{nil, "held at the end: 205"},
	} {
		line.Number.Want = c.want
		if got := line.Number.ending(); got != c.ending || !strings.HasSuffix(line.description(), ". "+c.ending) {
			t.Errorf("%q, want %q in %q", got, c.ending, line.description())
		}
	}
}

// What is said of the lowest value stands above the rule under the chart, and not on it.
func TestVerdictIsAboveTheRule(t *testing.T) {
	line := lostUpdate()
	line.Number.Points[1].Value = -7
	s := line.layout()
	for _, l := range s.labels {
		if l.text == "wrong: -7" {
			if l.bottom()+2 > s.plot.bottom() || l.y > s.number[0].y {
				t.Errorf("%q at %v, the line at %v, the rule at %d", l.text, l.box, s.number[0], s.plot.bottom())
			}
			return
		}
	}
	t.Errorf("no verdict in %v", s.labels)
}

func TestCrashEndsALine(t *testing.T) {
	line := lostUpdate()
	whole := line.layout().lives
	line.Events[6].Kind = Crash
	ended := line.layout().lives
	if whole[0].w != whole[1].w || ended[0].w >= whole[0].w || ended[1].w != whole[1].w {
		t.Errorf("lines of %v became %v", whole, ended)
	}
}

func TestTransactionsAreUnderlined(t *testing.T) {
	spans := func(line *Timeline) (n int) {
		for _, f := range line.layout().figures {
			if f.kind == transaction && f.tooltip == "" && f.w > barMin {
				n++
			}
		}
		return n
	}
	line := lostUpdate()
	if n := spans(line); n != 2 {
		t.Errorf("%d transactions, want 2", n)
	}
	line.Events[8].Kind = Refused // its end is not known
	if n := spans(line); n != 1 {
		t.Errorf("%d transactions, want 1", n)
	}
}

func TestRulerIsRound(t *testing.T) {
	for _, c := range []struct{ span, n, want int64 }{
		{1, 10, 1}, {10, 10, 1}, {11, 10, 2}, {90_000, 10, 10_000}, {260_000, 10, 50_000}, {1 << 60, 10, 2e17},
	} {
		if got := round(c.span, c.n); got != c.want {
			t.Errorf("%d in %d: %d, want %d", c.span, c.n, got, c.want)
		}
	}
	var ticks []string
	for _, tick := range racing(2, 2, 40_000).layout().ruler.ticks {
		ticks = append(ticks, tick.text)
	}
	if got := strings.Join(ticks, " "); got != "0 5 10 15 20 25" {
		t.Errorf("ticks %s", got)
	}
}
