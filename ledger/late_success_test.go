package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/ledger"
)

// gate lets one side of a race stop at one of its statements.
type gate struct {
	mutex   sync.Mutex
	count   int           // calls of the interceptor
	stop    int           // the call at which it stops
	reached chan struct{} // closed when it has stopped
	resume  chan struct{} // what it waits for
	begun   chan struct{} // closed when it asks for its transaction
}

// set makes the gate ready for one operation.
func (g *gate) set(stop int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.count, g.stop = 0, stop
	g.reached, g.resume, g.begun = make(chan struct{}), make(chan struct{}), make(chan struct{})
}

func (g *gate) intercept(when db.When, query string) error {
	g.mutex.Lock()
	g.count++
	count, resume := g.count, g.resume
	if when == db.Before && strings.HasPrefix(query, "BEGIN") {
		select {
		case <-g.begun: // it asks again, the lock was taken
		default:
			close(g.begun)
		}
	}
	if count == g.stop {
		close(g.reached)
	}
	stop := count == g.stop
	g.mutex.Unlock()
	if stop {
		<-resume
	}
	return nil
}

// duel is a sweep and a late success of the same job, each with a handle of its own.
type duel struct {
	*workbench
	gates   [2]gate // of the sweep, of the report
	handles [2]*ledger.Ledger
	rounds  int
	wins    [2][2]int // by the side that was stopped, then by the winner
	used    int64
}

const duelCredits = 100_000

func newDuel(b *workbench) *duel {
	d := &duel{workbench: b}
	for i := range d.handles {
		d.gates[i].set(0)
		d.handles[i] = b.open(ledger.Options{Intercept: d.gates[i].intercept})
	}
	b.give("g", duelCredits)
	return d
}

// fight lets one side stop at a call of its interceptor while the other goes as far as it can. It
// reports whether that side had so many calls.
func (d *duel) fight(stopped, call int, mode ledger.Mode, cost int64) (reached bool) {
	d.Helper()
	job := fmt.Sprint("j", d.rounds)
	p := ledger.JobParams{ID: job, Owner: "demo", Cost: 7, Mode: mode, Deadline: on(0)}
	_, err := d.CreateJob(d.Context(), p)
	d.ok(err)
	var swept ledger.SweepResult
	var told ledger.Settlement
	var errs [2]error
	sides := [2]func(){
		func() { swept, errs[0] = d.handles[0].Sweep(d.Context(), ledger.PageMax) },
		func() {
			told, errs[1] = d.handles[1].Settle(d.Context(), ledger.Report{Job: job, Outcome: ledger.Completed,
				Source: ledger.Callback, Cost: &cost})
		},
	}
	first, second := stopped, 1-stopped
	d.gates[first].set(call)
	d.gates[second].set(0)
	ends := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	run := func(side int) {
		defer close(ends[side])
		sides[side]()
	}
	go run(first)
	select {
	case <-d.gates[first].reached:
		reached = true
	case <-ends[first]:
	}
	go run(second)
	patience := 200 * time.Microsecond
	if call == 1 {
		patience = time.Minute // the first has not begun: nothing can keep the second
	}
	select { // it is done, or it waits for what the first has locked
	case <-ends[second]:
	case <-d.gates[second].begun:
		select {
		case <-ends[second]:
		case <-time.After(patience):
		}
	}
	close(d.gates[first].resume)
	<-ends[first]
	<-ends[second]
	d.ok(errs[0])
	d.ok(errs[1])
	d.judge(job, stopped, cost, swept, told)
	return reached
}

// judge checks that one side has won, with its own amount, and that the other knows.
func (d *duel) judge(job string, stopped int, cost int64, swept ledger.SweepResult, s ledger.Settlement) {
	d.Helper()
	want := fmt.Sprint("conflict timed_out 7 0 swept 1")
	if s.Won {
		want = fmt.Sprint("won completed ", 7-cost, " ", cost, " swept 0")
		d.used += cost
		d.wins[stopped][1]++
	} else {
		d.wins[stopped][0]++
	}
	got := fmt.Sprint(s.Verdict, " ", s.Job.Status, " ", s.Returned, " ", s.Consumed, " swept ", swept.TimedOut)
	if got != want || swept.More || len(swept.NeedsReconciliation) > 0 {
		d.Fatalf("%s: %q, want %q", job, got, want)
	}
	d.balance(fmt.Sprint(duelCredits-d.used, " 0 ", d.used, " 0"))
	d.rounds++
}

// done checks the evidence of all rounds.
func (d *duel) done(least int) {
	d.Helper()
	d.same(d.query(`SELECT COUNT(*) FROM reports WHERE verdict = 'won'`), []string{fmt.Sprint(d.rounds)})
	d.same(d.query(`SELECT COUNT(*) FROM events WHERE type = 'job.conflict'`),
		[]string{fmt.Sprint(d.wins[0][0] + d.wins[1][0])})
	d.Logf("%d rounds; wins of the sweep and of the report, the sweep stopped: %v, the report stopped: %v",
		d.rounds, d.wins[0], d.wins[1])
	if d.rounds < least {
		d.Errorf("%d rounds, want %d", d.rounds, least)
	}
}

