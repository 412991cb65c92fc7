package db

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// operation is one call of Write on its way through the queue.
type operation struct {
	fn    func(*Tx) error
	begin string // opens its transaction
	state atomic.Int32
	done  chan error // holds one answer, so that the writer never waits for a caller who left

	// The writer's own notes.
	began   time.Time
	repeats int // times that it ran again because another transaction was in the way
}

// The states of an operation. A caller may withdraw one only while it waits; it waits until its
// transaction has begun and its turn has come.
const (
	waiting int32 = iota
	taken
	withdrawn
)

// Write runs fn in a write transaction and returns once that is durable on disk, or with an error.
//
// On SQLite, operations that wait at the same time share one commit; each has its own savepoint. An
// error or a panic in fn undoes fn alone and is returned to its caller alone. fn may run more than once
// and shares the transaction with strangers: it must do nothing but SQL, and return the error of a
// statement that fails.
//
// Errors: what fn returned; [ErrBusy], nothing was written; [ErrOutcomeUnknown], the commit may or
// may not have happened, or ctx ended while fn was at work. If ctx ends before fn began, nothing was
// written and the error is that of ctx.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return d.write(ctx, d.engine.begin, fn)
}

// WriteSnapshot is [DB.Write] for an operation that compares more than it can lock: its statements see
// the database as of one moment, and what they have written themselves. If others write the same rows
// meanwhile, fn runs again.
func (d *DB) WriteSnapshot(ctx context.Context, fn func(*Tx) error) error {
	return d.write(ctx, d.engine.snapshot, fn)
}

func (d *DB) write(ctx context.Context, begin string, fn func(*Tx) error) error {
	o := &operation{fn: fn, begin: begin, done: make(chan error, 1)}
	if err := d.enqueue(ctx, o); err != nil {
		return err
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
	}
	if o.state.CompareAndSwap(waiting, withdrawn) {
		return ctx.Err()
	}
	select {
	case err := <-o.done: // the answer and the end of ctx came together
		return err
	default:
		return unknown(ctx.Err())
	}
}

func (d *DB) enqueue(ctx context.Context, o *operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	if d.closed {
		return ErrClosed
	}
	select {
	case d.queue <- o:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeLoop writes, alone or beside others like it. It takes what is waiting and commits it together;
// while one batch reaches the disk, the next one gathers.
func (d *DB) writeLoop() {
	w := &writer{db: d}
	defer w.close()
	batch := make([]*operation, 0, d.options.BatchMax)
	for o := range d.queue {
		batch = d.gather(append(batch[:0], o))
		for again := batch; len(again) > 0; {
			again = w.attempt(again)
		}
		w.yield()
	}
}

// gather adds to a batch what waits in the queue. It adds no delay: it lets other goroutines run, so
// that the callers woken by the last commit can ask again, only for as long as more of them do.
func (d *DB) gather(batch []*operation) []*operation {
	for len(batch) < d.options.BatchMax {
		o, more := d.next()
		if !more {
			break
		}
		batch = append(batch, o)
	}
	return batch
}

// next takes an operation that waits now or after one turn of the scheduler.
func (d *DB) next() (o *operation, more bool) {
	for range 2 {
		select {
		case o, more = <-d.queue:
			return o, more
		default:
			runtime.Gosched()
		}
	}
	return nil, false
}
