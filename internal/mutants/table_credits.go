package mutants

// credits are mistakes about what moves.
var credits = []Mutant{
	{
		Name: "a release leaves the credits held", Kind: "sign", Money: true, File: "ledger/move.go",
		Old: "KindRelease: {held: -1, available: +1}", New: "KindRelease: {available: +1}",
		Killers: []Killer{cases("^TestB02/^sqlite$"), model, linear},
	}, {
		Name: "a consumption gives credits back", Kind: "sign", Money: true, File: "ledger/move.go",
		Old: "KindConsume: {held: -1, used: +1}", New: "KindConsume: {held: -1, available: +1}",
		Killers: []Killer{cases("^TestB76/^sqlite$"), model, linear},
	}, {
		Name: "a refund leaves the credits used", Kind: "sign", Money: true, File: "ledger/move.go",
		Old: "KindRefund:  {used: -1, available: +1}", New: "KindRefund:  {available: +1}",
		Killers: []Killer{cases("^TestScenarioA/^sqlite$"), model, linear},
	}, {
		Name: "an expiry makes credits vanish", Kind: "sign", Money: true, File: "ledger/move.go",
		Old: "KindExpire:  {available: -1, expired: +1}", New: "KindExpire:  {available: -1}",
		Killers: []Killer{cases("^TestB82/^sqlite$"), model},
	}, {
		Name: "a refund fills the old lot as well", Kind: "sign", Money: true, File: "ledger/move.go",
		Old: "change.available = 0 //", New: "change.available += 0 //",
		Killers: []Killer{cases("^TestScenarioA/^sqlite$"), model, linear},
	}, {
		Name: "an owner's row is not locked", Kind: "guard", Money: true, File: "ledger/account.go",
		Old: "found, err := tx.Lock(`SELECT 1 FROM balances WHERE owner = ?`, owner)",
		New: "found, err := true, error(nil)",
		Killers: []Killer{{"T17", "./ledger", "^TestHoldsRace$/^postgres$", ""},
			{"T14", "./ledger", "^TestLinearizable$/^histories$/./^postgres$", ""}},
	}, {
		Name: "a lot is spent at its expiry", Kind: "bound", Money: true, File: "ledger/account.go",
		Old:     "l.available > 0 AND l.expires_at <= ?) AS lapsed",
		New:     "l.available > 0 AND l.expires_at < ?) AS lapsed",
		Killers: []Killer{cases("^TestB78/^sqlite$"), model},
	}, {
		Name: "what lapsed is offered for spending", Kind: "comparison", Money: true, File: "ledger/job.go",
		Old: "if a.spendable() < amount {", New: "if a.Available < amount {",
		Killers: []Killer{cases("^TestB78/^sqlite$"), model},
	}, {
		Name: "credits of tomorrow are spent", Kind: "sign", Money: true, File: "ledger/account.go",
		Old: "return a.Available - a.Lapsed - a.Scheduled", New: "return a.Available - a.Lapsed",
		Killers: []Killer{cases("^TestB78/^sqlite$"), model},
	}, {
		Name: "more is held than there is", Kind: "guard", Money: true, File: "ledger/job.go",
		Old: "if a.spendable() < amount {", New: "if false {",
		Killers: []Killer{cases("^TestB51/^sqlite$"), model, linear, holdsRace},
	}, {
		Name: "lots are spent by expiry before priority", Kind: "order", Money: true,
		File:    "ledger/balance.go",
		Old:     "`priority, COALESCE(expires_at, 253402300800000000), id`",
		New:     "`COALESCE(expires_at, 253402300800000000), priority, id`",
		Killers: []Killer{cases("^TestB79/^sqlite$"), model, {"T37", "./ledger", "^TestSmallWorlds", ""}},
	}, {
		Name: "the last lots are consumed, the first returned", Kind: "order", Money: true,
		File:    "ledger/settle.go",
		Old:     "consumed, rest := split(paid, *job.SettledCost)",
		New:     "rest, consumed := split(paid, job.Cost-*job.SettledCost)",
		Killers: []Killer{cases("^TestB76/^sqlite$"), model, {"T37", "./ledger", "^TestSmallWorlds", ""}},
	}, {
		Name: "what returns into a lapsed lot stays", Kind: "guard", Money: true, File: "ledger/settle.go",
		Old: "if lapsed && !importing {", New: "if lapsed && importing {",
		Killers: []Killer{cases("^TestB82/^sqlite$"), model},
	}, {
		Name: "a grant's key grants again", Kind: "unique", Money: true, File: "ledger/grant.go",
		Old: "if first != nil {", New: "if first != nil && false {",
		Killers: []Killer{cases("^TestB85Grant/^sqlite$"), model, linear},
	}, {
		Name: "a job's other cost is taken for a repetition", Kind: "comparison", File: "ledger/job.go",
		Old: `field{"cost", p.Cost == first.Cost}`, New: `field{"cost", true}`,
		Killers: []Killer{cases("^TestB90/^sqlite$"), model},
	}, {
		Name: "a hash leaves the amount out", Kind: "evidence", File: "ledger/hash.go",
		Old: "b.number(e.Amount)", New: "b.number(0)", Killers: []Killer{corruption},
	}, {
		Name: "a job's event key is not unique", Kind: "unique", Money: true,
		File: "db/sqlite/0001_ledger.sql",
		Old:  "event_key       TEXT    NOT NULL UNIQUE,", New: "event_key       TEXT    NOT NULL,",
		Killers: []Killer{schemaFile, cases("^TestScenarioB06/^sqlite$")},
	}, {
		Name: "a lot's buckets need not add up", Kind: "check", Money: true,
		File: "db/sqlite/0001_ledger.sql",
		Old:  "CHECK (available + held + used + expired = amount),", New: "CHECK (amount >= 0),",
		Killers: []Killer{schemaFile, tables},
	}, {
		Name: "a balance may be negative", Kind: "check", Money: true, File: "db/sqlite/0001_ledger.sql",
		Old:     "available INTEGER NOT NULL CHECK (available BETWEEN 0 AND 9007199254740991),\n  held ",
		New:     "available INTEGER NOT NULL CHECK (available BETWEEN -9 AND 9007199254740991),\n  held ",
		Killers: []Killer{schemaFile, tables},
	}, {
		Name: "a job may end twice", Kind: "check", Money: true, File: "db/sqlite/0001_ledger.sql",
		Old: "WHEN OLD.settled_cost IS NOT NULL\n", New: "WHEN OLD.settled_cost < 0\n",
		Killers: []Killer{schemaFile, cases("^TestTablesKeepWhatHappened$/^sqlite$")},
	},
}
