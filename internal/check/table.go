package main

// technique is one way to break the product, and the tests that do it.
type technique struct {
	id     string // as docs/reliability.md names it
	what   string
	runs   []run
	notRun string // why there is nothing to run
}

// run is some tests of one package.
type run struct {
	folder string
	tests  string   // as go test -run takes it
	quick  []string // environment for every change
	soak   []string // environment for the long run; nil: it is the same
	race   bool     // with the race detector
	short  bool     // with -short, for every change
}

func in(folder, tests string) run { return run{folder: folder, tests: tests} }

// counted is a run whose number is in the environment, as the test's campaign wants it.
func counted(folder, tests, quick, soak string) run {
	return run{folder: folder, tests: tests, quick: []string{"JOBLEDGER_TEST_" + quick},
		soak: []string{"JOBLEDGER_TEST_" + soak}}
}

var techniques = []technique{
	{id: "T01", what: "kill -9 at random moments", runs: []run{
		counted("ledger", "^TestKill$/^sqlite$", "T01=300", "T01=10000"),
		counted("ledger", "^TestKill$/^postgres$", "T01_POSTGRES=30", "T01_POSTGRES=1000")}},
	{id: "T02", what: "kill -9 around calls of a provider, in imports and copies",
		runs: []run{in("ledger", "^TestKillAround|^TestB18"), in(".", "^TestB130Killed|^TestCopyKilled")}},
	{id: "T03", what: "a fault at every statement, on either side", runs: []run{
		{folder: "ledger", tests: "^TestFaultAtEveryStatement$", short: true},
		in("db", "^TestBroken|^TestFailed|^TestErrorsAndPanics")}},
	{id: "T04", what: "EIO, ENOSPC, kill -9 at each system call that writes", runs: []run{
		counted(".", "^TestB126FaultAtEveryWrite$", "T04=100", "T04=100000"),
		in(".", "^TestEveryCommitIsSynced$")}},
	{id: "T05", what: "a COMMIT without an answer", runs: []run{
		in("ledger", "IsCutAtTheCommit|^TestB38"), in("db", "^TestCreateWithoutAnAnswer|^TestCommit")}},
	{id: "T06", what: "kill -9 during backup and restore", runs: []run{
		counted(".", "^TestB128BackupKilled$", "T06=30", "T06=1000")}},
	{id: "T07", what: "write-ahead logs, cut and with a bit flipped", runs: []run{
		counted("ledger", "^TestB117", "T07=1321", "T07=13210")}},
	{id: "T08", what: "a full disk", runs: []run{counted(".", "^TestB126.*FullDisk$", "T08=10", "T08=100")}},
	{id: "T09", what: "read-only files and folders",
		runs: []run{in(".", "^TestReadOnly$"), in("db", "^TestReadOnly|^TestExamineUnwritable")}},
	{id: "T10", what: "locks that a close() drops, files replaced in use", runs: []run{
		in("db", "^TestLocksSurvive|^TestExamineUsers$")}},
	{id: "T11", what: "signals in mid-work", runs: []run{in(".", "^TestSignals$|^TestB131|^TestStopped")}},
	{id: "T12", what: "a reader that keeps the log growing",
		runs: []run{in("db", "^TestExamineSQLite$|^TestReadLeavesNothingOpen")}},
	{id: "T13", what: "processes race for one terminal state", runs: []run{in(".", "^TestRaceOfProcesses$"),
		in("ledger", "^TestScenario.*Race|AtOnce$")}},
	{id: "T14", what: "linearizable histories, with COMMITs that fail and clients who leave", runs: []run{
		counted("ledger", "^TestLinearizable$", "T14=150", "T14=5000")}},
	{id: "T15", what: "locks that others hold",
		runs: []run{in("db", "^TestBusy|WhileLocked"), in("ledger", "^TestB28")}},
	{id: "T16", what: "contexts that end at any moment", runs: []run{in("db", "^TestCancel|^TestLeaving")}},
	{id: "T17", what: "more holds than there are credits",
		runs: []run{in("ledger", "^TestHolds|^TestB51|^TestSame.*Race")}},
	{id: "T18", what: "a mixed soak of processes, kills and sweeps",
		notRun: "there is no such test; T01, T13 and T21 have its parts"},
	{id: "T19", what: "the race detector", runs: []run{
		{folder: "ledger", tests: "Race|Holds|AtOnce|LateSuccess|Copy|Beside", race: true, short: true},
		{folder: "db", tests: "Batch|Cancel|Busy|Leav", race: true, short: true}}},
	{id: "T20", what: "pools of 1, 2 and 16 connections",
		notRun: "a process has one writer on SQLite, up to 8 on PostgreSQL; tests use 1 and 8"},
	{id: "T21", what: "observers in all orders, and at once", runs: []run{
		in("ledger", "^TestB44|^TestB36|^TestB49|^TestSweepAgainstLateSuccess")}},
	{id: "T22", what: "callbacks doubled, late, lost, before the answer", runs: []run{
		in("ledger", "^TestThirdArticle|^TestB46|^TestB02"), in("internal/fakeprovider", ".")}},
	{id: "T23", what: "reports of another attempt, provider or id", runs: []run{
		in("ledger", "^TestStale|^TestReport|^TestB42|^TestB48|^TestSubmissionStates")}},
	{id: "T24", what: "signatures of callbacks",
		runs: []run{in("internal/server", "(?i)sign|callback|B9[3-9]|B10[01]")}},
	{id: "T25", what: "clocks that jump, and zones", runs: []run{
		{folder: "ledger", tests: "^TestClock|^TestB50|^TestB78|^TestBalanceAsOf",
			quick: []string{"TZ=Asia/Colombo"}},
		{folder: "ledger", tests: "^TestClock|^TestB50|^TestB78|^TestBalanceAsOf",
			quick: []string{"TZ=Pacific/Kiritimati"}},
		{folder: "internal/cli", tests: ".", quick: []string{"TZ=America/New_York"}}}},
	{id: "T26", what: "files that are no ledger",
		runs: []run{in("db", "^TestWrongFiles|^TestNoFile|^TestCopyFileRefuses")}},
	{id: "T27", what: "changed bits and rows, found by the audit",
		runs: []run{in("ledger", "^TestAuditFinds")}},
	{id: "T28", what: "backups under load, brought back", runs: []run{
		counted("ledger", "^TestB128BackupDrill$", "T28=20", "T28=500"), in("db", "CopyFile|B128")}},
	{id: "T29", what: "names of files",
		runs: []run{in("db", "^TestNames|^TestRelativeNames"), in("internal/cli", "StrangeNames|KeywordDSN")}},
	{id: "T30", what: "many start at once on a new file, or an older one",
		runs: []run{in("db", "^TestCreateRace|Migrat")}},
	{id: "T31", what: "both engines answer and export the same",
		runs: []run{in("ledger", "^TestCopyThereAndBack|^TestExport"), in(".", "^TestJSON$|^TestExamples$")}},
	{id: "T32", what: "a PostgreSQL server that crashes under load", runs: []run{
		counted("ledger", "^TestServerCrashes$", "T32=6", "T32=300")}},
	{id: "T33", what: "a PostgreSQL primary that is lost, its standby promoted", runs: []run{
		counted("ledger", "^TestFailover$", "T33=2", "T33=60")}},
	{id: "T34", what: "other settings of the server", runs: []run{
		{folder: "ledger", tests: "Race|Holds|Scenario|LinkIsCut|Serializable|Pooler", short: true,
			quick: []string{"JOBLEDGER_TEST_ISOLATION=serializable"}}}},
	{id: "T35", what: "an older and a newer version at once", runs: []run{
		counted("db", "^TestOldAndNewVersion$", "T35=5", "T35=50"), in("db", "^TestMigratedMeanwhile")}},
	{id: "T36", what: "random commands against a model", runs: []run{
		counted("ledger", "^TestModel$", "T36=1000", "T36=100000")}},
	{id: "T37", what: "small worlds of lots, all of them", runs: []run{
		counted("ledger", "^TestSmallWorlds$", "T37=3000", "T37=97968")}},
	{id: "T38", what: "fuzz tests of parsers, with their seeds only", runs: []run{
		{folder: "ledger", tests: "^Fuzz"},
		{folder: "internal/books", tests: "^Fuzz"},
		{folder: "internal/cli", tests: "^Fuzz"},
		{folder: "db", tests: "^Fuzz"}}},
	{id: "T39", what: "boundaries of what comes in, by every way in", runs: []run{
		in(".", "^TestBoundaries|^TestBadInput"),
		in("ledger", "^TestB65|^TestB91|^TestOtherLimits|^TestTablesRefuse")}},
	{id: "T40", what: "assertions in production",
		notRun: "they are code, not a test: T27, T42 and guards show that they hold"},
	{id: "T41", what: "databases of released schemas",
		notRun: "nothing was released with another schema yet; T35 migrates"},
	{id: "T42", what: "mutants, that each applies and builds", runs: []run{in("internal/mutants", ".")}},
	{id: "T43", what: "guards taken away, and what then breaks",
		runs: []run{in("internal/racelab/guards", ".")}},
	{id: "T44", what: "faults that did not fire", notRun: "it is how every campaign of this table ends"},
	{id: "T45", what: "leaks", runs: []run{in("db", "Storm|LeavesNothing"),
		in("db/dbtest", "Destroys|ClusterEnds")}},
	{id: "T46", what: "coverage of the rules",
		notRun: "no share of lines is demanded; the cases from the field each name their test"},
}