// A sweep meets a late success with another amount at each statement of either side: one settlement
// each, no error, nothing that goes round in circles.
func TestSweepAgainstLateSuccess(t *testing.T) {
	costs, least := []int64{0, 1, 2, 3, 4, 5, 6, 7}, 1000
	if testing.Short() {
		costs, least = []int64{3}, 100
	}
	eachWorkbench(t, func(b *workbench) {
		d := newDuel(b)
		for _, mode := range []ledger.Mode{ledger.ModeHold, ledger.ModeCharge} {
			for _, cost := range costs {
				for stopped := range 2 {
					for call := 1; d.fight(stopped, call, mode, cost); call++ {
						if call > 200 {
							b.Fatal("it goes round in circles")
						}
					}
				}
			}
		}
		d.done(least)
		if d.wins[0][0] == 0 || d.wins[0][1] == 0 || d.wins[1][0] == 0 || d.wins[1][1] == 0 {
			b.Errorf("a side never won: %v", d.wins)
		}
	})
}

// atOnce makes n jobs of 7, due one after the other, and lets two sides do something with each at the
// same moment; every second time, one of them comes a little late.
func (b *workbench) atOnce(n int, sides [2]func(l *ledger.Ledger, job string)) {
	b.Helper()
	b.give("g", 7*int64(n))
	inParallel(8, n, func(i int) {
		p := ledger.JobParams{ID: fmt.Sprint("j", i), Owner: "demo", Cost: 7, Deadline: on(time.Duration(i) * tick)}
		if _, err := b.CreateJob(b.Context(), p); err != nil {
			b.Error(err)
		}
	})
	var handles [2]*ledger.Ledger
	for side := range handles {
		handles[side] = b.open(ledger.Options{})
	}
	for i := range n {
		b.at(time.Duration(i) * tick) // only this job is due, of those that are open
		late := time.Millisecond
		if i%16 > 11 {
			late = 50 * time.Millisecond // so late that the other has won, however slow the machine
		}
		var wait sync.WaitGroup
		fire := make(chan struct{})
		for side := range handles {
			wait.Go(func() {
				<-fire
				if i%4 == 1+2*side {
					time.Sleep(rand.N(late))
				}
				sides[side](handles[side], fmt.Sprint("j", i))
			})
		}
		close(fire)
		wait.Wait()
	}
}

// B36: the sweep and a success at the same moment; a success that loses is kept as a contradiction.
func TestB36SweepAndSuccessAtOnce(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		const rounds = 200
		var completed, timedOut int64
		b.atOnce(rounds, [2]func(*ledger.Ledger, string){
			func(l *ledger.Ledger, _ string) {
				r, err := l.Sweep(b.Context(), 1)
				if timedOut += r.TimedOut; err != nil {
					b.Error(err)
				}
			},
			func(l *ledger.Ledger, job string) {
				r := ledger.Report{Job: job, Outcome: ledger.Completed, Source: ledger.Callback}
				s, err := l.Settle(b.Context(), r)
				if err != nil || s.Won != (s.Consumed == 7) || (s.Verdict == ledger.Conflict) != (s.Returned == 7) {
					b.Errorf("%s: %+v, %v", job, s, err)
				}
				if s.Won {
					completed++
				}
			},
		})
		b.balance(fmt.Sprint(7*timedOut, " 0 ", 7*completed, " 0"))
		b.Logf("%d completed, %d timed out", completed, timedOut)
		if completed+timedOut != rounds || completed == 0 || timedOut == 0 {
			b.Errorf("%d completed, %d timed out", completed, timedOut)
		}
	})
}

// B49: a cancellation and a success at the same moment: never both a return and a use.
func TestB49CancelAndSuccessAtOnce(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	eachWorkbench(t, func(b *workbench) {
		var won [2]int64
		told := func(side int, s ledger.Settlement, err error) {
			if err != nil || s.Returned+s.Consumed != 7 {
				b.Errorf("%+v, %v", s, err)
			}
			if s.Won {
				won[side]++
			}
		}
		b.atOnce(rounds, [2]func(*ledger.Ledger, string){
			func(l *ledger.Ledger, job string) {
				s, err := l.Cancel(b.Context(), job, "")
				told(0, s, err)
			},
			func(l *ledger.Ledger, job string) {
				r := ledger.Report{Job: job, Outcome: ledger.Completed, Source: ledger.Callback}
				s, err := l.Settle(b.Context(), r)
				told(1, s, err)
			},
		})
		b.balance(fmt.Sprint(7*won[0], " 0 ", 7*won[1], " 0"))
		b.Logf("%d canceled, %d completed", won[0], won[1])
		if won[0]+won[1] != int64(rounds) || won[0] == 0 || won[1] == 0 {
			b.Errorf("%v wins in %d rounds", won, rounds)
		}
		b.same(b.query(`SELECT COUNT(*) FROM entries WHERE kind IN ('release', 'consume')`),
			[]string{fmt.Sprint(rounds)})
	})
}
