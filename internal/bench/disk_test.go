package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// open makes a place of files with an open fleet and a meter.
func open(t *testing.T, shards int) (place, fleet, meter) {
	t.Helper()
	o := options(func(o *Options) { o.DSN, o.Shards = filepath.Join(t.TempDir(), "a?b%.db"), shards })
	p, err := o.place(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := openFleet(t.Context(), p.dsns, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMeter(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.close(), f.close(), p.remove()); err != nil {
			t.Error(err)
		}
	})
	return p, f, m
}

func grant(t *testing.T, l *ledger.Ledger, owner string) {
	t.Helper()
	if _, err := l.Grant(t.Context(), ledger.GrantParams{Owner: owner, Amount: 7, Key: owner}); err != nil {
		t.Fatal(err)
	}
}

// The meter sees what stands in the logs: the files have just as many bytes, and a header.
func TestMeterSeesTheLog(t *testing.T) {
	p, f, m := open(t, 2)
	grant(t, f[0], "bench-before") // is not counted
	pages, bytes, err := m.during(t.Context(), func() error {
		for i := range 3 {
			grant(t, f[0], fmt.Sprint("bench-", i))
		}
		grant(t, f[1], "bench-other")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, dsn := range p.dsns {
		const header = 32
		info, err := os.Stat(dsn + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size() - header
	}
	if pages < 12 || int64(bytes) != size || int64(pages)*(4096+24) != size {
		t.Errorf("%g pages, %g bytes; the files have %d", pages, bytes, size)
	}
	if all := p.bytes(); all <= size {
		t.Errorf("the files have %d bytes, with %d of logs", all, size)
	}
	own := errors.New("own")
	if _, _, err := m.during(t.Context(), func() error { return own }); err != own {
		t.Errorf("an error of what is metered: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, _, err := m.during(ctx, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a meter that is stopped: %v", err)
	}
}

// The server's log grows, too, and has no pages.
func TestMeterOfAServer(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		m, err := newMeter(place{dsns: []string{dsn}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.close()
		l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		pages, bytes, err := m.during(t.Context(), func() error { grant(t, l, "bench-o"); return nil })
		if err != nil || pages != 0 || bytes < 200 {
			t.Errorf("%g pages, %g bytes, %v", pages, bytes, err)
		}
	})
}

func TestSyncOfTheDisk(t *testing.T) {
	b := &bench{place: place{folder: t.TempDir()}}
	for range 2 {
		if err := b.sync(); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.syncs) != 80 || slices.Min(b.syncs) <= 0 {
		t.Errorf("%d syncs, the fastest %s", len(b.syncs), slices.Min(b.syncs))
	}
	if left, err := os.ReadDir(b.place.folder); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := (&bench{}).sync(); err != nil {
		t.Errorf("without a file: %v", err)
	}
	if err := (&bench{place: place{folder: "/no/such"}}).sync(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the folder: %v", err)
	}
}

// An owner is always in the same shard, and the shards share them about evenly.
func TestShardsShareTheOwners(t *testing.T) {
	_, f, _ := open(t, 3)
	counts := map[*ledger.Ledger]int{}
	for i := range 3000 {
		owner := loadedOwner(i)
		counts[f.of(owner)]++
		if f.of(owner) != f.of(owner) {
			t.Fatal("an owner moves")
		}
	}
	for _, l := range f {
		if n := counts[l]; n < 900 || n > 1100 {
			t.Errorf("a shard has %d of 3000 owners", n)
		}
	}
}

// What is done twice, or is not there, is not measured as if it had been done.
func TestOperationsSeeWhatTheyDid(t *testing.T) {
	_, f, _ := open(t, 1)
	p := &plan{Owners: 1, Session: "s", Mode: ledger.ModeHold}
	grant(t, f[0], p.owner(0))
	for _, c := range []struct {
		phase string
		want  ledger.Code // empty: it is done
	}{
		{"settle", ledger.NotFound}, {"create", ""}, {"create", ledger.Inconsistent}, {"balance", ""},
		{"settle", ""}, {"settle", ledger.Inconsistent}, {"duplicate", ""}, {"duplicate", ""},
	} {
		err := operations[c.phase](t.Context(), f[0], p, 0)
		if (err == nil) != (c.want == "") || err != nil && ledger.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", c.phase, err, c.want)
		}
	}
}

// A damaged ledger is no place to measure: the audit in the end says so.
func TestMeasurementIsAudited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.db")
	measure(t, func(o *Options) { o.DSN = file })
	dbtest.Exec(t, file, `UPDATE balances SET used = used - 1, expired = expired + 1 WHERE used > 0`)
	_, err := Measure(t.Context(), options(func(o *Options) { o.DSN = file }))
	if ledger.CodeOf(err) != ledger.Inconsistent {
		t.Errorf("%v", err)
	}
}

func TestMeasurementEndsWithItsContext(t *testing.T) {
	for _, processes := range []int{1, 2} {
		ctx, stop := context.WithCancel(t.Context())
		o := options(func(o *Options) {
			o.Jobs, o.Processes = 100_000, processes
			o.Progress = func(int, int) { stop() }
		})
		if processes > 1 {
			time.AfterFunc(time.Second, stop)
		}
		began := time.Now()
		_, err := Measure(ctx, o)
		if err == nil || time.Since(began) > 30*time.Second {
			t.Errorf("%d processes: %v after %s", processes, err, time.Since(began))
		}
		stop()
	}
}

func TestInParallel(t *testing.T) {
	var mutex sync.Mutex
	seen := map[int]int{}
	note := func(i int) error {
		mutex.Lock()
		defer mutex.Unlock()
		seen[i]++
		if i == 700 {
			return errors.New("enough")
		}
		return nil
	}
	if err := inParallel(500, note); err != nil || len(seen) != 500 {
		t.Errorf("%d of 500, %v", len(seen), err)
	}
	if err := inParallel(1_000_000, note); err == nil || err.Error() != "enough" || len(seen) > 10_000 {
		t.Errorf("it went on to %d: %v", len(seen), err)
	}
	for i, n := range seen {
		if want := map[bool]int{true: 2, false: 1}[i < 500]; n != want {
			t.Errorf("%d was done %d times", i, n)
		}
	}
	if err := inParallel(0, nil); err != nil {
		t.Error(err)
	}
}
