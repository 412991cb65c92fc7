package db_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// What a caller is told holds: done is written, a context's end is not, unknown may be either. And
// nothing is left behind.
func TestCancellationStorm(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		closed, goroutines := openDescriptors(t), goleak.IgnoreCurrent()
		d := open(t, dsn, db.Options{})
		openReaders(t, d)
		storm(t, d, 100)
		descriptors := openDescriptors(t)
		told := storm(t, d, 2000)
		for n := 2001; n < 2010 && !stormy(told); n++ { // how many leave in time is the machine's to say
			maps.Copy(told, storm(t, d, n))
		}
		openReaders(t, d)
		must(t, d.Write(t.Context(), mark("last", nil)))
		written := marks(t, d)
		counts := map[error]int{}
		for name, err := range told {
			kind := kindOf(err)
			counts[kind]++
			_, there := slices.BinarySearch(written, name)
			switch {
			case kind == nil && !there:
				t.Errorf("%s was acknowledged and is lost", name)
			case kind == context.DeadlineExceeded && there:
				t.Errorf("%s was called off and is written", name)
			case kind != nil && kind != context.DeadlineExceeded && kind != db.ErrOutcomeUnknown:
				t.Errorf("%s: %v", name, err)
			}
		}
		if !stormy(told) {
			t.Errorf("the storm was too even: %v", counts)
		}
		// SQLite keeps the descriptor of a connection that is closed while another has a lock, for the
		// next one to use: a few more may be open, but not with every cancellation.
		if now := openDescriptors(t); now > descriptors+10 {
			t.Errorf("%d descriptors open, before it were %d", now, descriptors)
		}
		must(t, d.Close())
		goleak.VerifyNone(t, goroutines)
		for end := time.Now().Add(patience); openDescriptors(t) > closed; time.Sleep(time.Millisecond) {
			if time.Now().After(end) { // connections to a server are given up in the background
				t.Fatalf("%d descriptors open after the end, at first were %d", openDescriptors(t), closed)
			}
		}
	})
}

// kindOf is what a caller who may leave is told.
func kindOf(err error) error {
	for _, kind := range []error{db.ErrOutcomeUnknown, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

// stormy tells whether enough callers were told each of what there is to be told.
func stormy(told map[string]error) bool {
	counts := map[error]int{}
	for _, err := range told {
		counts[kindOf(err)]++
	}
	return counts[nil] >= 20 && counts[context.DeadlineExceeded] >= 20 && counts[db.ErrOutcomeUnknown] >= 20
}

// storm writes from several callers that leave at random moments, and gives what each was told.
func storm(t *testing.T, d *db.DB, n int) (told map[string]error) {
	const callers = 8
	longest := 3 * pace(t, d, callers, fmt.Sprintf("pace of %d, ", n))
	told = map[string]error{}
	var mutex sync.Mutex
	var wait sync.WaitGroup
	for c := range callers {
		wait.Go(func() {
			for i := c; i < n; i += callers {
				name := fmt.Sprintf("%d of %d", i, n)
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(longest))
				err := d.Write(ctx, mark(name, nil))
				_ = d.Read(ctx, func(tx *db.Tx) error {
					var n int
					_, err := tx.Get(&n, `SELECT COUNT(*) FROM marks`)
					return err
				})
				cancel()
				mutex.Lock()
				told[name] = err
				mutex.Unlock()
			}
		})
	}
	wait.Wait()
	return told
}

// pace is how long a call takes on this machine now, when some callers write marks at the same time.
func pace(t *testing.T, d *db.DB, callers int, name string) time.Duration {
	const calls = 10
	began := time.Now()
	var wait sync.WaitGroup
	for c := range callers {
		wait.Go(func() {
			for i := range calls {
				if err := d.Write(t.Context(), mark(fmt.Sprint(name, c, i), nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	return time.Since(began) / calls
}

// openReaders makes reads that are all under way at once, and so all connections that there will be.
func openReaders(t *testing.T, d *db.DB) {
	t.Helper()
	var began, done sync.WaitGroup
	began.Add(4)
	for range 4 {
		done.Go(func() {
			if err := d.Read(t.Context(), func(tx *db.Tx) error {
				var n int
				_, err := tx.Get(&n, `SELECT COUNT(*) FROM marks`)
				began.Done()
				began.Wait()
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
}

// openDescriptors counts what this process has open. On systems without /proc it has only goroutines
// to compare.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	must(t, err)
	return len(entries)
}
