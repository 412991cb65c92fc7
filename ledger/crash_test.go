package ledger_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// A server that crashes under load, and comes back, has kept all that it acknowledged; the callers
// were told to try again, or that they do not know.
func TestServerCrashes(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		if !dbtest.NeedCluster(t) {
			return
		}
		c := dbtest.StartCluster(t)
		b := &workbench{T: t, dsn: c.Database(t)}
		b.underCrashes(dbtest.StartCampaign(t, "T32", 20), func(crash int) error {
			if err := either(crash, c.Crash, c.Kill); err != nil {
				return err
			}
			return c.Start()
		})
	})
}

// A server that dies under load, and leaves its place to a standby without which it acknowledged
// nothing, takes nothing along; the callers go on with the handle that they have.
func TestFailover(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		if !dbtest.NeedCluster(t) {
			return
		}
		primary, standby := dbtest.StartPair(t)
		b := &workbench{T: t, dsn: dbtest.Either(primary.Database(t), primary, standby)}
		// A failure in between must not leave the callers waiting for a standby.
		t.Cleanup(func() { _, _ = primary.Crash(), standby.Crash() })
		b.underCrashes(dbtest.StartCampaign(t, "T33", 3), func(crash int) error {
			if err := either(crash, primary.Kill, primary.Crash); err != nil {
				return err
			}
			if err := standby.Promote(); err != nil {
				return err
			}
			primary, standby = standby, primary
			return standby.Follow(primary)
		})
	})
}

func either(n int, even, odd func() error) error {
	if n%2 == 0 {
		return even()
	}
	return odd()
}

// underCrashes puts load on a ledger, crashes its server time and again, and checks what is there.
func (b *workbench) underCrashes(c *dbtest.Campaign, crash func(n int) error) {
	b.Helper()
	b.Ledger = b.open(ledger.Options{})
	times, began := c.Wanted, time.Now()
	load := b.startLoad()
	for n := range times {
		goal := load.acknowledged.Load() + 40
		for end := time.Now().Add(time.Minute); load.acknowledged.Load() < goal; {
			if time.Now().After(end) {
				b.Fatal("the load does not go on")
			}
			time.Sleep(time.Millisecond)
		}
		b.ok(crash(n))
		c.Done(true)
	}
	load.check(b)
	b.audit()
	b.Logf("%d crashes in %.0f s, %d operations acknowledged, %d times in doubt, %d refused", times,
		time.Since(began).Seconds(), load.acknowledged.Load(), load.unknown.Load(), load.busy.Load())
	if hit := load.unknown.Load() + load.busy.Load(); hit < int64(times) {
		b.Errorf("%d crashes hit %d operations", times, hit)
	}
}

// load is callers that make and settle jobs, and note what they were told.
type load struct {
	pause                       sync.Mutex // whoever has it keeps the callers waiting
	stop                        chan bool
	running                     sync.WaitGroup
	acknowledged, unknown, busy atomic.Int64
	created, settled            sync.Map // by job: true if acknowledged, false if nothing was written
}

func (b *workbench) startLoad() *load {
	b.Helper()
	b.give("load", 1_000_000)
	l := &load{stop: make(chan bool)}
	for c := range 6 {
		l.running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				default:
				}
				l.pause.Lock()
				l.pause.Unlock()
				job := fmt.Sprint("job-", c, "-", i)
				create := func() error { return b.create(job, 7, ledger.ModeCharge) }
				settle := func() error {
					_, err := b.report(job, ledger.Failed)
					return err
				}
				if l.call(b, &l.created, job, create) {
					l.call(b, &l.settled, job, settle)
				}
			}
		})
	}
	return l
}

// call makes one call, again for as long as its outcome is in doubt, and notes what came of it.
func (l *load) call(b *workbench, told *sync.Map, job string, do func() error) (acknowledged bool) {
	for inDoubt := false; ; {
		err := do()
		switch code := ledger.CodeOf(err); {
		case err == nil:
			l.acknowledged.Add(1)
			told.Store(job, true)
			return true
		case code == ledger.OutcomeUnknown:
			l.unknown.Add(1)
			inDoubt = true
		case code == ledger.Busy:
			l.busy.Add(1)
			if !inDoubt {
				told.Store(job, false)
				return false
			}
		default:
			b.Error(job, err)
			return false
		}
	}
}

// check ends the load and looks for what was acknowledged, and for what was refused.
func (l *load) check(b *workbench) {
	b.Helper()
	close(l.stop)
	l.running.Wait()
	there := map[string]ledger.Status{}
	for after := ""; ; {
		jobs, err := b.Jobs(b.Context(), ledger.JobFilter{After: after, Limit: ledger.PageMax})
		b.ok(err)
		if len(jobs) == 0 {
			break
		}
		for _, j := range jobs {
			there[j.ID] = j.Status
		}
		after = jobs[len(jobs)-1].ID
	}
	check := func(told *sync.Map, done func(ledger.Status) bool) {
		told.Range(func(job, acknowledged any) bool {
			if status := there[job.(string)]; done(status) != acknowledged.(bool) {
				b.Errorf("%s is %q, acknowledged %v", job, status, acknowledged)
			}
			return true
		})
	}
	check(&l.created, func(s ledger.Status) bool { return s != "" })
	check(&l.settled, func(s ledger.Status) bool { return s == ledger.Status(ledger.Failed) })
}
