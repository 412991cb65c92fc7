package ledger

// field is one comparison of a repeated request with the recorded one.
type field struct {
	name string
	same bool
}

func differing(fields ...field) (names []string) {
	for _, f := range fields {
		if !f.same {
			names = append(names, f.name)
		}
	}
	return names
}

// equal compares two values of which either may be absent.
func equal[T comparable](a, b *T) bool { return a == b || (a != nil && b != nil && *a == *b) }
