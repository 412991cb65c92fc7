package demo

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
)

// TestCheckFindsWhatIsWrong plays a demo, and then compares its ledger with what did not happen: each
// difference is told.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	d := newDirector(Options{Dir: t.TempDir(), Jobs: 14, Seed: 2})
	stop, err := d.setUp(t.Context())
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	if err == nil {
		err = d.play(t.Context())
	}
	if err != nil || len(d.result.Broken) != 0 {
		t.Fatalf("%v, %v", err, d.result.Broken)
	}
	completed := slices.IndexFunc(d.plans, func(p plan) bool { return p.outcome == ledger.Completed })
	for what, c := range map[string]struct {
		tamper func()
		want   string
	}{
		"a job ended otherwise": {
			func() { d.plans[0].outcome = opposite(d.plans[0].outcome) }, "job job-00001 (on time) is ",
		},
		"a verdict nobody wrote down": {func() { d.verdicts[ledger.Won]++ }, "callbacks were answered with"},
		"a verdict nobody was told": {
			func() { delete(d.verdicts, ledger.Duplicate) }, "callbacks were answered with",
		},
		"an event that was lost": {func() {
			for id := range d.receiver.taken {
				delete(d.receiver.taken, id)
				break
			}
		}, "the ledger has "},
		"an event under another id": {func() {
			for id, said := range d.receiver.taken {
				delete(d.receiver.taken, id)
				said.ID += "x"
				d.receiver.taken[said.ID] = said
				break
			}
		}, "the ledger has "},
		"an event that was not genuine": {func() { d.receiver.complain("an event is not genuine") }, "not genuine"},
		"a price":                       {func() { d.plans[completed].cost++ }, "and should have"},
		"a contradiction that was not": {
			func() { d.plans[0].story = Contradicted }, "has 0 events of a contradiction, not 1",
		},
		"a contradiction that was": {
			func() { d.plans[5].story = OnTime }, "has 1 events of a contradiction, not 0",
		},
		"an owner who paid nothing": {
			func() { d.plans[completed].owner = "nobody" }, "and should have",
		},
	} {
		plans, verdicts, taken := slices.Clone(d.plans), maps.Clone(d.verdicts), maps.Clone(d.receiver.taken)
		c.tamper()
		if err := d.check(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !slices.ContainsFunc(d.result.Broken, func(line string) bool { return strings.Contains(line, c.want) }) {
			t.Errorf("%s: found only %q", what, d.result.Broken)
		}
		d.plans, d.verdicts, d.receiver.taken = plans, verdicts, taken
		d.receiver.broken, d.result.Broken = nil, nil
	}
	if err := d.check(t.Context()); err != nil || len(d.result.Broken) != 0 {
		t.Errorf("with nothing changed: %v, %v", err, d.result.Broken)
	}
}

// TestBrokenOff: a demo that cannot go on says why, and ends all that it started.
func TestBrokenOff(t *testing.T) {
	if _, err := Run(t.Context(), Options{Dir: "/nonexistent/place", Jobs: 1}); err == nil {
		t.Error("it played without a directory")
	}
	d := newDirector(Options{Dir: t.TempDir(), Jobs: 50, Seed: 3})
	stop, err := d.setUp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.orders.URL = d.receiver.url // where nobody takes jobs
	err = d.play(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the provider did not take the job") {
		t.Errorf("got %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
