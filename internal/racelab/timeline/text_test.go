package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// text is what WriteText writes, and its lines.
func text(t *testing.T, line *Timeline, width int) (string, []string) {
	t.Helper()
	var b strings.Builder
	if err := line.WriteText(&b, width); err != nil {
		t.Fatal(err)
	}
	return b.String(), strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestColumns(t *testing.T) {
	const want = `STEP  T1                            T2                            HELD
   0                                                                 0
   1  BEGIN
   2                                BEGIN
   3  SELECT held FROM balances
        WHERE owner = 'alice'
      -> 0
   4                                SELECT held FROM balances
                                      WHERE owner = 'alice'
                                    -> 0
   5  UPDATE balances SET held =
        205 WHERE owner = 'alice'
      -> 1 row
   6                                waits for the row that T1
                                      has locked
   7  COMMIT                        |                              205
      -> ok                         |
   8                                UPDATE balances SET held =
                                      205 WHERE owner = 'alice'
                                    -> 1 row
   9                                COMMIT
                                    -> ok
`
	if got, _ := text(t, lostUpdate(), 70); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Columns stand beside each other for two actors and for three, and where there is no room for more of
// them, each line names its actor.
func TestTextFits(t *testing.T) {
	for _, c := range []struct {
		actors, width int
		columns       bool
	}{
		{1, 80, true}, {2, 80, true}, {3, 80, true}, {8, 80, false}, {16, 80, false}, {8, 200, true},
		{2, 40, false},
	} {
		line := lostUpdate()
		line.Lanes = nil
		for i := range c.actors {
			line.Lanes = append(line.Lanes, fmt.Sprintf("actor-%d", i+1))
		}
		var all []Event
		for lane := range c.actors {
			for _, e := range line.Events {
				e.Lane = lane
				all = append(all, e)
			}
		}
		slices.SortStableFunc(all, func(a, b Event) int { return int(a.Start - b.Start) })
		line.Events = all
		got, lines := text(t, line, c.width)
		for i, l := range lines {
			if cells(l) > c.width || strings.TrimRight(l, " ") != l {
				t.Errorf("%d actors in %d columns: line %d is %q", c.actors, c.width, i+1, l)
			}
		}
		if beside := strings.HasPrefix(lines[0], "STEP  actor-1"); beside != c.columns {
			t.Errorf("%d actors in %d columns: %s", c.actors, c.width, lines[0])
		}
		if n := strings.Count(strings.Join(strings.Fields(got), ""), "held=205"); n != 2*c.actors {
			t.Errorf("%d actors in %d columns: %d of all updates in\n%s", c.actors, c.width, n, got)
		}
	}
}

func TestListNamesTheActors(t *testing.T) {
	line := lostUpdate()
	line.Unit = Micros
	const want = `   MS  ACTOR  WHAT                  HELD
0.000                                  0
0.001  T1     BEGIN
0.002  T2     BEGIN
0.003  T1     SELECT held FROM
                balances WHERE
                owner = 'alice'
              -> 0
`
	got, _ := text(t, line, 40)
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s", got)
	}
}

func TestTextIsSafe(t *testing.T) {
	line := lostUpdate()
	line.Lanes[0], line.Number.Name, line.Events[0].Label = "T\x1b[1m1", "a\x07b", "x\x1b]0;y\x07"
	got, _ := text(t, line, 80)
	if strings.ContainsAny(got, "\x1b\x07") {
		t.Errorf("%q", got)
	}
}
