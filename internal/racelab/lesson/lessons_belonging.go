package lesson

// lessonsOfBelonging are about what belongs to which job, and to which attempt at it.
var lessonsOfBelonging = []Lesson{
	{
		Name:  "any-held-lot",
		Title: "a job consumes what another job holds",
		Shows: "gen-a holds 205 of the first lot and gen-b 205 of the second; gen-b completes, and consumes what " +
			"its owner holds in the first lot that has any. When gen-a fails there is nothing left to release, " +
			"and what gen-b held stays held for ever.",
		Engines: everyEngine,
		Actors:  []string{"gen-b", "gen-a"},
		Tables: `
CREATE TABLE lots (id INTEGER PRIMARY KEY, owner TEXT NOT NULL,
  available INTEGER NOT NULL, held INTEGER NOT NULL, used INTEGER NOT NULL);
CREATE TABLE postings (job_id TEXT PRIMARY KEY, lot_id INTEGER NOT NULL REFERENCES lots (id));
INSERT INTO lots VALUES (1, 'alice', 0, 205, 0), (2, 'alice', 0, 205, 0);
INSERT INTO postings VALUES ('gen-a', 1), ('gen-b', 2);`,
		Wrong: `
gen-b UPDATE lots SET held = held - 205, used = used + 205 WHERE held >= 205
  AND id = (SELECT MIN(id) FROM lots WHERE owner = 'alice' AND held >= 205)
gen-a UPDATE lots SET held = held - 205, available = available + 205 WHERE held >= 205
  AND id = (SELECT lot_id FROM postings WHERE job_id = 'gen-a')`,
		Fixed: `
gen-b UPDATE lots SET held = held - 205, used = used + 205 WHERE held >= 205
  AND id = (SELECT lot_id FROM postings WHERE job_id = 'gen-b')
gen-a UPDATE lots SET held = held - 205, available = available + 205 WHERE held >= 205
  AND id = (SELECT lot_id FROM postings WHERE job_id = 'gen-a')`,
		Questions: []Question{
			{"held", `SELECT SUM(held) FROM lots`, 0},
			{"available", `SELECT SUM(available) FROM lots`, 205},
			{"used", `SELECT SUM(used) FROM lots`, 205},
		},
		Guard: "A job consumes and releases the postings of its own hold, and never just something that its " +
			"owner holds.",
		Function: "ledger.paidBy",
	},
	{
		Name:  "stale-attempt",
		Title: "an old attempt's failure ends the new one",
		Shows: "Attempt 1 was given up and attempt 2 is at work, when the report that attempt 1 failed arrives. " +
			"It ends the job and returns its credits, and the success of attempt 2 comes too late to be paid for.",
		Engines: everyEngine,
		Actors:  []string{"attempt-1", "attempt-2"},
		Tables:  heldJob(`attempt INTEGER NOT NULL`, `2`),
		Wrong: `
attempt-1 BEGIN
attempt-1 UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
attempt-1 only if rows = 1
attempt-1 UPDATE balances SET held = held - 7, available = available + 7 WHERE owner = 'alice'
attempt-1 COMMIT
attempt-2 BEGIN
attempt-2 UPDATE jobs SET status = 'completed' WHERE id = 'j1' AND status = 'processing'
attempt-2 only if rows = 1
attempt-2 UPDATE balances SET held = held - 7, used = used + 7 WHERE owner = 'alice'
attempt-2 COMMIT`,
		Fixed: `
attempt-1 BEGIN
attempt-1 UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing' AND attempt = 1
attempt-1 only if rows = 1
attempt-1 UPDATE balances SET held = held - 7, available = available + 7 WHERE owner = 'alice'
attempt-1 COMMIT
attempt-2 BEGIN
attempt-2 UPDATE jobs SET status = 'completed' WHERE id = 'j1' AND status = 'processing' AND attempt = 2
attempt-2 only if rows = 1
attempt-2 UPDATE balances SET held = held - 7, used = used + 7 WHERE owner = 'alice'
attempt-2 COMMIT`,
		Questions: usedAndReturned,
		Guard: "The UPDATE that ends a job names the attempt that the report is about: what is about another " +
			"one is stale, and moves nothing.",
		Function: "ledger.claim.take",
	},
	{
		Name:  "timeout-refund",
		Title: "the sweeper pays, then the success arrives",
		Shows: "A job is past its deadline and a provider has it, so nobody knows how it will end; the sweeper " +
			"takes it for lost and returns its credits. Then the provider reports a success: the work is " +
			"delivered, and costs its owner nothing.",
		Engines: everyEngine,
		Actors:  []string{"sweeper", "callback"},
		Tables:  heldJob(`submission TEXT NOT NULL`, `'accepted'`),
		Wrong: `
sweeper BEGIN
sweeper UPDATE jobs SET status = 'timed_out' WHERE id = 'j1' AND status = 'processing'
sweeper only if rows = 1
sweeper UPDATE balances SET held = held - 7, available = available + 7 WHERE owner = 'alice'
sweeper COMMIT
callback BEGIN
callback UPDATE jobs SET status = 'completed' WHERE id = 'j1' AND status = 'processing'
callback only if rows = 1
callback UPDATE balances SET held = held - 7, used = used + 7 WHERE owner = 'alice'
callback COMMIT`,
		Fixed: `
sweeper BEGIN
sweeper UPDATE jobs SET status = 'timed_out' WHERE id = 'j1' AND status = 'processing'
  AND submission = 'none'
sweeper only if rows = 1
sweeper UPDATE balances SET held = held - 7, available = available + 7 WHERE owner = 'alice'
sweeper COMMIT
callback BEGIN
callback UPDATE jobs SET status = 'completed' WHERE id = 'j1' AND status = 'processing'
callback only if rows = 1
callback UPDATE balances SET held = held - 7, used = used + 7 WHERE owner = 'alice'
callback COMMIT`,
		Questions: usedAndReturned,
		Guard: "The sweep ends only jobs that were never submitted: what a provider may have waits for a report, " +
			"or for a person.",
		Function: "ledger.sweeping.timeOut",
	},
}

// heldJob is a job that holds 7 credits while a provider works on it, with a column more.
func heldJob(column, value string) string {
	return `
CREATE TABLE balances (owner TEXT PRIMARY KEY, available INTEGER NOT NULL, held INTEGER NOT NULL,
  used INTEGER NOT NULL);
CREATE TABLE jobs (id TEXT PRIMARY KEY, owner TEXT NOT NULL, status TEXT NOT NULL, ` + column + `);
INSERT INTO balances VALUES ('alice', 0, 7, 0);
INSERT INTO jobs VALUES ('j1', 'alice', 'processing', ` + value + `);`
}

// usedAndReturned is right for a held job of 7 credits that completes.
var usedAndReturned = []Question{
	{"used", `SELECT used FROM balances`, 7},
	{"available", `SELECT available FROM balances`, 0},
}
