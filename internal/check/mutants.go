package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"jobledger/internal/mutants"
)

// tryMutants tries one mutant after the other and prints the matrix. First it tries none: what would notice
// that, notices nothing.
func tryMutants(ctx context.Context, out io.Writer, chosen func(string) bool) (ok bool) {
	var list []mutants.Mutant
	for _, m := range mutants.All() {
		if chosen(m.Name) {
			list = append(list, m)
		}
	}
	began := time.Now()
	unchanged := mutants.Unchanged(list)
	if v := unchanged.Try(ctx, "."); v.Broken != "" || len(v.Killed) > 0 {
		fmt.Fprintf(out, "unchanged: these fail by themselves: %s %s\n", strings.Join(v.Killed, ", "), v.Broken)
		return false
	}
	fmt.Fprintf(out, "| mutant | kind | money | noticed by | not by |\n|---|---|---|---|---|\n")
	ok = true
	survived := 0
	for i := range list {
		if ctx.Err() != nil {
			fmt.Fprintf(out, "stopped: %d of %d mutants were tried\n", i, len(list))
			return false
		}
		v := list[i].Try(ctx, ".")
		fmt.Fprintln(out, row(&v))
		if !v.OK() {
			ok = false
			survived++
		}
	}
	fmt.Fprintf(out, "\nmutants: %d, not noticed as they must be: %d, in %v\n", len(list), survived,
		time.Since(began).Round(time.Second))
	return ok
}

func row(v *mutants.Verdict) string {
	money, killed, passed := "", unique(v.Killed), unique(v.Passed)
	if v.Mutant.Money {
		money = "yes"
	}
	if v.Broken != "" {
		killed = "NOT TRIED: " + v.Broken
	} else if !v.OK() {
		killed += " TOO FEW"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", v.Mutant.Name, v.Mutant.Kind, money, killed, passed)
}

func unique(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}
