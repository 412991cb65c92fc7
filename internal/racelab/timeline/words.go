package timeline

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean replaces what neither a terminal nor XML may get from outside: control and other invisible
// characters but line breaks, and bytes that are no text.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || unicode.IsGraphic(r) && r != '\uFFFE' && r != '\uFFFF':
			return r
		case r == '\t':
			return ' '
		}
		return utf8.RuneError
	}, s)
}

// cells is how many columns of a terminal, or characters of a fixed width, a line takes.
func cells(s string) (n int) {
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	if unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) ||
		r >= 0x3000 && r < 0x3040 || r >= 0xFF01 && r <= 0xFF60 || r >= 0x1F000 {
		return 2
	}
	return 1
}

// cut splits a line so that its head takes no more than n cells, but at least one character.
func cut(s string, n int) (head, tail string) {
	used := 0
	for i, r := range s {
		if used += runeCells(r); used > n && i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// shorten makes a line fit into n cells, with an ellipsis for what is missing. Where too little would be
// left to understand, it gives nothing.
func shorten(s string, n int) string {
	const shortest = 6
	switch {
	case cells(s) <= n:
		return s
	case n < shortest:
		return ""
	}
	head, _ := cut(s, n-1)
	return strings.TrimRight(head, " ") + "…"
}

// line is text as one line, with single spaces.
func line(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

// Wrap breaks text into lines of at most n cells: where it has line breaks, between words, and inside
// words that are longer than a line. Lines that it had to begin are indented by hang.
func Wrap(s string, n int, hang string) (lines []string) {
	for _, line := range strings.Split(clean(s), "\n") {
		indent := ""
		for line != "" {
			head, tail := cut(line, max(1, n-len(indent)))
			if i := strings.LastIndexByte(head, ' '); tail != "" && tail[0] != ' ' && i > 0 {
				head, tail = line[:i], line[i:]
			}
			lines = append(lines, indent+strings.TrimRight(head, " "))
			line, indent = strings.TrimLeft(tail, " "), hang
		}
	}
	return lines
}

// clock shows a time as a ruler of the unit does: the number of a step, or milliseconds.
func (u Unit) clock(at int64) string {
	if u == Steps {
		return fmt.Sprint(at)
	}
	return fmt.Sprintf("%d.%03d", at/1000, at%1000)
}

// heading is what a column of times is called.
func (u Unit) heading() string {
	if u == Steps {
		return "step"
	}
	return "ms"
}
