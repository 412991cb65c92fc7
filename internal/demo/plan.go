package demo

import (
	"fmt"
	"math/rand/v2"

	"jobledger/ledger"
)

// Story is what befalls the callbacks of a job.
type Story string

// The stories.
const (
	OnTime       Story = "on time"      // one callback, after the acceptance was recorded
	Duplicated   Story = "duplicated"   // three of the same, at once
	Reordered    Story = "reordered"    // the news that it is running comes after that of its end
	Early        Story = "early"        // it comes before the acceptance was recorded
	Late         Story = "late"         // the poller has found out before it comes
	Contradicted Story = "contradicted" // a second one says the opposite
	Lost         Story = "lost"         // none ever comes
)

// stories are all of them, in the order in which they are told.
var stories = []Story{OnTime, Duplicated, Reordered, Early, Late, Contradicted, Lost}

// owners are who pays, and how much each is granted for a job of the demo.
var owners = []string{"ada", "bob", "cleo"}

const costMax = 20

// plan is one job of the demo.
type plan struct {
	id      string
	owner   string
	cost    int64
	mode    ledger.Mode
	outcome ledger.Outcome
	story   Story
	forgery forgery // who else calls back; empty: nobody

	upstream string // the provider's id, once it has one
}

// plans makes the jobs of a seed. The same seed makes the same jobs; a few jobs have every story.
func plans(jobs int, seed uint64) []plan {
	random := rand.New(rand.NewPCG(seed, 0))
	list := make([]plan, jobs)
	for i := range list {
		p := plan{
			id:      fmt.Sprintf("job-%05d", i+1),
			owner:   owners[random.IntN(len(owners))],
			cost:    1 + random.Int64N(costMax),
			mode:    ledger.ModeHold,
			outcome: ledger.Completed,
			story:   stories[random.IntN(len(stories))],
		}
		if i < len(stories) {
			p.story = stories[i]
		}
		if random.IntN(2) == 0 {
			p.mode = ledger.ModeCharge
		}
		if random.IntN(3) == 0 {
			p.outcome = ledger.Failed
		}
		if n := random.IntN(2 * len(forgeries)); n < len(forgeries) {
			p.forgery = forgeries[n]
		}
		list[i] = p
	}
	return list
}

// opposite is what a lie says.
func opposite(o ledger.Outcome) ledger.Outcome {
	if o == ledger.Completed {
		return ledger.Failed
	}
	return ledger.Completed
}
