//go:build unix

package main

import "strings"

// The verdicts on a value.
const (
	takes   = iota
	refuses // INVALID, of the field
	garbles // INVALID too; a JSON document with it is none, or can be read in two ways
)

// boundary is a value at, or beyond, the edge of what a field takes.
type boundary struct {
	verdict int
	text    string
}

// amounts are what a field of credits takes: digits, 1 to 2^53-1.
var amounts = []boundary{
	{takes, "9007199254740991"},
	{refuses, "0"}, {refuses, "-1"}, {refuses, "-0"}, {refuses, "010"}, {refuses, "00"}, {refuses, "1e3"},
	{refuses, "5.0"}, {refuses, "0x10"}, {refuses, "9007199254740992"}, {refuses, "18446744073709551617"},
	{refuses, ""}, {refuses, " 5"}, {refuses, "5 "}, {refuses, "+5"}, {refuses, "1_000"}, {refuses, "1,000"},
	{refuses, "٣"}, {refuses, "NaN"}, {refuses, "null"}, {refuses, "true"}, {refuses, strings.Repeat("9", 400)},
}

// counts are amounts of which there may be none.
var counts = append([]boundary{{takes, "0"}}, without(amounts, "0")...)

// attempts are numbers from 1, of which only the first can be meant here.
var attempts = append([]boundary{{takes, "1"}}, without(amounts, "9007199254740991")...)

// ids are what names an owner or a job; handles are the same for what costs more to prepare, with fewer that
// are taken.
var ids = append([]boundary{
	{takes, "x"}, {takes, "."}, {takes, ".."}, {takes, "-x"}, {takes, "%00"}, {takes, "a?b#c&d=e"},
	{takes, "' OR 1=1 --"}, {takes, strings.Repeat("é", 127)},
}, handles...)

var handles = []boundary{
	{takes, strings.Repeat("x", 255)}, {takes, "🦊 é\u0301"}, {takes, "a/b"}, {takes, "a\u202eb"},
	{refuses, ""}, {refuses, strings.Repeat("x", 256)}, {refuses, strings.Repeat("é", 128)}, {refuses, "a\x00b"},
	{refuses, "a\nb"}, {refuses, "a\x1b[2Jb"}, {refuses, "a\u0085b"}, {refuses, " a"}, {refuses, "a "},
	{refuses, "\u00a0a"}, {refuses, "a\u2003"}, {refuses, " "},
	{garbles, "a\xff"}, {garbles, "\xc0\xaf"}, {garbles, "\xed\xa0\x80"},
}

var times = []boundary{
	{takes, "9999-12-31T23:59:59Z"}, {takes, "9999-12-31T23:59:59.999999999Z"},
	{takes, "2999-01-01T00:00:00+14:00"},
	{refuses, "1969-12-31T23:59:59Z"}, {refuses, "1970-01-01T00:00:00+00:01"},
	{refuses, "10000-01-01T00:00:00Z"},
	{refuses, "9999-12-31T23:59:59-00:01"}, {refuses, "0000-01-01T00:00:00Z"}, {refuses, "2999-02-29T00:00:00Z"},
	{refuses, "2999-01-01"}, {refuses, "2999-01-01T00:00:00"}, {refuses, "2999-01-01 00:00:00Z"},
	{refuses, "2999-01-01T24:00:00Z"}, {refuses, "9999-12-31T23:59:60Z"}, {refuses, " 2999-01-01T00:00:00Z"},
	{refuses, "32503680000"}, {refuses, "soon"}, {refuses, "-1h"}, {refuses, "106752d"}, {refuses, ""},
}

var texts = []boundary{
	{takes, "x"}, {takes, strings.Repeat("x", 1024)}, {takes, strings.Repeat("é", 512)}, {takes, "a\nb"},
	{takes, "a\u202eb"}, {takes, " a "},
	{refuses, strings.Repeat("x", 1025)}, {refuses, strings.Repeat("é", 513)}, {refuses, "a\x00b"},
	{garbles, "a\xff"},
}

// needed are texts that may not be left empty.
var needed = append([]boundary{{refuses, ""}}, texts...)

var metadata = []boundary{
	{takes, `{}`}, {takes, `{"a":1e3,"b":[null,{}],"🦊":"\u0000"}`}, {takes, filled(4096)},
	{takes, nested(31)},
	{takes, `{"a":{"b":1},"b":1}`},
	{refuses, filled(4097)}, {refuses, `[1]`}, {refuses, `null`}, {refuses, `5`}, {refuses, `"x"`},
	{refuses, ``},
	{refuses, ` `}, {garbles, nested(32)}, {garbles, nested(400)}, {garbles, `{"a":1,"a":2}`},
	{garbles, `{"a":1,"A":2}`}, {garbles, `{"a":{"b":1,"b":1}}`}, {garbles, `{"a":"\ud800"}`},
	{garbles, `{"a":1} {}`},
	{garbles, `{"a":1`}, {garbles, `{a:1}`}, {garbles, `{"a":01}`}, {garbles, "{\"a\":\"\xff\"}"},
}

// filled is an object of so many bytes.
func filled(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }

// nested is an object that is so deep.
func nested(deep int) string { return strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep) }

// refusedOf are the values of a list that a field does not take, for one that takes of the others only what
// is there.
func refusedOf(list []boundary) (bad []boundary) {
	for _, v := range list {
		if v.verdict != takes {
			bad = append(bad, v)
		}
	}
	return bad
}

func without(list []boundary, text string) (rest []boundary) {
	for _, v := range list {
		if v.text != text {
			rest = append(rest, v)
		}
	}
	return rest
}
