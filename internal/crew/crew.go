// Package crew does a piece of work in several goroutines or processes that begin at the same moment.
//
// A child process is told its plan as one JSON document on stdin and answers on stdout: one message
// when it is ready, and, after the word fire on stdin, one for each part of its work. Its stdin stays
// open for as long as the parent lives.
package crew

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"jobledger/ledger"
)

// fireWord is what releases a child.
const fireWord = "fire"

// ErrGone ends a child process whose parent has ended.
var ErrGone = errors.New("the process that started this one is gone")

// message is what a child tells its parent: that it is ready, the answer of one part, or its error.
type message[R any] struct {
	Ready bool          `json:"ready,omitempty"`
	Part  *R            `json:"part,omitempty"`
	Error *ledger.Error `json:"error,omitempty"`
}

// Work is one process's share. It calls ready when it can begin, begins when that returns, and calls
// keep, never twice at a time, with the answer of each part.
type Work[P, R any] func(ctx context.Context, plan P, ready func() error, keep func(R) error) error

// Serve is one child process of a crew, on the stdin and stdout that its parent gave it. It ends when
// its work is done, and at the latest when stdin does. Errors: INVALID, if stdin has no plan; that of
// work, of which a *ledger.Error is told to the parent; [ErrGone].
func Serve[P, R any](ctx context.Context, stdin io.Reader, stdout io.Writer, work Work[P, R]) error {
	hear, say := json.NewDecoder(stdin), json.NewEncoder(stdout)
	var plan P
	if err := hear.Decode(&plan); err != nil {
		return ledger.InvalidField("stdin", "has no plan; this command is for the program itself")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	released := make(chan struct{})
	go func() {
		var word string
		if hear.Decode(&word) == nil && word == fireWord {
			close(released)
			_ = hear.Decode(&word) // returns when the parent has closed stdin, or ended
		}
		stop(ErrGone)
	}()
	err := work(ctx, plan, func() error {
		if err := say.Encode(message[R]{Ready: true}); err != nil {
			return err
		}
		select {
		case <-released:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, func(part R) error { return say.Encode(message[R]{Part: &part}) })
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		_ = say.Encode(message[R]{Error: e}) // a parent that does not hear it sees the exit status
	}
	return err
}

// AtOnce is a release that has nothing to wait for.
func AtOnce() error { return nil }

// Together runs n parts at the same time. Each must call wait when it is ready. When all have, all
// of them go on once release has returned. The first error stops the others through their context,
// and is returned when all have ended.
func Together(ctx context.Context, n int, release func() error,
	part func(ctx context.Context, i int, wait func() error) error,
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ready, gate := make(chan struct{}, n), make(chan struct{})
	wait := func() error {
		ready <- struct{}{}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var parts sync.WaitGroup
	for i := range n {
		parts.Go(func() {
			if err := part(ctx, i, wait); err != nil {
				stop(err)
			}
		})
	}
	if all(ctx, ready, n) {
		if err := release(); err != nil {
			stop(err)
		} else {
			close(gate)
		}
	}
	parts.Wait()
	return context.Cause(ctx)
}

// all waits for n parts to be ready, or for the end of ctx.
func all(ctx context.Context, ready <-chan struct{}, n int) bool {
	for range n {
		select {
		case <-ready:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
