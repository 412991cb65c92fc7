package mutants

// The killers: quick forms of the techniques that docs/reliability.md names.
var (
	model       = Killer{"T36", "./ledger", "^TestModel$/./^sqlite$", ""}
	linear      = Killer{"T14", "./ledger", "^TestLinearizable$/^histories$/./^sqlite$", ""}
	faults      = Killer{"T03", "./ledger", "^TestFaultAtEveryStatement$/^(hold|charge|grant)/^sqlite$", ""}
	kills       = Killer{"T01", "./ledger", "^TestKill$/^sqlite$", ""}
	holdsRace   = Killer{"T17", "./ledger", "^TestHolds/^sqlite$", ""}
	observers   = Killer{"T21", "./ledger", "^TestB44/^sqlite$", ""}
	tables      = Killer{"I7", "./ledger", "^TestTablesRefuse$/^sqlite$", ""}
	schemaFile  = Killer{"T41", ".", "^TestSchemaFile$", ""}
	corruption  = Killer{"T27", "./ledger", "^TestAuditFinds(Bits|Corruption)$/^sqlite$", ""}
	wrongFiles  = Killer{"T26", "./db", "^TestWrongFiles$", ""}
	parsers     = Killer{"T38", "./ledger", "^Fuzz(Amount|ID)$", ""}
	exportAgain = Killer{"T31", "./ledger", "^TestExportRestoresAll$/^sqlite$", ""}
	drill       = Killer{"T28", "./ledger", "Backup", ""}
)

// cases are tests of single cases, by name.
func cases(run string) Killer { return Killer{"cases", "./ledger", run, ""} }

// engine are tests of the engine room, by name.
func engine(run string) Killer { return Killer{"db", "./db", run, ""} }

// claims are mistakes about who may settle a job.
var claims = []Mutant{
	{
		Name: "a settled job can be claimed again", Kind: "guard", Money: true, File: "ledger/claim.go",
		Old:     "claimUpdate + `status IN ('pending', 'processing')` + claimGuards",
		New:     "claimUpdate + `1 = 1` + claimGuards",
		Killers: []Killer{cases("^TestB02/^sqlite$"), model, linear, observers},
	}, {
		Name: "a report about an older attempt settles", Kind: "guard", Money: true, File: "ledger/claim.go",
		Old: "AND attempt BETWEEN ? AND ? AND cost >= ?",
		New: "AND attempt >= 0 * ? AND attempt <= 1000 + ? AND cost >= ?",
		Killers: []Killer{
			cases("^TestStaleReports$/^sqlite$"), observers,
			{"T23", "./ledger", "^Test(B42|B48|Retry|ReportWithout|SubmissionStates).*/^sqlite$", ""},
		},
	}, {
		Name: "a report without an attempt settles any", Kind: "guard", Money: true, File: "ledger/claim.go",
		Old: "return 0, 1\n", New: "return 0, AmountMax\n",
		Killers: []Killer{
			cases("^TestReportWithoutAttempt$/^sqlite$"),
			{"T23", "./ledger", "^TestStaleReports/^sqlite$", ""},
		},
	}, {
		Name: "an actual cost above the cost is taken", Kind: "guard", Money: true, File: "ledger/claim.go",
		Old:     "AND attempt BETWEEN ? AND ? AND cost >= ?",
		New:     "AND attempt BETWEEN ? AND ? AND cost + 1000000 >= ?",
		Killers: []Killer{cases("^TestB64/^sqlite$"), model, linear},
	}, {
		Name: "an open job with a refund is settled", Kind: "guard", Money: true, File: "ledger/claim.go",
		Old: "AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.event_key = ?)",
		New: "AND ? <> ''",
		Killers: []Killer{
			cases("^TestScenarioB06/^sqlite$"), faults,
			{"T27", "./ledger", "^TestSweepPasses/^sqlite$", ""},
		},
	}, {
		Name: "a report with another's upstream id settles", Kind: "comparison", Money: true,
		File: "ledger/claim.go", Old: "a.upstream_id <> ? OR", New: "a.upstream_id = ? || 'x' OR",
		Killers: []Killer{
			cases("^TestReportNamesAnotherUpstreamID$/^sqlite$"),
			{"T23", "./ledger", "^TestStaleReports/^sqlite$", ""},
		},
	}, {
		Name: "a cancel takes what may be at a provider", Kind: "guard", Money: true, File: "ledger/claim.go",
		Old: "AND (submission IN ('none', 'rejected')",
		New: "AND (submission IN ('none', 'rejected', 'submitting')",
		Killers: []Killer{
			cases("^TestSubmissionStatesAndOperations$/^sqlite$"),
			{"T02", "./ledger", "^TestKillAround/^sqlite$", ""},
		},
	}, {
		Name: "the sweep takes what was submitted", Kind: "guard", Money: true, File: "ledger/claim.go",
		Old: "AND submission = 'none' AND deadline <= ?", New: "AND deadline <= ?",
		Killers: []Killer{
			cases("^TestB11/^sqlite$"),
			{"T21", "./ledger", "^TestSweepAgainstLateSuccess/^sqlite$", ""},
		},
	}, {
		Name: "the sweep comes a moment late", Kind: "bound", File: "ledger/claim.go",
		Old: "AND submission = 'none' AND deadline <= ?", New: "AND submission = 'none' AND deadline < ?",
		Killers: []Killer{cases("^TestB50/^sqlite$"), model},
	}, {
		Name: "a winning report leaves no evidence", Kind: "evidence", File: "ledger/settle.go",
		Old:     "firstError(keepUpstream(tx, &s.Job, &r), insertWon(tx, &r))",
		New:     "keepUpstream(tx, &s.Job, &r)",
		Killers: []Killer{cases("^TestB44First/^sqlite$"), observers},
	}, {
		Name: "a settlement writes no event", Kind: "evidence", File: "ledger/settle.go",
		Old:     "if err := insertEvent(tx, settledEvent(&s)); err != nil {",
		New:     "if err := error(nil); err != nil {",
		Killers: []Killer{cases("^TestB44First/^sqlite$"), model},
	},
}
