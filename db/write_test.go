package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

func TestErrorsAndPanicsHurtNoNeighbour(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		var w watch
		d := open(t, dsn, db.Options{Intercept: w.intercept})
		release := hold(t, d)
		w.set(nil)
		panics := func(tx *db.Tx) error {
			_ = mark("panics", nil)(tx)
			panic("boom")
		}
		inRows := func(tx *db.Tx) error {
			_ = mark("in rows", nil)(tx)
			return db.Each(tx, func(*struct{ Name string }) (bool, error) { panic("boom") },
				`SELECT name FROM marks`)
		}
		swallows := func(tx *db.Tx) error { // a failed statement ends neither the operation nor the batch
			_ = mark("a", nil)(tx)
			return mark("after a failed statement", nil)(tx)
		}
		var done []chan error
		for _, fn := range []func(*db.Tx) error{
			mark("a", nil), mark("own", errOwn), mark("b", nil), panics, mark("c", nil), inRows,
			mark("a", nil), swallows, mark("d", nil),
		} {
			done = append(done, queue(t, t.Context(), d, fn))
		}
		release()
		errs := make([]error, len(done))
		for i := range done {
			errs[i] = answer(t, done[i])
		}
		for _, i := range []int{0, 2, 4, 8} {
			wantIs(t, errs[i], nil)
		}
		wantIs(t, errs[1], errOwn)
		for _, i := range []int{3, 5} {
			p, ok := errors.AsType[*db.PanicError](errs[i])
			if !ok || p.Value != "boom" || len(p.Stack) == 0 || p.Error() != "panic: boom" {
				t.Errorf("operation %d: %#v, want a PanicError", i, errs[i])
			}
		}
		wantIs(t, errs[6], db.ErrConstraint)
		if d.Engine() != "sqlite" { // nor does the server forgive one: what follows is rolled back
			if errs[7] == nil {
				t.Error("a failed statement was swallowed, and its operation acknowledged")
			}
			wantMarks(t, d, "a", "b", "c", "d")
			return
		}
		wantIs(t, errs[7], nil)
		wantMarks(t, d, "a", "b", "c", "d", "after a failed statement")
		if n := w.seen("BEGIN"); n != 1 {
			t.Errorf("%d transactions, want one batch", n)
		}
	})
}

func TestBatchMax(t *testing.T) {
	for _, c := range []struct{ option, want, most int }{
		{1, 20, 1}, {3, 7, 3}, {64, 3, 64}, {0, 3, 64}, {-1, 3, 64}, {1000, 3, 64},
	} {
		t.Run(fmt.Sprint(c.option), func(t *testing.T) {
			sharing(t, func(t *testing.T, dsn string) {
				var w watch
				d := open(t, dsn, db.Options{BatchMax: c.option, Intercept: w.intercept})
				release := hold(t, d)
				var now, most int
				w.set(func(when db.When, query string) error {
					switch {
					case when == db.Before && query == "SAVEPOINT operation":
						now++
						most = max(most, now)
					case when == db.Before && query == "COMMIT":
						now = 0
					}
					return nil
				})
				var done []chan error
				for i := range c.most * (c.want - 1) {
					done = append(done, queue(t, t.Context(), d, mark(fmt.Sprint(i), nil)))
				}
				release()
				for i := range done {
					must(t, answer(t, done[i]))
				}
				// The watch was set inside the holder's transaction: its COMMIT counts as one.
				if n := w.seen("COMMIT"); n != c.want || most != c.most {
					t.Errorf("%d commits of at most %d operations, want %d of %d", n, most, c.want, c.most)
				}
				if n := len(marks(t, d)); n != len(done) {
					t.Errorf("%d operations written, want %d", n, len(done))
				}
			})
		})
	}
}

// More operations than the queue holds are cancelled: those that wait in it, and those that wait
// for a place.
func TestCancelBeforeTheStart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		release := hold(t, d)
		neighbour := queue(t, t.Context(), d, mark("neighbour", nil))
		ctx, cancel := context.WithCancel(t.Context())
		runs := func(*db.Tx) error {
			t.Error("a cancelled operation ran")
			return nil
		}
		done := make(chan error, 300)
		for range 200 {
			answer := queue(t, ctx, d, runs)
			go func() { done <- <-answer }()
		}
		for range 100 {
			go func() { done <- d.Write(ctx, runs) }()
		}
		cancel()
		for range cap(done) {
			err := answer(t, done)
			wantIs(t, err, context.Canceled)
			if errors.Is(err, db.ErrOutcomeUnknown) {
				t.Fatal("unknown, but nothing had begun")
			}
		}
		wantIs(t, d.Write(ctx, mark("late", nil)), context.Canceled)
		release()
		must(t, answer(t, neighbour))
		must(t, d.Write(t.Context(), mark("after", nil)))
		wantMarks(t, d, "neighbour", "after")
	})
}

