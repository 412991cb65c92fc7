// Command check runs what jobledger's reliability rests on, and says in a table what was done.
//
//	go run ./internal/check            for every change; meant to take ten minutes on two cores
//	go run ./internal/check -soak      the long run before a release; meant to take ninety
//	go run ./internal/check -mutants   the tests of the tests
//
// It ends with 1 if something was violated, or fired fewer faults than it was to.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	soak := flag.Bool("soak", false, "the numbers of the long run")
	tests := flag.Bool("mutants", false, "try the mutants instead")
	only := flag.String("only", "", "`WORDS`, with commas: only the techniques, or the mutants, that have one")
	flag.Parse()
	if _, err := os.Stat("go.mod"); err != nil {
		fmt.Fprintln(os.Stderr, "check: run it in the folder of go.mod")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var ok bool
	if *tests {
		ok = tryMutants(ctx, os.Stdout, chosen(*only))
	} else {
		ok = runAll(ctx, os.Stdout, *soak, chosen(*only))
	}
	if !ok {
		os.Exit(1)
	}
}

// chosen tells whether a name has one of the words; with no words every name has.
func chosen(words string) func(name string) bool {
	return func(name string) bool {
		for word := range strings.SplitSeq(words, ",") {
			if strings.Contains(name, word) {
				return true
			}
		}
		return false
	}
}
