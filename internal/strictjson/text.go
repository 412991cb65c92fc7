package strictjson

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Fold gives a name in the one form that it shares with every name that a reader without regard to
// case takes for the same.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next // the smallest of those that fold into each other
			}
			r = next
		}
	}, name)
}

// LoneSurrogate finds an escape in a JSON text that is one half of a surrogate pair without the other.
// It stands for no character, and would be read as the replacement character.
func LoneSurrogate(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if first := escaped(text[i:]); utf16.IsSurrogate(first) {
			i += 6
			if utf16.DecodeRune(first, escaped(text[min(i, len(text)):])) == utf8.RuneError {
				return true
			}
			i += 5
			continue
		}
		i++ // past what is escaped
	}
	return false
}

// escaped gives the code unit of the escape that a text begins with, or 0.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// path is where a value is in a document. Its text is made only for an error: a long name with a
// million elements below it would otherwise be copied a million times.
type path struct {
	above *path
	name  string
}

// in gives the path of a member or element of what is at p.
func (p *path) in(name string) *path { return &path{above: p, name: name} }

// String gives the path as a quoted JSON pointer that fits on a line, whatever the names are.
func (p *path) String() string {
	if p == nil {
		return "the document"
	}
	at := ""
	for ; p != nil; p = p.above {
		at = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(shorten(p.name)) + at
	}
	return strconv.Quote(shorten(at))
}

// shorten cuts a text to what a message has room for.
func shorten(text string) string {
	const max = 80
	if len(text) > max {
		return text[:max] + "..."
	}
	return text
}
