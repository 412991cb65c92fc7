package lesson

// lessonsOfReading are about numbers that were right when they were read.
var lessonsOfReading = []Lesson{
	{
		Name:  "lost-update",
		Title: "two holds read one number, both write it",
		Shows: "T1 and T2 each hold 205: both read that nothing is held, and both write that 205 are, where 410 " +
			"must be. T2 even waits for T1's lock, but what it writes then was computed before; and no sum " +
			"over the buckets finds it.",
		Engines: everyEngine,
		Actors:  []string{"T1", "T2"},
		Tables: `
CREATE TABLE balances (owner TEXT PRIMARY KEY, available INTEGER NOT NULL, held INTEGER NOT NULL);
INSERT INTO balances VALUES ('alice', 615, 0);`,
		Wrong: `
T1 available, held = SELECT available, held FROM balances WHERE owner = 'alice'
T2 available, held = SELECT available, held FROM balances WHERE owner = 'alice'
T1 BEGIN
T1 UPDATE balances SET available = :available - 205, held = :held + 205 WHERE owner = 'alice'
T2 BEGIN
T2 UPDATE balances SET available = :available - 205, held = :held + 205 WHERE owner = 'alice'
T1 COMMIT
T2 COMMIT`,
		Fixed: `
T1 BEGIN
T1 UPDATE balances SET available = available - 205, held = held + 205 WHERE owner = 'alice'
T2 BEGIN
T2 UPDATE balances SET available = available - 205, held = held + 205 WHERE owner = 'alice'
T1 COMMIT
T2 COMMIT`,
		Questions: []Question{
			{"held", `SELECT held FROM balances`, 410},
			{"available", `SELECT available FROM balances`, 205},
			{"sum of both", `SELECT available + held FROM balances`, 615},
		},
		Guard: "The database computes from the row that it has locked, never from a number that the program " +
			"read before.",
		Function: "ledger.account.apply",
	},
	{
		Name:  "check-then-act",
		Title: "both check the same 205, both spend it",
		Shows: "Two jobs of 205 are created for an owner who has 205 credits: each program checks first, and " +
			"both are right when they look. When they act, one of them is right no longer, and the balance falls " +
			"below zero.",
		Engines: everyEngine,
		Actors:  []string{"T1", "T2"},
		Tables: `
CREATE TABLE balances (owner TEXT PRIMARY KEY, available INTEGER NOT NULL);
CREATE TABLE jobs (id TEXT PRIMARY KEY, owner TEXT NOT NULL, cost INTEGER NOT NULL);
INSERT INTO balances VALUES ('alice', 205);`,
		Wrong: `
T1 available = SELECT available FROM balances WHERE owner = 'alice'
T2 available = SELECT available FROM balances WHERE owner = 'alice'
T1 only if available >= 205
T2 only if available >= 205
T1 BEGIN
T1 UPDATE balances SET available = available - 205 WHERE owner = 'alice'
T2 BEGIN
T2 UPDATE balances SET available = available - 205 WHERE owner = 'alice'
T1 INSERT INTO jobs VALUES ('j1', 'alice', 205)
T1 COMMIT
T2 INSERT INTO jobs VALUES ('j2', 'alice', 205)
T2 COMMIT`,
		Fixed: `
T1 BEGIN
T1 UPDATE balances SET available = available - 205 WHERE owner = 'alice' AND available >= 205
T2 BEGIN
T2 UPDATE balances SET available = available - 205 WHERE owner = 'alice' AND available >= 205
T1 only if rows = 1
T1 INSERT INTO jobs VALUES ('j1', 'alice', 205)
T1 COMMIT
T2 only if rows = 1
T2 INSERT INTO jobs VALUES ('j2', 'alice', 205)
T2 COMMIT`,
		Questions: []Question{
			{"available", `SELECT available FROM balances`, 0},
			{"jobs", `SELECT COUNT(*) FROM jobs`, 1},
		},
		Guard:    "The check stands in the WHERE of the UPDATE that takes the credits, and 0 rows stop it.",
		Function: "ledger.updateLot",
	},
	{
		Name:  "deferred-upgrade",
		Title: "a reader that cannot become a writer",
		Shows: "BEGIN DEFERRED locks nothing, so both transactions read, and then both want to write. The second " +
			"is answered \"database is locked\" at once: its busy_timeout is a minute, but no waiting makes " +
			"what it has read true again.",
		Engines: []string{SQLite},
		Actors:  []string{"T1", "T2"},
		Tables: `
CREATE TABLE balances (owner TEXT PRIMARY KEY, available INTEGER NOT NULL, held INTEGER NOT NULL);
INSERT INTO balances VALUES ('alice', 615, 0);`,
		Wrong: `
T1 BEGIN DEFERRED
T1 available = SELECT available FROM balances WHERE owner = 'alice'
T1 only if available >= 205
T2 BEGIN DEFERRED
T2 available = SELECT available FROM balances WHERE owner = 'alice'
T2 only if available >= 205
T1 UPDATE balances SET available = available - 205, held = held + 205 WHERE owner = 'alice'
T2 UPDATE balances SET available = available - 205, held = held + 205 WHERE owner = 'alice'
T1 COMMIT
T2 COMMIT`,
		Fixed: `
T1 BEGIN
T1 available = SELECT available FROM balances WHERE owner = 'alice'
T1 only if available >= 205
T2 BEGIN
T2 available = SELECT available FROM balances WHERE owner = 'alice'
T2 only if available >= 205
T1 UPDATE balances SET available = available - 205, held = held + 205 WHERE owner = 'alice'
T2 UPDATE balances SET available = available - 205, held = held + 205 WHERE owner = 'alice'
T1 COMMIT
T2 COMMIT`,
		Questions: []Question{
			{"held", `SELECT held FROM balances`, 410},
			{"available", `SELECT available FROM balances`, 205},
		},
		Guard: "A transaction that will write begins with the write lock (BEGIN IMMEDIATE), before it has read " +
			"anything: there it can wait.",
		Function: "ledger.write",
	},
	{
		Name:  "process-flag",
		Title: "each process has a flag of its own",
		Shows: "A flag in the memory of the program lets only the first report refund a failed job. The second " +
			"process, here a second connection with variables of its own, has a flag of its own, and refunds " +
			"the job again.",
		Engines: everyEngine,
		Actors:  []string{"process-1", "process-2"},
		Tables:  failedJob,
		Wrong: `
process-1 only if settled = 0
process-1 settled = 1
process-2 only if settled = 0
process-2 settled = 1
process-1 BEGIN
process-1 UPDATE jobs SET status = 'failed' WHERE id = 'j1'
process-2 BEGIN
process-2 UPDATE jobs SET status = 'failed' WHERE id = 'j1'
process-1 UPDATE balances SET available = available + 7 WHERE owner = 'alice'
process-1 COMMIT
process-2 UPDATE balances SET available = available + 7 WHERE owner = 'alice'
process-2 COMMIT`,
		Fixed: `
process-1 BEGIN
process-1 UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
process-2 BEGIN
process-2 UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
process-1 only if rows = 1
process-1 UPDATE balances SET available = available + 7 WHERE owner = 'alice'
process-1 COMMIT
process-2 only if rows = 1
process-2 UPDATE balances SET available = available + 7 WHERE owner = 'alice'
process-2 COMMIT`,
		Questions: []Question{{"available", `SELECT available FROM balances`, 7}},
		Guard: "The job's own row is the flag: the one who changes its status from open to ended has won, and " +
			"no one else pays.",
		Function: "ledger.claim.take",
	},
}

// failedJob is a job whose 7 credits were used when it was created, and which a provider works on.
const failedJob = `
CREATE TABLE balances (owner TEXT PRIMARY KEY, available INTEGER NOT NULL);
CREATE TABLE jobs (id TEXT PRIMARY KEY, owner TEXT NOT NULL, cost INTEGER NOT NULL, status TEXT NOT NULL);
INSERT INTO balances VALUES ('alice', 0);
INSERT INTO jobs VALUES ('j1', 'alice', 7, 'processing');`
