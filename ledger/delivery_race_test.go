package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// B136: an event that is committed after a later one is delivered all the same. One settlement stops at each
// of its statements in turn while another begins, commits and is told of; then it goes on. On SQLite there is
// no such order: the second waits for the first.
func TestB136SlowTransactions(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		b, g := newWorkbench(t, dsn), new(gate)
		g.set(0)
		slow := b.open(ledger.Options{Intercept: g.intercept})
		b.endpoint("https://app.example/hook")
		b.give("slow", int64(rounds), ofOwner("slow"))
		b.give("quick", int64(rounds), ofOwner("quick"))
		later, call := 0, 0
		for round := range rounds {
			call++
			slowEvent, quickEvent := b.twoJobs(round)
			g.set(call)
			ended := make(chan error, 1)
			go func() {
				_, err := slow.Settle(b.Context(), failedReport(fmt.Sprint("slow", round)))
				ended <- err
			}()
			select {
			case <-g.reached:
			case err := <-ended:
				b.ok(err)
				ended <- nil
				call = 0 // it has no more statements: from the first again
			}
			_, err := b.Settle(b.Context(), failedReport(fmt.Sprint("quick", round)))
			b.ok(err)
			told := b.deliverAll()
			close(g.resume)
			b.ok(<-ended)
			if told[slowEvent] == 0 {
				later++
			}
			for event, n := range b.deliverAll() {
				told[event] += n
			}
			if len(told) != 2 || told[slowEvent] != 1 || told[quickEvent] != 1 {
				b.Fatalf("round %d, stopped at %d: told %v", round, call, told)
			}
		}
		b.Logf("in %d of %d rounds, the first to begin was the last to commit", later, rounds)
		if later < rounds/2 {
			b.Errorf("in only %d rounds, the first to begin was the last to commit", later)
		}
		b.audit()
	})
}

func failedReport(job string) ledger.Report {
	return ledger.Report{Job: job, Outcome: ledger.Failed, Source: ledger.Callback}
}

// twoJobs makes a job of each owner, and gives the names of the events that their ends will be.
func (b *workbench) twoJobs(round int) (slow, quick string) {
	b.Helper()
	for _, owner := range []string{"slow", "quick"} {
		p := ledger.JobParams{ID: fmt.Sprint(owner, round), Owner: owner, Cost: 1}
		_, err := b.CreateJob(b.Context(), p)
		b.ok(err)
	}
	return fmt.Sprint("settled:slow", round), fmt.Sprint("settled:quick", round)
}

// deliverAll tells of all that there is to tell of now, and gives how often of each event.
func (b *workbench) deliverAll() map[string]int {
	b.Helper()
	told := map[string]int{}
	for {
		list, err := b.ClaimDeliveries(b.Context(), 10, time.Minute)
		b.ok(err)
		if len(list) == 0 {
			return told
		}
		for _, d := range list {
			told[d.Event.ID]++
			b.answer(d, 200)
		}
	}
}
