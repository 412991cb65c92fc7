package lesson

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// verb is what a step does. The first five are statements, which the database answers; the others
// happen in the actor's program.
type verb int

const (
	begins verb = iota
	commits
	rollsBack
	reads
	writes
	sets
	checks
	says
	crashes
)

// step is one line of a script.
type step struct {
	lane   int // the actor
	verb   verb
	text   string   // the SQL, with ? for each variable; or the words that are said
	given  []string // the variables that the ? stand for
	into   []string // the variables that a read or a set fills
	test   condition
	unseen bool // the program goes on, whatever the answer is
}

// condition compares what an actor knows.
type condition struct{ left, operator, right string }

// failed is the operator, without a right side, that asks for the end of another actor.
const failed = "failed"

// parse reads a script: a line per step, which begins with the actor's name. A line that begins with a
// space goes on with the step before. An actor can do this:
//
//	BEGIN                  open a transaction that writes: on SQLite BEGIN IMMEDIATE
//	BEGIN DEFERRED         as it says; only on SQLite
//	COMMIT, ROLLBACK       end it
//	a, b = SELECT ...      read one row of numbers into its own variables
//	INSERT, UPDATE ...     write; :a after a space or ( is the value of its variable a
//	a = 1                  set a variable, in its memory alone
//	only if a >= 205       go on, or else roll back and stop; rows is how many its last write changed
//	only if T1 failed      go on only if T1 was refused, or crashed
//	say WORDS              answer somebody outside
//	CRASH                  end as a process does that is killed: its connection is gone
//	try COMMIT             what comes after try is done, and its refusal is not looked at
//
// A variable that was never set is 0. A statement that is refused rolls its actor back and stops it.
func parse(actors []string, script string) ([]step, error) {
	var list []step
	for _, line := range strings.Split(unfold(script), "\n") {
		name, words, _ := strings.Cut(line, " ")
		s, err := parseStep(strings.TrimSpace(words))
		s.lane = slices.Index(actors, name)
		if err == nil && s.lane < 0 {
			err = fmt.Errorf("%q is no actor", name)
		}
		if err == nil && s.test.operator == failed && !slices.Contains(actors, s.test.left) {
			err = fmt.Errorf("%q is no actor", s.test.left)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// unfold joins lines that go on, and leaves single spaces between words.
func unfold(script string) string {
	script = regexp.MustCompile(`\n[ \t]+`).ReplaceAllString(strings.TrimSpace(script), " ")
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(script, " ")
}

var (
	statementVerbs = map[string]verb{
		"BEGIN": begins, "COMMIT": commits, "ROLLBACK": rollsBack, "INSERT": writes, "UPDATE": writes,
	}
	assignment = regexp.MustCompile(`^(\w+(?:, \w+)*) = (.+)$`)
	variable   = regexp.MustCompile(`( |\():(\w+)`)
	comparison = regexp.MustCompile(`^(\w+) (=|>=) (\w+)$`)
	fate       = regexp.MustCompile(`^(\S+) failed$`)
	number     = regexp.MustCompile(`^\d+$`)
)

func parseStep(text string) (s step, err error) {
	first, rest, _ := strings.Cut(text, " ")
	if v, ok := statementVerbs[first]; ok {
		return statement(v, text), nil
	}
	switch first {
	case "try":
		s, err = parseStep(rest)
		s.unseen = true
		return s, err
	case "say":
		return step{verb: says, text: rest}, nil
	case "CRASH":
		return step{verb: crashes, text: text}, nil
	case "only":
		return parseCheck(strings.TrimPrefix(rest, "if "))
	}
	m := assignment.FindStringSubmatch(text)
	switch {
	case m != nil && strings.HasPrefix(m[2], "SELECT "):
		s = statement(reads, m[2])
		s.into = strings.Split(m[1], ", ")
		return s, nil
	case m != nil && number.MatchString(m[2]):
		return step{verb: sets, text: m[2], into: []string{m[1]}}, nil
	}
	return step{}, fmt.Errorf("nobody can do that")
}

// statement makes a step of SQL in which :a stands for the actor's variable a.
func statement(v verb, text string) step {
	s := step{verb: v, text: variable.ReplaceAllString(text, "${1}?")}
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		s.given = append(s.given, m[2])
	}
	return s
}

func parseCheck(text string) (step, error) {
	if m := comparison.FindStringSubmatch(text); m != nil {
		return step{verb: checks, text: text, test: condition{m[1], m[2], m[3]}}, nil
	}
	if m := fate.FindStringSubmatch(text); m != nil {
		return step{verb: checks, text: text, test: condition{left: m[1], operator: failed}}, nil
	}
	return step{}, fmt.Errorf("%q is no condition", text)
}

// values are what an actor's program has in its variables.
type values map[string]int64

// of gives the value of a variable, or of a number.
func (v values) of(word string) int64 {
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n
	}
	return v[word]
}

// holds compares two words.
func (v values) holds(c condition) bool {
	left, right := v.of(c.left), v.of(c.right)
	return left == right || c.operator == ">=" && left > right
}

// args are the values that a statement is given.
func (v values) args(s step) (args []any) {
	for _, name := range s.given {
		args = append(args, v[name])
	}
	return args
}

// clause begins where a statement gets a new line.
var clause = regexp.MustCompile(` (SET|FROM|WHERE|AND|VALUES) `)

// fill is the statement as the database sees it, with each value in its place, in lines.
func (v values) fill(s step) string {
	text := clause.ReplaceAllString(s.text, "\n$1 ")
	for _, name := range s.given {
		text = strings.Replace(text, "?", strconv.FormatInt(v[name], 10), 1)
	}
	return text
}
