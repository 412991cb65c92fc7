package kit

import "slices"

// scenario is one way in which a ledger can lose or invent money.
type scenario struct {
	name   string
	shows  string
	needs  []string // abilities; one that is a mode means that mode only
	script string   // or, where two processes in turn do not show it:
	run    func(*stage) error
}

// Scenario tells of a scenario.
type Scenario struct {
	Name  string
	Shows string   // what must hold
	Needs []string // abilities; none: every program can be checked
}

// Scenarios lists all of them, in the order in which they are played.
func Scenarios() (list []Scenario) {
	for i := range scenarios {
		list = append(list, Scenario{scenarios[i].name, scenarios[i].shows, scenarios[i].needs})
	}
	return list
}

func (sc *scenario) playOn(s *stage) error {
	if sc.run != nil {
		return sc.run(s)
	}
	s.nextRound()
	return s.play(sc.script)
}

// missing gives the abilities that the scenario needs and the program does not name.
func (sc *scenario) missing(abilities []string) (names []string) {
	for _, name := range sc.needs {
		if !slices.Contains(abilities, name) {
			names = append(names, name)
		}
	}
	return names
}

// modes gives those to play in: the one that the scenario needs, else all that the program names.
func (sc *scenario) modes(abilities []string) (names []string) {
	var asked []string
	for _, mode := range Abilities[:modesCount] {
		if slices.Contains(sc.needs, mode.Name) {
			return []string{mode.Name}
		}
		if slices.Contains(abilities, mode.Name) {
			asked = append(asked, mode.Name)
		}
	}
	return asked
}

var scenarios = []scenario{
	{name: "failures-race", run: failuresRace,
		shows: "16 reports of a failure: one win, one refund"},
	{name: "competing-ends", run: competingEnds,
		shows: "completed and failed at once: one wins"},
	{name: "already-completed", script: alreadyCompleted,
		shows: "a failure after the completion: no refund"},
	{name: "killed-in-notify", run: killedNotify.play,
		shows: "killed while settling: all of it or nothing"},
	{name: "unknown-job", script: unknownJob,
		shows: "a report of an unknown job leaves no trace"},
	{name: "unknown-owner", script: unknownOwner,
		shows: "no credits, no job, no refund for it"},
	{name: "missing-balance", script: missingBalance, needs: []string{"lose"},
		shows: "a refund with nowhere to go is not half done"},
	{name: "stray-refund", script: strayRefund, needs: []string{"charge", "stray"},
		shows: "refunded, yet open: refused, not paid again"},
	{name: "two-creates", run: twoCreates,
		shows: "two jobs of 205 at once take 410, not 205"},
	{name: "overspend", run: overspend,
		shows: "8 jobs of 205 on 300 credits: one is created"},
	{name: "two-completions", run: twoCompletions, needs: []string{"hold"},
		shows: "two completions of 205 at once use 410"},
	{name: "own-hold", script: ownHold, needs: []string{"hold"},
		shows: "a repeated completion uses no other's hold"},
	{name: "own-credits", script: ownCredits, needs: []string{"hold", "expiry"},
		shows: "a job uses the credits that it held itself"},
	{name: "repeated-failure", script: repeatedFailure,
		shows: "one job fails five times: its cost, once"},
	{name: "failed-then-canceled", script: failedThenCanceled, needs: []string{"canceled"},
		shows: "another reason for its end: no second refund"},
	{name: "two-jobs", script: twoJobs,
		shows: "each job returns its own cost to its owner"},
	{name: "spend-returned", script: spendReturned,
		shows: "what came back can be spent, once"},
	{name: "create-twice", script: createTwice,
		shows: "a job that is created twice is paid once"},
	{name: "grant-twice", script: grantTwice, needs: []string{"keys"},
		shows: "a grant that is repeated grants once"},
	{name: "killed-in-create", run: killedCreate.play,
		shows: "killed while creating: all of it or nothing"},
	{name: "restart", script: restart,
		shows: "what was answered outlives its process"},
	{name: "stale-attempt", script: staleAttempt, needs: []string{"attempts"},
		shows: "a report of an earlier attempt ends nothing"},
	{name: "expired-credits", script: expiredCredits, needs: []string{"expiry"},
		shows: "credits cannot be spent from their end on"},
	{name: "late-success", script: lateSuccess, needs: []string{"deadline"},
		shows: "a success after the time-out comes too late"},
	{name: "sweep-race", run: sweepRace, needs: []string{"deadline"},
		shows: "the sweep and the success at once: one wins"},
}
