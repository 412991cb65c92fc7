package lesson

import (
	"fmt"
	"io"
	"strings"

	"jobledger/internal/racelab/timeline"
)

// WriteText shows a result to a class: what there is to see, what happened step by step, how it ended,
// and what stops it. Lines are at most width columns long where the words allow it.
func (r *Result) WriteText(w io.Writer, width int) error {
	var b strings.Builder
	shows := r.Shows
	if r.Fixed {
		shows = "The mistake that is not made here: " + shows
	}
	fmt.Fprintf(&b, "%s\nPlayed on %s, in a scratch database that is deleted.\n\n%s\n\n",
		r.Timeline.Title, titles[r.Engine], paragraph(shows, width))
	if err := r.Timeline.WriteText(&b, width); err != nil {
		return err
	}
	b.WriteString("\n" + r.numbers())
	fmt.Fprintf(&b, "\n%s\n", paragraph("What stops it: "+r.Guard, width))
	fmt.Fprintf(&b, "In the product: %s\n", r.Function)
	if !r.Fixed {
		fmt.Fprintf(&b, "With it: %s\n", strings.Replace(r.Timeline.Caption, r.Lesson, r.Lesson+" --fixed", 1))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// numbers is a table of how the lesson ended.
func (r *Result) numbers() string {
	wide := len("NUMBER")
	for _, n := range r.Numbers {
		wide = max(wide, len(n.Name))
	}
	text := fmt.Sprintf("%-*s  ENDED AT  RIGHT\n", wide, "NUMBER")
	for _, n := range r.Numbers {
		verdict := "  WRONG"
		if n.OK {
			verdict = ""
		}
		text += fmt.Sprintf("%-*s  %8d  %5d%s\n", wide, n.Name, n.Value, n.Want, verdict)
	}
	return text
}

// paragraph breaks text into lines.
func paragraph(text string, width int) string {
	return strings.Join(timeline.Wrap(text, width, ""), "\n")
}
