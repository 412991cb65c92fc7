package mutants

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// Every mutant still applies: the code that it means is there, once.
func TestMutantsApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range All() {
		text, err := m.Apply(root)
		if err != nil {
			t.Error(err)
		}
		if names[m.Name] || m.Kind == "" || len(m.Killers) == 0 || text == "" && err == nil {
			t.Errorf("%+v is not whole", m)
		}
		names[m.Name] = true
		techniques := map[string]bool{}
		for _, k := range m.Killers {
			techniques[k.Technique] = true
		}
		if m.Money && len(techniques) < 2 {
			t.Errorf("%s: of a guard of money, techniques that notice it: %d", m.Name, len(techniques))
		}
	}
	if len(names) < 25 {
		t.Errorf("mutants: %d", len(names))
	}
}

// All of them can be built; those of one place, one after the other.
func TestMutantsBuild(t *testing.T) {
	var rounds [][]Mutant
	for _, m := range All() {
		placed := false
		for i := range rounds {
			if !placed && !overlaps(rounds[i], m) {
				rounds[i], placed = append(rounds[i], m), true
			}
		}
		if !placed {
			rounds = append(rounds, []Mutant{m})
		}
	}
	if len(rounds) > 4 {
		t.Errorf("%d rounds", len(rounds))
	}
	for _, list := range rounds {
		overlay, err := Overlay(root, t.TempDir(), list...)
		if err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./ledger", "./db")
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

func overlaps(list []Mutant, m Mutant) bool {
	for _, other := range list {
		if other.File == m.File && (other.Old == m.Old ||
			strings.Contains(other.Old, m.Old) || strings.Contains(m.Old, other.Old)) {
			return true
		}
	}
	return false
}
