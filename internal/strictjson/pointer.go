package strictjson

import (
	"fmt"
	"strconv"
	"strings"
)

// Pointer is where a value is in a document: a JSON pointer (RFC 6901). The empty one is the whole
// document.
type Pointer struct{ steps []string }

// ParsePointer reads a JSON pointer such as /data/status or /items/0/id.
func ParsePointer(text string) (Pointer, error) {
	if text == "" {
		return Pointer{}, nil
	}
	if text[0] != '/' {
		return Pointer{}, fmt.Errorf("%q is not a JSON pointer: it begins with /", shorten(text))
	}
	steps := strings.Split(text[1:], "/")
	if len(steps) > DepthMax {
		return Pointer{}, fmt.Errorf("%q has %d steps; it takes at most %d", shorten(text), len(steps), DepthMax)
	}
	for i, step := range steps {
		if rest := strings.NewReplacer("~0", "", "~1", "").Replace(step); strings.Contains(rest, "~") {
			return Pointer{}, fmt.Errorf("%q is not a JSON pointer: after ~ comes 0 or 1", shorten(text))
		}
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return Pointer{steps}, nil
}

// String gives the pointer as it is written.
func (p Pointer) String() string {
	text := ""
	for _, step := range p.steps {
		text += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
	}
	return text
}

// Lookup gives the value at a pointer in a document that [Parse] gave; found is false if there is none.
// A member on the way that is there in another case, alone or beside it, is an error: another reader might
// take that.
func (p Pointer) Lookup(document any) (value any, found bool, err error) {
	value = document
	for i, step := range p.steps {
		switch in := value.(type) {
		case map[string]any:
			if other, ok := inAnotherCase(in, step); ok {
				return nil, false, fmt.Errorf("%q: the document has the member as %q, in another case",
					shorten(Pointer{p.steps[:i+1]}.String()), shorten(other))
			}
			value, found = in[step]
		case []any:
			n, err := strconv.Atoi(step)
			found = err == nil && strconv.Itoa(n) == step && n >= 0 && n < len(in)
			if found {
				value = in[n]
			}
		default:
			found = false
		}
		if !found {
			return nil, false, nil
		}
	}
	return value, true, nil
}

// inAnotherCase gives a name in an object that is this one to a reader without regard to case.
func inAnotherCase(object map[string]any, name string) (other string, ok bool) {
	folded := Fold(name)
	for other := range object {
		if other != name && Fold(other) == folded {
			return other, true
		}
	}
	return "", false
}
