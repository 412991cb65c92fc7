package db

import (
	"context"
	"math/rand/v2"
	"time"
)

// pauses are how those who wait for a lock, or for a connection, share the time: the pause before the next
// try is one part in share of what was waited so far, between the two bounds and jittered, so that waiters do
// not march in step.
type pauses struct {
	min, max time.Duration
	share    time.Duration
	turn     time.Duration // of one that has the lock and takes it again, if others want it, too
	yield    time.Duration // after that: longer than most pauses of the others; 0: they queue for the lock
}

func (p *pauses) after(waited time.Duration) time.Duration {
	pause := min(max(waited/p.share, p.min), p.max)
	return pause/2 + rand.N(pause)
}

// persist tries until it shall not try again, for no longer than BusyWait and until ctx ends, and gives
// the error of the last try.
func (d *DB) persist(ctx context.Context, try func() (again bool, err error)) error {
	for began := time.Now(); ; {
		again, err := try()
		waited := time.Since(began)
		if !again || waited > d.options.BusyWait {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d.engine.pauses.after(waited)):
		}
	}
}

// contended is for how long a writer that was refused the lock takes it that others want it, too.
const contended = 20 * time.Millisecond

// yield lets others have the lock, which was just given up, at the end of the writer's turn. Nobody waits
// in a queue for it: who tries now and then would find it taken nearly always by one that takes it again at
// once. A turn is more than one commit, for whoever comes after another has to read its pages anew.
func (w *writer) yield() {
	p := &w.db.engine.pauses
	if time.Since(w.refused) < contended && time.Since(w.turn) > p.turn {
		time.Sleep(p.yield)
		w.turn = time.Now()
	}
}
