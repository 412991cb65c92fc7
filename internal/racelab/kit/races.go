package kit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The scenarios in which processes are released at once. They are played in rounds, because a race is
// not lost every time.

const racers = 8

// race plays rounds of: prepare, which is a script, send the requests at once, and check the replies.
func (s *stage) race(prepare string, requests func() [][]string, check func([]reply) error) error {
	return s.repeat(func() error {
		if err := s.play(prepare); err != nil {
			return err
		}
		replies, err := s.atOnce(requests())
		if err != nil {
			return err
		}
		return check(replies)
	})
}

// fixed makes the same requests in each round.
func fixed(requests ...[]string) func() [][]string { return func() [][]string { return requests } }

// inTurn deals two requests out to the racers, the other one first in every other round.
func (s *stage) inTurn(a, b string) func() [][]string {
	return func() [][]string {
		pair := [][]string{{a}, {b}}
		if s.round%2 == 1 {
			pair = [][]string{{b}, {a}}
		}
		return slices.Repeat(pair, racers/2)
	}
}

const oneJob = `
	grant ann 7 key-1 -> ok
	create job-1 ann 7 MODE -> ok`

func failuresRace(s *stage) error {
	reports := slices.Repeat([][]string{{"notify job-1 failed", "notify job-1 failed"}}, racers)
	return s.race(oneJob, fixed(reports...), func(replies []reply) error {
		_, err := winner(replies)
		return worst(err, s.play(`balance ann -> ok 7 0 -- its cost, once`))
	})
}

func competingEnds(s *stage) error {
	return s.race(oneJob, s.inTurn("notify job-1 completed", "notify job-1 failed"), s.endedOnce)
}

// endedOnce checks the replies to reports of one job's end, and the balance that belongs to it.
func (s *stage) endedOnce(replies []reply) error {
	outcome, err := winner(replies)
	if err != nil {
		return err // nobody knows what the balance should be
	}
	return s.endedAs(outcome)
}

// endedAs checks the balance of an owner whose one job, of 7 credits, has ended.
func (s *stage) endedAs(outcome string) error {
	back := 7
	if outcome == "completed" {
		back = 0
	}
	return s.play(fmt.Sprintf("balance ann -> ok %d 0 -- the job ended as %s", back, outcome))
}

func sweepRace(s *stage) error {
	const prepare = `
		time @0 -> ok
		grant ann 7 key-1 -> ok
		create job-1 ann 7 MODE @60 -> ok
		time @60 -> ok`
	return s.race(prepare, s.inTurn("sweep", "notify job-1 completed"), s.sweptOrEnded)
}

// sweptOrEnded checks the replies to sweeps and to reports of one job's end: if no report won, a sweep has.
func (s *stage) sweptOrEnded(replies []reply) error {
	reports := slices.DeleteFunc(replies, func(r reply) bool { return r.request == "sweep" })
	if tally(reports)["lost timed_out"] == len(reports) {
		return s.endedAs("timed_out")
	}
	return s.endedOnce(reports)
}

// winner checks that one of several reports of one job's end won it, and that all others were told its
// outcome, which it gives.
func winner(replies []reply) (outcome string, err error) {
	told := tally(replies)
	for _, r := range replies {
		said := strings.Fields(r.request)[2]
		if fits(r.answer, wonWord+" "+said) && told[wonWord+" "+said] == 1 &&
			told[lostWord+" "+said] == len(replies)-1 {
			return said, nil
		}
	}
	return "", faultf("%d reports of one job's end, at once, were answered %s; "+
		"expected won once, and lost with the winner's outcome %s", len(replies), told, times(len(replies)-1))
}

// answers counts how often each answer was given.
type answers map[string]int

func tally(replies []reply) answers {
	a := answers{}
	for _, r := range replies {
		words := strings.Fields(r.answer)
		if fits(r.answer, wonWord) || fits(r.answer, lostWord) {
			a[strings.Join(words[:min(2, len(words))], " ")]++
		} else {
			a[words[0]]++ // the rest is for people
		}
	}
	return a
}

// String lists the answers.
func (a answers) String() string {
	var list []string
	for _, answer := range slices.Sorted(maps.Keys(a)) {
		list = append(list, fmt.Sprintf("%q %s", answer, times(a[answer])))
	}
	return strings.Join(list, ", ")
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func twoCreates(s *stage) error {
	both := fixed([]string{"create job-a ann 205 MODE"}, []string{"create job-b ann 205 MODE"})
	return s.race(`grant ann 615 key-1 -> ok`, both, func(replies []reply) error {
		return worst(created(replies, 2),
			s.play(`balance ann -> ok 205 HELD410 -- of 615 two jobs have taken 205 each`))
	})
}

func overspend(s *stage) error {
	requests := make([][]string, racers)
	for i := range requests {
		requests[i] = []string{fmt.Sprintf("create job-%d ann 205 MODE", i+1)}
	}
	return s.race(`grant ann 300 key-1 -> ok`, fixed(requests...), func(replies []reply) error {
		return worst(created(replies, 1),
			s.play(`balance ann -> ok 95 HELD205 -- of 300 one job has taken 205`))
	})
}

// created checks how many of several jobs, of one owner and at once, were created; the others must have
// been refused.
func created(replies []reply, want int) error {
	told := tally(replies)
	if told[okWord] == want && told[refusedWord] == len(replies)-want {
		return nil
	}
	return faultf("%d jobs, created at once, were answered %s; expected ok %s, refused %s",
		len(replies), told, times(want), times(len(replies)-want))
}

func twoCompletions(s *stage) error {
	const prepare = `
		grant ann 615 key-1 -> ok
		create job-a ann 205 hold -> ok
		create job-b ann 205 hold -> ok`
	both := fixed([]string{"notify job-a completed"}, []string{"notify job-b completed"})
	return s.race(prepare, both, func(replies []reply) (err error) {
		if told := tally(replies); told["won completed"] != 2 {
			err = faultf(`two jobs completed at once, and were answered %s; expected "won completed" 2 times`, told)
		}
		return worst(err, s.play(`balance ann -> ok 205 0 -- both have used the 205 that they held`))
	})
}
