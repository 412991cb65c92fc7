package db

import (
	"context"
	"math/rand/v2"
	"time"
)

// pauseMin is the first pause between tries for the lock. It is short, because another process's
// commit takes about a millisecond; each is jittered so that waiters do not march in step.
const pauseMin = 100 * time.Microsecond

// persist tries until it shall not try again, for no longer than BusyWait and until ctx ends, and gives
// the error of the last try.
func (d *DB) persist(ctx context.Context, try func() (again bool, err error)) error {
	deadline := time.Now().Add(d.options.BusyWait)
	for pause := pauseMin; ; pause = min(2*pause, d.engine.pauseMax) {
		again, err := try()
		if !again || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}
