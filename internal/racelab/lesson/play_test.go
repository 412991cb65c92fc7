package lesson

import (
	"fmt"
	"strings"
	"testing"

	"jobledger/internal/racelab/timeline"
)

// scene is a script on a table of one number, which is to be 0 at first and want in the end.
func scene(want int64, actors, script string) Lesson {
	return Lesson{
		Name: "scene", Engines: everyEngine, Actors: strings.Fields(actors), Fixed: script,
		Tables: `CREATE TABLE n (x INTEGER NOT NULL CHECK (x >= 0)); INSERT INTO n VALUES (0);
			CREATE TABLE keys (k TEXT PRIMARY KEY);`,
		Questions: []Question{{"x", `SELECT x FROM n`, want}},
	}
}

// story is what the lanes did, a word per event: the lane, its kind, and where a wait ended.
func story(r Result) string {
	var words []string
	for _, e := range r.Timeline.Events {
		word := fmt.Sprintf("%s:%s", r.Timeline.Lanes[e.Lane], e.Kind)
		if e.Kind == "wait" {
			word += fmt.Sprintf("-%d", e.End)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// scenes are scripts, what they must end with, and what is to be seen on the way on either engine.
var scenes = []struct {
	name, actors, script string
	want                 int64
	sqlite, postgres     string
}{
	{
		name: "who waits does the rest when it has the lock", actors: "A B", want: 3,
		script: `
A BEGIN
A UPDATE n SET x = x + 1
B BEGIN
B UPDATE n SET x = x * 3
B COMMIT
A COMMIT`,
		sqlite:   "A:begin A:write B:wait-5 A:commit B:begin B:write B:commit",
		postgres: "A:begin A:write B:begin B:wait-6 A:commit B:write B:commit",
	},
	{
		name: "an actor waits twice", actors: "A B C", want: 3,
		script: `
C BEGIN
C INSERT INTO keys VALUES ('k')
A BEGIN
A UPDATE n SET x = x + 1
B BEGIN
B UPDATE n SET x = x * 3
B INSERT INTO keys VALUES ('k')
A COMMIT
C ROLLBACK
B COMMIT`,
		postgres: "C:begin C:write A:begin A:write B:begin B:wait-8 A:commit B:write B:wait-11 C:rollback " +
			"B:write B:commit",
	},
	{
		name: "a crash rolls back and lets others in", actors: "A B", want: 2,
		script: `
A BEGIN
A UPDATE n SET x = x + 1
B UPDATE n SET x = x + 2
A CRASH
A UPDATE n SET x = 100
B only if A failed`,
		sqlite:   "A:begin A:write B:wait-5 A:crash B:write B:read",
		postgres: "A:begin A:write B:wait-5 A:crash B:write B:read",
	},
	{
		name: "a rollback does", actors: "A B", want: 2,
		script: `
A BEGIN
A UPDATE n SET x = x + 1
B UPDATE n SET x = x + 2
A ROLLBACK
B only if A failed
B UPDATE n SET x = 100
A only if rows = 2`,
		sqlite:   "A:begin A:write B:wait-5 A:rollback B:write B:refused A:refused",
		postgres: "A:begin A:write B:wait-5 A:rollback B:write B:refused A:refused",
	},
	{
		name: "what is refused is rolled back and ends its actor", actors: "A B", want: 5,
		script: `
A BEGIN
A UPDATE n SET x = x + 1
A UPDATE n SET x = x - 2
A COMMIT
B only if A failed
B UPDATE n SET x = x + 5`,
		sqlite:   "A:begin A:write A:refused A:rollback B:read B:write",
		postgres: "A:begin A:write A:refused A:rollback B:read B:write",
	},
	{
		name: "what is tried may be refused", actors: "A", want: 4,
		script: `
A try UPDATE n SET x = x - 1
A UPDATE n SET x = x + 4`,
		sqlite:   "A:refused A:write",
		postgres: "A:refused A:write",
	},
	{
		name: "variables are each actor's own", actors: "A B", want: 12,
		script: `
A step = 5
B step = 7
A UPDATE n SET x = x + :step
B seen = SELECT x FROM n
B only if seen >= 5
B only if seen = 5
B UPDATE n SET x = (:seen + 7)
B only if rows = 1
B say done
B only if seen >= 6
B UPDATE n SET x = 100`,
		sqlite:   "A:write B:write A:write B:read B:read B:read B:write B:read B:call B:refused",
		postgres: "A:write B:write A:write B:read B:read B:read B:write B:read B:call B:refused",
	},
}

func TestScenes(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		for _, c := range scenes {
			want := map[string]string{SQLite: c.sqlite, Postgres: c.postgres}[s.name]
			if want == "" {
				continue // the engine has but one lock
			}
			t.Run(c.name, func(t *testing.T) {
				r := s.play(t, scene(c.want, c.actors, c.script), true)
				if got := story(r); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if r.Numbers[0].Value != c.want {
					t.Errorf("ended with %d, want %d", r.Numbers[0].Value, c.want)
				}
			})
		}
	})
}

// TestWatchedNumber: the points are where something was committed, also where it left the number as it was;
// and what writes the number is labelled with what it wrote.
func TestWatchedNumber(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		r := s.play(t, scene(4, "A", `
A BEGIN
A UPDATE n SET x = 3
A COMMIT
A UPDATE n SET x = 3
A UPDATE n SET x = 9 WHERE x = 8
A seen = SELECT x FROM n
A UPDATE n SET x = :seen + 1
A INSERT INTO keys VALUES ('k')`), true)
		const want = "[{0 0} {3 3} {4 3} {7 4} {8 4}]"
		if got := fmt.Sprint(r.Timeline.Number.Points); got != want || *r.Timeline.Number.Want != 4 {
			t.Errorf("got %s of %d, want %s", got, *r.Timeline.Number.Want, want)
		}
		var labels []string
		for _, e := range r.Timeline.Events {
			if e.Kind == timeline.Write {
				labels = append(labels, e.Label)
			}
		}
		const wrote = "x = 3; x = 3; UPDATE n, 0 rows; x = 3 + 1; INSERT keys, 1 row"
		if got := strings.Join(labels, "; "); got != wrote {
			t.Errorf("got %s, want %s", got, wrote)
		}
	})
}

// TestScriptsThatDoNotWork: each is an error that says who did what, and no result.
func TestScriptsThatDoNotWork(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		for script, want := range map[string]string{
			"A BEGIN\nA UPDATE n SET x = 1\nB UPDATE n SET x = 2": `^lesson scene: B waits for ever at UPDATE n`,
			"A BEGIN\nA UPDATE n SET x = 1\nB UPDATE n SET x = 2\nC UPDATE n SET x = 3": `^lesson scene: C: ` +
				`UPDATE n SET x = 3: it would wait, and B waits already$`,
			"A UPDATE nothing SET x = 1":        `^lesson scene: A: UPDATE nothing SET.*: .*nothing`,
			"A a, b = SELECT x FROM n":          `gave 1 numbers for a, b$`,
			"A a = SELECT x FROM n WHERE x = 9": `gave 0 numbers for a$`,
			"A jump":                            `^lesson scene: "A jump": nobody can do that$`,
		} {
			r, err := s.try(t, scene(0, "B A C", script), true)
			if err == nil || !matches(want, err) || len(r.Numbers) != 0 {
				t.Errorf("%q: got %v and %d numbers, want %s", script, err, len(r.Numbers), want)
			}
		}
	})
}