func TestCancelWhileRunning(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		began, resume, done := make(chan bool), make(chan bool), make(chan error, 1)
		go func() {
			done <- d.Write(ctx, func(tx *db.Tx) error {
				close(began)
				<-resume
				return mark("completes", nil)(tx)
			})
		}()
		await(t, began)
		neighbour := queue(t, t.Context(), d, mark("neighbour", nil))
		cancel()
		err := answer(t, done) // before the writer goes on: a caller that leaves does not wait
		wantIs(t, err, db.ErrOutcomeUnknown)
		wantIs(t, err, context.Canceled)
		close(resume)
		must(t, answer(t, neighbour))
		wantMarks(t, d, "completes", "neighbour")
	})
}

func TestCloseFinishesWhatWasAccepted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		release := hold(t, d)
		var done []chan error
		for i := range 5 {
			done = append(done, queue(t, t.Context(), d, mark(fmt.Sprint(i), nil)))
		}
		closed := make(chan error, 1)
		go func() { closed <- d.Close() }()
		for refused := false; !refused; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			err := d.Write(ctx, mark("refused", nil))
			refused = errors.Is(err, db.ErrClosed)
			if !refused && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a write during Close: %v", err)
			}
			cancel()
		}
		release()
		for i := range done {
			must(t, answer(t, done[i]))
		}
		must(t, answer(t, closed))
		must(t, d.Close())
		wantIs(t, d.Write(t.Context(), mark("late", nil)), db.ErrClosed)
		wantIs(t, d.Read(t.Context(), func(*db.Tx) error { return nil }), db.ErrClosed)
		wantMarks(t, reopen(t, dsn, db.Options{}), "0", "1", "2", "3", "4")
	})
}

func TestReadCannotWrite(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		must(t, d.Write(t.Context(), mark("kept", nil)))
		for _, query := range []string{
			`INSERT INTO marks (name) VALUES ('x')`, `UPDATE marks SET name = 'x'`, `DELETE FROM marks`,
			`CREATE TABLE x (y TEXT)`, `DROP TABLE marks`, `DELETE FROM schema_migrations`,
		} {
			err := d.Read(t.Context(), func(tx *db.Tx) error {
				_, err := tx.Exec(query)
				return err
			})
			wantIs(t, err, db.ErrReadOnly)
		}
		wantMarks(t, d, "kept")
		must(t, d.Write(t.Context(), mark("after", nil)))
	})
}

func TestReadSeesOneSnapshot(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		count := func(tx *db.Tx) (n int) {
			_, err := tx.Get(&n, `SELECT COUNT(*) FROM marks`)
			must(t, err)
			return n
		}
		must(t, d.Read(t.Context(), func(tx *db.Tx) error {
			before := count(tx)
			must(t, d.Write(t.Context(), mark("meanwhile", nil)))
			if after := count(tx); after != before {
				t.Errorf("a read saw %d rows and then %d", before, after)
			}
			return nil
		}))
		wantMarks(t, d, "meanwhile")
	})
}

// A read that fails, panics or is cancelled gives its connection back in order, or not at all.
func TestReadLeavesNothingOpen(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		d := open(t, dsn, db.Options{})
		for i := range 20 {
			wantIs(t, d.Read(t.Context(), func(*db.Tx) error { return errOwn }), errOwn)
			func() {
				defer func() {
					if recover() != "boom" {
						t.Error("the panic of a read did not reach its caller")
					}
				}()
				_ = d.Read(t.Context(), func(*db.Tx) error { panic("boom") })
			}()
			ctx, cancel := context.WithCancel(t.Context())
			err := d.Read(ctx, func(tx *db.Tx) error {
				cancel()
				var n int
				_, err := tx.Get(&n, `SELECT COUNT(*) FROM marks`)
				return err
			})
			wantIs(t, err, context.Canceled)
			wantIs(t, d.Read(ctx, func(*db.Tx) error { return nil }), context.Canceled)
			must(t, d.Write(t.Context(), mark(fmt.Sprint(i), nil)))
			if n := len(marks(t, d)); n != i+1 { // a snapshot left open would be an old one
				t.Fatalf("round %d: a read sees %d rows", i, n)
			}
		}
	})
}

func TestOneTimePerOperation(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		clock := time.UnixMicro(1_000_000)
		d := open(t, dsn, db.Options{Clock: func() time.Time {
			clock = clock.Add(time.Microsecond)
			return clock
		}})
		var times []int64
		look := func(tx *db.Tx) error {
			times = append(times, tx.Now(), tx.Now())
			return nil
		}
		must(t, d.Write(t.Context(), look))
		must(t, d.Write(t.Context(), look))
		must(t, d.Read(t.Context(), look))
		want := []int64{1_000_001, 1_000_001, 1_000_002, 1_000_002, 1_000_003, 1_000_003}
		if !slices.Equal(times, want) {
			t.Errorf("times %v, want %v", times, want)
		}
	})
}
