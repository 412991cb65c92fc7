// Package mutants tests the tests: each mutant is one mistake in the product, one edit at one place, that the
// tests must notice. Nothing of the product imports it.
package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is one mistake.
type Mutant struct {
	Name string
	Kind string // of what it breaks: guard, check, unique, sign, order, comparison, bound or evidence
	File string // from the module's root
	Old  string // stands in File exactly once
	New  string

	// Money: where this mistake is not noticed, credits are wrong. Two techniques must notice it.
	Money bool

	// Killers are the tests that are to notice it, each of another technique.
	Killers []Killer
}

// Killer is a test that stands for a technique.
type Killer struct {
	Technique string // as docs/reliability.md names it
	Package   string // such as ./ledger
	Run       string // which tests, as go test -run takes it
	Args      string // more arguments of the test binary, separated by spaces
}

// All is every mutant.
func All() []Mutant {
	all := append([]Mutant{}, claims...)
	all = append(all, credits...)
	all = append(all, commits...)
	return append(all, places...)
}

// Apply gives the text of the mutant's file with the mistake in it. It fails if the code that the mutant
// means is not there any more, or is there twice: then the mutant has to follow it.
func (m *Mutant) Apply(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		return "", fmt.Errorf("%s: %s has %q %d times, want it once", m.Name, m.File, m.Old, n)
	}
	return strings.Replace(string(text), m.Old, m.New, 1), nil
}

// Overlay writes, into folder, the changed files of mutants and what go build -overlay takes. Mutants of one
// file are applied one after the other.
func Overlay(root, folder string, list ...Mutant) (overlay string, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for i := range list {
		m := &list[i]
		from := filepath.Join(root, m.File)
		changed := filepath.Join(folder, strings.ReplaceAll(m.File, "/", "-"))
		text, err := m.Apply(root)
		if err != nil {
			return "", err
		}
		if _, again := replace[from]; again {
			before, err := os.ReadFile(changed)
			if err != nil {
				return "", err
			}
			text = strings.Replace(string(before), m.Old, m.New, 1)
		}
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[from] = changed
	}
	document, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, document, 0o600)
}
