package kit

// The scenarios that two processes in turn can play. Jobs in mode hold show their cost as held while they
// are open and those in mode charge do not: balances are asked when no job is open, where a scenario is
// for both.

const alreadyCompleted = `
	grant ann 7 key-1 -> ok
	create job-1 ann 7 MODE -> ok
	notify job-1 completed -> won completed
	notify job-1 failed -> lost completed -- it has ended, and how it ended is what the loser is told
	notify job-1 failed -> lost completed
	balance ann -> ok 0 0 -- the 7 credits are used`

const unknownJob = `
	grant ann 7 key-1 -> ok
	notify job-1 failed -> refused -- nobody created it
	notify job-1 completed -> refused -- nobody created it
	balance ann -> ok 7 0
	create job-1 ann 7 MODE -> ok -- the reports before it have left nothing behind
	notify job-1 failed -> won failed -- it is the first report of a job that exists
	balance ann -> ok 7 0`

const unknownOwner = `
	create job-1 ann 7 MODE -> refused -- ann has no credits
	notify job-1 failed -> refused -- the job was not created
	grant ann 5 key-1 -> ok
	balance ann -> ok 5 0 -- a refused job returns nothing
	create job-1 ann 7 MODE -> refused -- ann has 5
	notify job-1 failed -> refused -- the job was not created
	balance ann -> ok 5 0 -- a refused job takes nothing and returns nothing`

const missingBalance = `
	grant ann 7 key-1 -> ok
	create job-1 ann 7 MODE -> ok
	lose ann -> ok
	notify job-1 failed -> refused -- its refund has no balance to go to
	notify job-1 failed -> refused -- the failure before has changed nothing, its end neither
	restore ann -> ok
	notify job-1 failed -> won failed -- what could not be done before can be done now
	notify job-1 failed -> lost failed
	balance ann -> ok 7 0`

const strayRefund = `
	grant ann 7 key-1 -> ok
	create job-1 ann 7 MODE -> ok
	stray job-1 -> ok
	notify job-1 failed -> refused -- the books say that it was paid back, and that it is open
	notify job-1 failed -> refused -- it is still so
	balance ann -> ok 0 0 -- nothing may move before somebody has looked`

const ownHold = `
	grant ann 410 key-1 -> ok
	create job-1 ann 205 hold -> ok
	create job-2 ann 205 hold -> ok
	balance ann -> ok 0 410
	notify job-1 completed -> won completed
	notify job-1 completed -> lost completed -- it has ended already
	balance ann -> ok 0 205 -- these are held by job-2
	notify job-2 failed -> won failed
	balance ann -> ok 205 0`

const ownCredits = `
	time @0 -> ok
	grant ann 205 key-1 @100 -> ok
	grant ann 205 key-2 -> ok
	create job-1 ann 205 hold -> ok -- it holds the credits that end first
	create job-2 ann 205 hold -> ok -- it holds the others
	notify job-2 completed -> won completed
	balance ann -> ok 0 205
	time @100 -> ok
	notify job-1 failed -> won failed
	balance ann -> ok 0 0 -- what job-1 held has ended, and job-2 used what it held itself`

const repeatedFailure = `
	grant ann 7 key-1 -> ok
	create job-1 ann 7 MODE -> ok
	notify job-1 failed -> won failed
	notify job-1 failed -> lost failed -- it was reported before, by another process
	notify job-1 failed -> lost failed -- it was reported before
	notify job-1 failed -> lost failed
	notify job-1 failed -> lost failed
	balance ann -> ok 7 0 -- its cost, once`

const failedThenCanceled = `
	grant ann 7 key-1 -> ok
	create job-1 ann 7 MODE -> ok
	notify job-1 failed -> won failed
	notify job-1 canceled -> lost failed -- it has ended, for another reason
	balance ann -> ok 7 0 -- its cost, once
	create job-2 ann 7 MODE -> ok
	notify job-2 canceled -> won canceled -- a canceled job returns its cost as a failed one does
	notify job-2 failed -> lost canceled
	balance ann -> ok 7 0`

