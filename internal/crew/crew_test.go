package crew_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"jobledger/internal/crew"
	"jobledger/ledger"
)

// task is what the processes of this test are told to do.
type task struct {
	Process, Answers int
	Fail             string
}

// answer is a part of it: when it was begun, by the machine's clock.
type answer struct{ Process, N int }

// TestMain lets this binary be the processes of a crew.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "crew-child" {
		os.Exit(m.Run())
	}
	if err := crew.Serve(context.Background(), os.Stdin, os.Stdout, work); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

func work(_ context.Context, t task, ready func() error, keep func(answer) error) error {
	if t.Fail == "coded" {
		return ledger.InvalidField("answers", "too many")
	}
	if err := ready(); err != nil {
		return err
	}
	if t.Fail == "plain" {
		return errors.New("no more paper")
	}
	for n := range t.Answers {
		if err := keep(answer{t.Process, n}); err != nil {
			return err
		}
	}
	return nil
}

// run is three processes, of which the second fails in the given way.
func run(t *testing.T, fail string) (answers []answer, released bool, err error) {
	c := crew.Crew[task, answer]{
		Name:     "test",
		Argument: "crew-child",
		Silence:  30 * time.Second,
		Plan: func(process int) task {
			own := task{Process: process, Answers: 10 * process}
			if process == 2 {
				own.Fail = fail
			}
			return own
		},
		Parts: func(own task) int { return own.Answers },
		Keep:  func(a answer) error { answers = append(answers, a); return nil },
	}
	err = c.Run(t.Context(), 3, func() error {
		released = len(answers) == 0
		return nil
	})
	return answers, released, err
}

func TestProcesses(t *testing.T) {
	answers, released, err := run(t, "")
	if err != nil || len(answers) != 60 || !released {
		t.Errorf("%d answers, released before the first: %v, %v", len(answers), released, err)
	}
	if _, released, err = run(t, "coded"); ledger.CodeOf(err) != ledger.Invalid || released {
		t.Errorf("a child with an error of the ledger: released %v, %v", released, err)
	}
	const want = "process 2 of the test ended before it was done: exit status 3 (no more paper)"
	_, _, err = run(t, "plain")
	if ledger.CodeOf(err) != ledger.Internal || !strings.Contains(err.Error(), want) {
		t.Errorf("a child with another error: %v", err)
	}
}

// All parts begin when the last is ready, and the first error is the one that is told.
func TestTogether(t *testing.T) {
	ready := make(chan int, 8)
	at := -1
	release := func() error { at = len(ready); return nil }
	first := errors.New("first")
	err := crew.Together(t.Context(), 8, release, func(ctx context.Context, i int, wait func() error) error {
		ready <- i
		if err := wait(); err != nil {
			return err
		}
		if i == 3 {
			return first
		}
		<-ctx.Done() // which the error of another ends
		return ctx.Err()
	})
	if at != 8 || err != first {
		t.Errorf("released when %d were ready; %v", at, err)
	}
	err = crew.Together(t.Context(), 2, func() error { return first },
		func(_ context.Context, _ int, wait func() error) error { return wait() })
	if err != first {
		t.Errorf("a release that fails: %v", err)
	}
}
