package mutants

// commits are mistakes about what is durable, and what a caller is told.
var commits = []Mutant{
	{
		Name: "a failed COMMIT is acknowledged", Kind: "order", Money: true, File: "db/batch.go",
		Old: "if err := w.commit(); err != nil {", New: "if err := w.commit(); err != nil && false {",
		Killers: []Killer{engine("^TestFailedCommitIsUnknownToAll$"), faults, linear},
	}, {
		Name: "the answer comes before the COMMIT", Kind: "order", Money: true, File: "db/batch.go",
		Old:     "\tif err := w.commit(); err != nil {",
		New:     "\tanswer(batch, func(i int) error { return errs[i] })\n\tif err := w.commit(); err != nil {",
		Killers: []Killer{engine("^TestFailedCommitIsUnknownToAll$"), faults, kills},
	}, {
		Name: "a failed operation is not undone", Kind: "order", Money: true, File: "db/batch.go",
		Old:     `if err != nil && tx.control("ROLLBACK TO operation") != nil {`,
		New:     `if err != nil && tx.control("SAVEPOINT nothing") != nil {`,
		Killers: []Killer{engine("^TestErrorsAndPanicsHurtNoNeighbour$/^sqlite$"), faults},
	}, {
		Name: "a broken connection is used again", Kind: "guard", File: "db/batch.go",
		Old: "return driver.ErrBadConn", New: "_ = driver.ErrBadConn; return nil",
		Killers: []Killer{engine("^TestBrokenTransactionsAreThrownAway$/^sqlite$"), faults},
	}, {
		Name: "a caller who leaves is told that nothing was written", Kind: "comparison", Money: true,
		File: "db/write.go", Old: "if o.state.CompareAndSwap(waiting, withdrawn) {",
		New:     "if o.state.CompareAndSwap(waiting, withdrawn) || true {",
		Killers: []Killer{engine("^TestCancelWhileRunning$/^sqlite$"), faults, linear},
	}, {
		Name: "a newer schema is written to", Kind: "guard", Money: true, File: "db/batch.go",
		Old:     "if err == nil && version != SchemaVersion() {",
		New:     "if err == nil && version < SchemaVersion() {",
		Killers: []Killer{engine("^TestMigratedMeanwhile$/^sqlite$"), {"T35", "./db", "^TestOldAndNew", ""}},
	}, {
		Name: "commits are not synced to the disk", Kind: "guard", Money: true, File: "db/sqlite.go",
		Old: `{"synchronous", "FULL", "2"}`, New: `{"synchronous", "OFF", "0"}`,
		Killers: []Killer{engine("^TestPragmas$"), {"T04", ".", "^TestEveryCommitIsSynced$", ""}},
	}, {
		Name: "writers do not lock before they read", Kind: "order", Money: true, File: "db/sqlite.go",
		Old: `	begin:    "BEGIN IMMEDIATE",`, New: `	begin:    "BEGIN",`,
		Killers: []Killer{holdsRace, linear},
	}, {
		Name: "a lock that is taken counts as no ledger", Kind: "comparison", File: "db/sqlite.go",
		Old: "5:  ErrBusy,       // SQLITE_BUSY", New: "5:  ErrNoLedger,   // SQLITE_BUSY",
		Killers: []Killer{engine("^TestBusy$/^sqlite$"), cases("^TestB28/^sqlite$")},
	},
}

// places are mistakes about files, and about what comes in.
var places = []Mutant{
	{
		Name: "another program's file is taken", Kind: "guard", File: "db/sqlite.go",
		Old:     "if id != applicationID {",
		New:     "if id != applicationID && false {",
		Killers: []Killer{wrongFiles},
	}, {
		Name: "a damaged file becomes a backup", Kind: "guard", File: "db/backup.go",
		Old:     "err = wholeFile(ctx, pool)",
		New:     "err = nil",
		Killers: []Killer{engine("^TestCopyFileOfAnOddSource$")},
	}, {
		Name: "a broken ledger becomes a backup", Kind: "guard", Money: true, File: "ledger/backup.go",
		Old: "if p.NoAudit || version != SchemaVersion() {",
		New: "if true || p.NoAudit || version != SchemaVersion() {",
		Killers: []Killer{
			cases("^TestBackupOfABrokenLedger$"),
			{"T28", "./ledger", "^TestB128BackupDrill$", ""},
		},
	}, {
		Name: "a backup takes the place of a file", Kind: "guard", File: "db/backup.go",
		Old:     "\tcase !replace:",
		New:     "\tcase false:",
		Killers: []Killer{engine("^TestCopyFileRefuses$"), drill},
	}, {
		Name: "an amount may begin with zeros", Kind: "bound", File: "ledger/validate.go",
		Old: `(text[0] == '0' && text != "0") ||`, New: `false ||`, Killers: []Killer{parsers},
	}, {
		Name: "an id may end with space", Kind: "bound", File: "ledger/validate.go",
		Old: "case strings.TrimSpace(id) != id:", New: "case strings.TrimSpace(id) == \"\":",
		Killers: []Killer{cases("^TestB91/^sqlite$"), parsers},
	}, {
		Name: "an amount may be 2^53", Kind: "bound", File: "ledger/validate.go",
		Old:     "AmountMax   = 1<<53 - 1",
		New:     "AmountMax   = 1 << 53",
		Killers: []Killer{parsers, exportAgain},
	},
}
