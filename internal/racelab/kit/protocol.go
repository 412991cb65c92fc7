package kit

import (
	"fmt"
	"slices"
	"strings"
)

// DirVariable names the environment variable that tells a process of the program where its state is: a
// directory of one scenario, empty at first.
const DirVariable = "LAB_DIR"

// An Ability is something that a program names in its answer to hello because it can do it.
type Ability struct{ Name, Means string }

// Abilities lists all of them. A program has at least one of the first two, which are the modes.
var Abilities = []Ability{
	{"charge", "jobs in mode charge: the cost is used at creation, and returned unless the job completes"},
	{"hold", "jobs in mode hold: the cost is held at creation, then used or returned"},
	{"canceled", "notify takes the outcome canceled"},
	{"keys", "a grant's key never grants twice"},
	{"attempts", "the request submit, and notify with the number of an attempt"},
	{"deadline", "the requests time and sweep, and create with a deadline"},
	{"expiry", "the request time, and grant with an end"},
	{"lose", "the requests lose and restore, which break an owner's balance and mend it"},
	{"stray", "the request stray, which puts a refund of an open job into the books"},
}

const modesCount = 2

const helloRequest = "hello"

// The first words of answers.
const (
	okWord      = "ok"
	wonWord     = "won"
	lostWord    = "lost"
	refusedWord = "refused"
	busyWord    = "busy"
)

var answerWords = []string{okWord, wonWord, lostWord, refusedWord, busyWord}

// fault is what is wrong with the program, in words for its author.
type fault struct {
	text  string
	ended bool // a process ended when it was to answer
}

// Error gives the words.
func (f *fault) Error() string { return f.text }

func faultf(format string, args ...any) error { return &fault{text: fmt.Sprintf(format, args...)} }

// parseHello reads the abilities from the answer to hello.
func parseHello(line string) ([]string, error) {
	wrong := func(what string) ([]string, error) {
		return nil, faultf("it answered %s with %s, %s", quote(helloRequest), quote(line), what)
	}
	words := strings.Fields(line)
	if words[0] != okWord {
		return wrong("expected ok and what it can do")
	}
	abilities, modes := words[1:], 0
	for i, word := range abilities {
		at := slices.IndexFunc(Abilities, func(a Ability) bool { return a.Name == word })
		switch {
		case at < 0:
			return wrong("and " + quote(word) + " is no ability")
		case slices.Contains(abilities[:i], word):
			return wrong("which names " + word + " twice")
		case at < modesCount:
			modes++
		}
	}
	if modes == 0 {
		return wrong("which names neither " + Abilities[0].Name + " nor " + Abilities[1].Name)
	}
	return abilities, nil
}

// checkAnswer refuses a line that is no answer.
func checkAnswer(line string) error {
	words := strings.Fields(line)
	if len(words) == 0 || !slices.Contains(answerWords, words[0]) {
		return fmt.Errorf("an answer begins with %s or %s",
			strings.Join(answerWords[:len(answerWords)-1], ", "), busyWord)
	}
	return nil
}

// fits reports whether an answer begins with the expected words, or those of one of the alternatives
// that | separates. Words after them are for people.
func fits(answer, expected string) bool {
	got := strings.Fields(answer)
	for alternative := range strings.SplitSeq(expected, "|") {
		want := strings.Fields(alternative)
		if len(got) >= len(want) && slices.Equal(got[:len(want)], want) {
			return true
		}
	}
	return false
}

// quote shows what was said in a sentence, on one line, not all of it if it is long.
func quote(text string) string {
	const shown = 80
	if len(text) > shown {
		return fmt.Sprintf("%q...", text[:shown])
	}
	return fmt.Sprintf("%q", text)
}

// either shows what is expected in a sentence.
func either(expected string) string { return strings.ReplaceAll(quote(expected), "|", `" or "`) }
