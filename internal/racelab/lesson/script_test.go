package lesson

import (
	"reflect"
	"regexp"
	"testing"
)

func matches(pattern string, err error) bool {
	return regexp.MustCompile(pattern).MatchString(err.Error())
}

func TestParse(t *testing.T) {
	for line, want := range map[string]step{
		"B BEGIN":          {lane: 1, verb: begins, text: "BEGIN"},
		"A BEGIN DEFERRED": {verb: begins, text: "BEGIN DEFERRED"},
		"A COMMIT":         {verb: commits, text: "COMMIT"},
		"A try COMMIT":     {verb: commits, text: "COMMIT", unseen: true},
		"A ROLLBACK":       {verb: rollsBack, text: "ROLLBACK"},
		"A CRASH":          {verb: crashes, text: "CRASH"},
		"A say 200 OK":     {verb: says, text: "200 OK"},
		"A a = 12":         {verb: sets, text: "12", into: []string{"a"}},
		"A a, b = SELECT x, y\n  FROM n": {
			verb: reads, text: "SELECT x, y FROM n", into: []string{"a", "b"}},
		"A UPDATE n SET x = :a - 1, y = (:b) WHERE z = 'job:c'": {
			verb: writes, text: "UPDATE n SET x = ? - 1, y = (?) WHERE z = 'job:c'", given: []string{"a", "b"}},
		"A only if a >= 7": {verb: checks, text: "a >= 7", test: condition{"a", ">=", "7"}},
		"A only if B failed": {
			verb: checks, text: "B failed", test: condition{left: "B", operator: failed}},
	} {
		steps, err := parse([]string{"A", "B"}, "\n"+line)
		if err != nil || len(steps) != 1 || !reflect.DeepEqual(steps[0], want) {
			t.Errorf("%q: %v, got\n%+v, want\n%+v", line, err, steps, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for script, want := range map[string]string{
		"":                     `nobody can do that$`,
		"A":                    `^"A": nobody can do that$`,
		"C COMMIT":             `^"C COMMIT": "C" is no actor$`,
		"A COMMIT\nA DELETE x": `^"A DELETE x": nobody can do that$`,
		"A a = b":              `nobody can do that$`,
		"A only if a < 7":      `"a < 7" is no condition$`,
		"A only if C failed":   `"C" is no actor$`,
		"A try nothing":        `nobody can do that$`,
	} {
		if steps, err := parse([]string{"A", "B"}, script); err == nil || !matches(want, err) {
			t.Errorf("%q: got %v, %v, want %s", script, steps, err, want)
		}
	}
}

func TestCondition(t *testing.T) {
	v := values{"a": 7}
	for text, want := range map[string]bool{
		"a = 7": true, "a = 8": false, "a = 6": false, "a >= 7": true, "a >= 6": true, "a >= 8": false,
		"b = 0": true, "b >= 1": false, "8 >= a": true,
	} {
		s, err := parseCheck(text)
		if err != nil || v.holds(s.test) != want {
			t.Errorf("%s is %v: %v", text, !want, err)
		}
	}
}
