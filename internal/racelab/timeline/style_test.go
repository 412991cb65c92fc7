package timeline

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
)

// luminance is the relative luminance of a color, as the guidelines for accessible content define it.
func luminance(t *testing.T, hex string) (sum float64) {
	t.Helper()
	var rgb [3]int
	if _, err := fmt.Sscanf(hex, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		t.Fatalf("%s: %v", hex, err)
	}
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(rgb[i]) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Text stands out from the paper by 4.5 to 1 at least, and the shapes by 3 to 1, in the light and in the
// dark.
func TestContrast(t *testing.T) {
	paper := palette[0]
	text := strings.Builder{}
	for _, f := range faces {
		text.WriteString(f.style + "\n")
	}
	for _, c := range palette[1:] {
		least := 1.0
		switch {
		case regexp.MustCompile(`fill:@` + c.name + `\b`).MatchString(text.String()):
			least = 4.5
		case strings.Contains(sheet, "stroke:@"+c.name) && c.name != "rule":
			least = 3
		}
		for _, pair := range [][2]string{{c.light, paper.light}, {c.dark, paper.dark}} {
			if got := contrast(t, pair[0], pair[1]); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", c.name, pair[0], pair[1], got, least)
			}
		}
	}
	if paper.name != "paper" || contrast(t, "#000000", "#ffffff") != 21 {
		t.Error("the measure is wrong")
	}
}

// Every color has its value for the light and for the dark, and one for programs without variables.
func TestStyleIsComplete(t *testing.T) {
	css := style()
	if strings.Contains(css, ":@") {
		t.Errorf("a color is not in the palette:\n%s", css)
	}
	light, dark, found := strings.Cut(css, "@media (prefers-color-scheme:dark)")
	dark, rules, _ := strings.Cut(dark, "\n")
	for _, c := range palette {
		use := ":" + c.light + ";"
		inDark := strings.Contains(dark, "--"+c.name+":"+c.dark+";")
		if !found || !strings.Contains(light, "--"+c.name+use) || !inDark {
			t.Errorf("%s is not in both palettes", c.name)
		}
		if !strings.Contains(rules, use) || !strings.Contains(rules, "var(--"+c.name+")") {
			t.Errorf("%s is not used", c.name)
		}
	}
	for _, k := range kinds {
		if !regexp.MustCompile(`\.` + string(k.kind) + `[,{]`).MatchString(rules) {
			t.Errorf("%s has no style", k.kind)
		}
	}
}