const twoJobs = `
	grant ann 31 key-1 -> ok
	grant bob 5 key-2 -> ok
	create job-1 ann 7 MODE -> ok
	create job-2 ann 11 MODE -> ok
	create job-3 ann 13 MODE -> ok
	create job-4 bob 5 MODE -> ok
	notify job-1 failed -> won failed
	notify job-2 completed -> won completed -- the end of job-1 is not that of job-2
	notify job-3 failed -> won failed
	balance ann -> ok 20 0 -- 7 of job-1 and 13 of job-3; job-2 has used its 11
	notify job-4 failed -> won failed
	balance bob -> ok 5 0
	balance ann -> ok 20 0 -- job-4 was paid by bob`

const spendReturned = `
	grant ann 7 key-1 -> ok
	create job-1 ann 7 MODE -> ok
	create job-2 ann 1 MODE -> refused -- job-1 has it all
	notify job-1 failed -> won failed
	create job-2 ann 6 MODE -> ok -- what job-1 returned can be spent; the refusal before burns no name
	notify job-2 completed -> won completed
	balance ann -> ok 1 0
	create job-3 ann 2 MODE -> refused -- 1 is left
	create job-4 ann 1 MODE -> ok
	notify job-4 completed -> won completed
	balance ann -> ok 0 0`

const createTwice = `
	grant ann 100 key-1 -> ok
	create job-1 ann 7 MODE -> ok
	create job-1 ann 7 MODE -> ok|refused
	notify job-1 failed -> won failed
	balance ann -> ok 100 0 -- it is one job, and was paid once
	create job-1 ann 7 MODE -> ok|refused
	notify job-1 failed -> lost failed -- a job ends once; its name is not free again
	balance ann -> ok 100 0`

const grantTwice = `
	grant ann 7 key-1 -> ok
	grant ann 7 key-1 -> ok|refused
	balance ann -> ok 7 0 -- it is one grant
	grant ann 7 key-2 -> ok
	balance ann -> ok 14 0 -- it is another grant
	kill
	grant ann 7 key-1 -> ok|refused
	balance ann -> ok 14 0 -- a key is used for ever`

const restart = `
	grant ann 7 key-1 -> ok
	kill
	create job-1 ann 7 MODE -> ok -- the grant was answered before the kill
	kill
	notify job-1 failed -> won failed -- the job was answered before the kill
	kill
	notify job-1 failed -> lost failed -- its end was answered before the kill
	balance ann -> ok 7 0`

const staleAttempt = `
	grant ann 7 key-1 -> ok
	create job-1 ann 7 MODE -> ok
	submit job-1 -> ok 1
	submit job-1 -> ok 2
	notify job-1 failed 1 -> refused -- it is about attempt 1, and attempt 2 is under way
	notify job-1 completed 2 -> won completed -- the report before has ended nothing
	notify job-1 failed 1 -> refused|lost completed
	balance ann -> ok 0 0`

const expiredCredits = `
	time @0 -> ok
	grant ann 100 key-1 @60 -> ok
	grant ann 5 key-2 -> ok
	balance ann -> ok 105 0
	time @59 -> ok
	balance ann -> ok 105 0 -- they end at 60
	time @60 -> ok
	balance ann -> ok 5 0 -- 100 have ended at 60
	create job-1 ann 6 MODE -> refused -- 5 are left
	create job-1 ann 5 MODE -> ok
	notify job-1 failed -> won failed
	balance ann -> ok 5 0`

const lateSuccess = `
	time @0 -> ok
	grant ann 18 key-1 -> ok
	create job-1 ann 7 MODE @60 -> ok
	create job-2 ann 11 MODE -> ok
	time @59 -> ok
	sweep -> ok
	create job-3 ann 1 MODE -> refused -- job-1 has time until 60, so nothing came back
	time @60 -> ok
	sweep -> ok
	notify job-1 completed -> lost timed_out -- the sweep has ended it and paid it back
	notify job-2 completed -> won completed -- it has no deadline
	sweep -> ok
	balance ann -> ok 7 0 -- the cost of job-1, once`
