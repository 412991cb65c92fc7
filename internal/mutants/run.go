package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// runMax bounds one test; a mutant may keep it waiting for ever.
const runMax = 90 * time.Second

// Verdict says which techniques noticed a mutant.
type Verdict struct {
	Mutant Mutant
	Killed []string // techniques that noticed it
	Passed []string // techniques that might have noticed it and did not
	Broken string   // why it could not be tried; empty if it could
}

// OK reports whether enough techniques noticed the mutant.
func (v *Verdict) OK() bool {
	least := 1
	if v.Mutant.Money {
		least = 2
	}
	techniques := slices.Compact(slices.Sorted(slices.Values(v.Killed)))
	return v.Broken == "" && len(techniques) >= least
}

// Unchanged is the mutant that changes nothing: whatever notices it, fails by itself.
func Unchanged(list []Mutant) Mutant {
	m := Mutant{Name: "unchanged"}
	known := map[Killer]bool{}
	for _, other := range list {
		for _, k := range other.Killers {
			if !known[k] {
				known[k] = true
				m.Killers = append(m.Killers, k)
			}
		}
	}
	return m
}

// Try builds the tests with the mistake in the product and runs those that are to notice it. The module at
// root stays as it is.
func (m *Mutant) Try(ctx context.Context, root string) Verdict {
	v := Verdict{Mutant: *m}
	folder, err := os.MkdirTemp("", "jobledger-mutant-")
	if err != nil {
		v.Broken = err.Error()
		return v
	}
	defer os.RemoveAll(folder)
	var overlay string
	if m.File != "" {
		if overlay, err = Overlay(root, folder, *m); err != nil {
			v.Broken = err.Error()
			return v
		}
	}
	built := map[string]string{}
	for i := range m.Killers {
		k := &m.Killers[i]
		if built[k.Package] == "" {
			binary := filepath.Join(folder, strings.Trim(strings.ReplaceAll(k.Package, "/", "-"), ".-")+".test")
			if err := build(ctx, root, overlay, k.Package, binary); err != nil {
				v.Broken = err.Error()
				return v
			}
			built[k.Package] = binary
		}
		killed, err := k.run(ctx, root, built[k.Package])
		switch {
		case err != nil:
			v.Broken = err.Error()
			return v
		case killed:
			v.Killed = append(v.Killed, k.Technique)
		default:
			v.Passed = append(v.Passed, k.Technique)
		}
	}
	return v
}

func build(ctx context.Context, root, overlay, folder, binary string) error {
	args := []string{"test", "-c", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	c := exec.CommandContext(ctx, "go", append(args, folder)...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// run reports whether the tests failed. Tests that match nothing would never fail: that is an error.
func (k *Killer) run(ctx context.Context, root, binary string) (failed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, runMax)
	defer cancel()
	args := append([]string{"-test.v", "-test.short", "-test.failfast", "-test.run", k.Run},
		strings.Fields(k.Args)...)
	c := exec.CommandContext(ctx, binary, args...)
	c.Dir = filepath.Join(root, k.Package)
	c.WaitDelay = time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil, errors.As(err, &exit):
		return true, nil
	case err != nil:
		return false, err
	case !strings.Contains(out.String(), "\n--- PASS") && !strings.HasPrefix(out.String(), "--- PASS"):
		return false, fmt.Errorf("%s: no test matches %s", k.Package, k.Run)
	}
	return false, nil
}
