package racelab

import (
	"context"
	"io"

	"jobledger/internal/crew"
)

// childArgument is the command of this program that calls [Child].
const childArgument = "race-child"

// Child is one process of a race, on the stdin and stdout that [Run] gave it. It ends when its part
// is done, and at the latest when stdin does.
func Child(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	return crew.Serve(ctx, stdin, stdout,
		func(ctx context.Context, p plan, ready func() error, keep func(shot) error) error {
			if err := p.check(); err != nil {
				return err
			}
			return p.fire(ctx, ready, keep)
		})
}

// spread runs the race in child processes. Calls of release and keep are as for fire.
func (p *plan) spread(ctx context.Context, release func() error, keep func(shot) error) error {
	c := crew.Crew[plan, shot]{
		Name:     "race",
		Argument: childArgument,
		Command:  p.Child,
		Silence:  p.Silence,
		Plan: func(process int) plan {
			own := *p
			own.Process = process
			return own
		},
		Parts: func(own plan) int { return own.share() },
		Keep:  keep,
	}
	return c.Run(ctx, p.Processes, release)
}
