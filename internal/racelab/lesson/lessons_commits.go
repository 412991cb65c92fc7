package lesson

// lessonsOfCommits are about what was committed with what.
var lessonsOfCommits = []Lesson{
	{
		Name:  "unique-key-only",
		Title: "one refund, of a job that then completes",
		Shows: "A unique key lets the refund of a job into the journal once and no more, but the job's status is " +
			"in a commit of its own. Between the two commits the callback completes the job, and its owner has " +
			"the work and the credits.",
		Engines: everyEngine,
		Actors:  []string{"poll", "callback"},
		Tables: failedJob + `
CREATE TABLE entries (event_key TEXT PRIMARY KEY, job_id TEXT NOT NULL, amount INTEGER NOT NULL);`,
		Wrong: `
poll BEGIN
poll INSERT INTO entries VALUES ('job-refund:j1', 'j1', 7)
poll UPDATE balances SET available = available + 7 WHERE owner = 'alice'
poll COMMIT
callback UPDATE jobs SET status = 'completed' WHERE id = 'j1' AND status = 'processing'
poll UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'`,
		Fixed: `
poll BEGIN
poll UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
poll only if rows = 1
poll INSERT INTO entries VALUES ('job-refund:j1', 'j1', 7)
poll UPDATE balances SET available = available + 7 WHERE owner = 'alice'
callback UPDATE jobs SET status = 'completed' WHERE id = 'j1' AND status = 'processing'
poll COMMIT`,
		Questions: []Question{
			{"given away", `
				SELECT COALESCE(SUM(e.amount), 0) FROM entries e JOIN jobs j ON j.id = e.job_id
				WHERE j.status = 'completed'`, 0},
			{"refund entries", `SELECT COUNT(*) FROM entries`, 1},
		},
		Guard: "The status, the entry and the balance change in one transaction, and the status first: it " +
			"decides about the rest.",
		Function: "ledger.settle",
	},
	{
		Name:  "refund-then-status",
		Title: "a crash after the refund: it is paid twice",
		Shows: "The refund is committed first and the job's status second, and the worker is killed between the " +
			"two. The job still looks open, so the next one who hears of the failure refunds it again.",
		Engines: everyEngine,
		Actors:  []string{"callback", "poll"},
		Tables:  failedJob,
		Wrong: `
callback UPDATE balances SET available = available + 7 WHERE owner = 'alice'
callback CRASH
poll UPDATE balances SET available = available + 7 WHERE owner = 'alice'
poll UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'`,
		Fixed: `
callback BEGIN
callback UPDATE balances SET available = available + 7 WHERE owner = 'alice'
callback CRASH
poll BEGIN
poll UPDATE balances SET available = available + 7 WHERE owner = 'alice'
poll UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
poll only if rows = 1
poll COMMIT`,
		Questions: []Question{{"available", `SELECT available FROM balances`, 7}},
		Guard: "The refund and the status are in one commit: a crash between them leaves neither, and the next " +
			"report does both.",
		Function: "ledger.settle",
	},
	{
		Name:  "status-then-refund",
		Title: "a crash after the status: no refund",
		Shows: "The job's status is committed first and the refund second, and the worker is killed between the " +
			"two. Everybody who hears of the failure later finds the job settled, and nobody ever pays.",
		Engines: everyEngine,
		Actors:  []string{"callback", "poll"},
		Tables:  failedJob,
		Wrong: `
callback UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
callback only if rows = 1
callback CRASH
poll UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
poll only if rows = 1
poll UPDATE balances SET available = available + 7 WHERE owner = 'alice'`,
		Fixed: `
callback BEGIN
callback UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
callback only if rows = 1
callback CRASH
poll BEGIN
poll UPDATE jobs SET status = 'failed' WHERE id = 'j1' AND status = 'processing'
poll only if rows = 1
poll UPDATE balances SET available = available + 7 WHERE owner = 'alice'
poll COMMIT`,
		Questions: []Question{{"available", `SELECT available FROM balances`, 7}},
		Guard: "The status and the refund are in one commit: a crash between them leaves the job open, and the " +
			"next report does both.",
		Function: "ledger.settle",
	},
	{
		Name:  "swallowed-commit",
		Title: "a COMMIT is refused and nobody looks",
		Shows: "A purchase is granted before its owner signed up, and the COMMIT is refused, but the program " +
			"does not look at that answer and says 200. What was delivered once is not delivered again: the 100 " +
			"credits are lost.",
		Engines: everyEngine,
		Actors:  []string{"webhook", "sign-up", "delivery-2"},
		Tables: `
CREATE TABLE balances (owner TEXT PRIMARY KEY);
CREATE TABLE entries (event_key TEXT PRIMARY KEY, amount INTEGER NOT NULL,
  owner TEXT NOT NULL REFERENCES balances (owner) DEFERRABLE INITIALLY DEFERRED);`,
		Wrong: `
webhook BEGIN
webhook INSERT INTO entries VALUES ('grant:p1', 100, 'alice')
webhook try COMMIT
webhook say 200 OK
sign-up INSERT INTO balances VALUES ('alice')
delivery-2 only if webhook failed
delivery-2 BEGIN
delivery-2 INSERT INTO entries VALUES ('grant:p1', 100, 'alice')
delivery-2 COMMIT
delivery-2 say 200 OK`,
		Fixed: `
webhook BEGIN
webhook INSERT INTO entries VALUES ('grant:p1', 100, 'alice')
webhook COMMIT
webhook say 200 OK
sign-up INSERT INTO balances VALUES ('alice')
delivery-2 only if webhook failed
delivery-2 BEGIN
delivery-2 INSERT INTO entries VALUES ('grant:p1', 100, 'alice')
delivery-2 COMMIT
delivery-2 say 200 OK`,
		Questions: []Question{{"granted", `SELECT COALESCE(SUM(amount), 0) FROM entries`, 100}},
		Guard: "An error of COMMIT is the answer of the operation: nothing is acknowledged, and the same key " +
			"can come again.",
		Function: "ledger.write",
	},
}
