// Package guards shows what each guard of the product's settling is for. It runs the product as it is,
// with a layer before the driver that takes one guard away, and races it: without the guard an invariant
// breaks, with all of them none does.
//
// The product has more than one line of defence. Where another guard stops the same mistake, it is taken
// away too, so that the guard in question stands alone; and first it is shown that alone it holds.
package guards

import (
	"regexp"
	"slices"
)

// Guard is one of the things that keep the credits right.
type Guard struct {
	Name    string
	Does    string   // what it sees to, in one sentence
	Where   string   // the place in the product that holds it
	Engines []string // those that have it
	Others  []string // the guards that stop the same mistake: gone as well, so that it stands alone

	change change
	scene  *scene
	// refuses: it stops the mistake with an error. A guard that does not, the first line, also keeps
	// every answer what it must be.
	refuses bool
}

// The engines, as the ledger names them.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

var both = []string{sqlite, postgres}

// replace changes what the program says.
func replace(pattern, with string) change {
	return change{texts: []text{{regexp.MustCompile(pattern), with, false}}}
}

// redefine changes the schema, or what makes no sense without what is gone from it.
func redefine(pattern, with string) change {
	return change{texts: []text{{regexp.MustCompile(pattern), with, true}}}
}

// and joins two changes that remove one guard together.
func (c change) and(d change) change {
	return change{slices.Concat(c.texts, d.texts), c.rows || d.rows, c.swallow || d.swallow}
}

// A placeholder, on either engine.
const mark = `(\?|\$\d+)`

// all are the guards, in the order in which the table shows them.
var all = []Guard{
	{
		Name:    "status-predicate",
		Does:    "Only an open job can be claimed, and the one UPDATE that asks is the one that claims.",
		Where:   "ledger.claim.take",
		Engines: both,
		Others:  []string{"end-once-trigger", "unique-key", "event-key"},
		change:  replace(`WHERE id = `+mark+` AND status IN \('pending', 'processing'\)`, `WHERE id = ${1}`),
		scene:   &duplicates,
	},
	{
		Name:    "end-once-trigger",
		Does:    "The database refuses to end a job that has ended, whatever the program asks.",
		Where:   "trigger jobs_end_once",
		Engines: both,
		Others:  []string{"status-predicate", "unique-key", "event-key"},
		change: redefine(`(?s)(CREATE TRIGGER jobs_end_once\b.*?WHEN \(?)OLD\.settled_cost IS NOT NULL\s+OR`,
			`${1}1 = 0 AND`),
		scene:   &duplicates,
		refuses: true,
	},
	{
		Name:    "unique-key",
		Does:    "One movement of a kind per job, for ever: a second release has no key to be written under.",
		Where:   "entries.event_key",
		Engines: both,
		Others:  []string{"status-predicate", "end-once-trigger", "event-key"},
		change: redefine(`(event_key\s+TEXT[^,\n]*NOT NULL) UNIQUE`, `${1}`).
			and(redefine(`ON CONFLICT \(event_key\) DO NOTHING`, ``)),
		scene:   &duplicates,
		refuses: true,
	},
	{
		Name:    "event-key",
		Does:    "A settlement has one event, for ever: a second one cannot be written, nor then its credits.",
		Where:   "events.id",
		Engines: both,
		Others:  []string{"status-predicate", "end-once-trigger", "unique-key"},
		// What is no key can be referred to by nobody.
		change: redefine(`(CREATE TABLE events \(\s+id [^,]*NOT NULL) PRIMARY KEY`, `${1}`).
			and(redefine(` REFERENCES events \(id\)`, ``)),
		scene:   &duplicates,
		refuses: true,
	},
	{
		Name:    "attempt-predicate",
		Does:    "A report settles only the attempt that it is about.",
		Where:   "ledger.claim.take",
		Engines: both,
		change: replace(`attempt BETWEEN `+mark+` AND `+mark,
			`CAST(${1} AS BIGINT) <= CAST(${2} AS BIGINT)`),
		scene: &late,
	},
	{
		Name:    "locked-read",
		Does:    "What an operation decides by is read under the lock that it writes under.",
		Where:   "ledger.lockAccount",
		Engines: both,
		Others:  []string{"sequence-key", "position-predicate", "availability-predicate", "check"},
		change: replace(`FROM balances b\s+WHERE owner`, `FROM stale_balances b WHERE owner`).
			and(replace(`SELECT id, available FROM lots`, `SELECT id, available FROM stale_lots`)),
		scene: &overspend,
	},
	{
		Name:    "sequence-key",
		Does:    "Two entries cannot take the same place in an owner's journal.",
		Where:   "entries (owner, seq)",
		Engines: both,
		Others:  []string{"locked-read", "position-predicate", "availability-predicate", "check"},
		change:  redefine(`,\s*UNIQUE \(owner, seq\)`, ``),
		scene:   &overspend,
		refuses: true,
	},
	{
		Name:    "position-predicate",
		Does:    "The balance moves only from where the entry began.",
		Where:   "ledger.account.apply",
		Engines: both,
		Others:  []string{"locked-read", "sequence-key", "availability-predicate", "check"},
		change: replace(`WHERE owner = `+mark+` AND seq = `+mark,
			`WHERE owner = ${1} AND CAST(${2} AS BIGINT) > 0`),
		scene:   &overspend,
		refuses: true,
	},
	{
		Name:    "availability-predicate",
		Does:    "The UPDATE that takes credits takes them only where they are.",
		Where:   "ledger.updateLot",
		Engines: both,
		Others:  []string{"locked-read", "sequence-key", "position-predicate", "check"},
		change:  replace(`available \+ `+mark+` >= 0`, `available + ${1} > -9007199254740991`),
		scene:   &overspend,
		refuses: true,
	},
	{
		Name:    "rows-affected-check",
		Does:    "An UPDATE that found nothing to change is an error, not a success.",
		Where:   "ledger.updateLot",
		Engines: both,
		Others:  []string{"locked-read", "sequence-key", "position-predicate", "check"},
		change:  change{rows: true},
		scene:   &overspend,
		refuses: true,
	},
	{
		Name:    "check",
		Does:    "No bucket can be stored below zero.",
		Where:   "balances, lots",
		Engines: both,
		Others:  []string{"locked-read", "sequence-key", "position-predicate", "availability-predicate"},
		change: redefine(`CHECK \(available BETWEEN 0 AND 9007199254740991\)`, ``).
			and(redefine(`CHECK \(available >= 0\)`, ``)),
		scene:   &overspend,
		refuses: true,
	},
	{
		Name:    "begin-immediate",
		Does:    "A transaction that will write takes its place in the queue before it reads.",
		Where:   "db.sqliteEngine",
		Engines: []string{sqlite},
		change:  replace(`BEGIN IMMEDIATE`, `BEGIN`),
		scene:   &crowd,
	},
	{
		Name:    "row-lock",
		Does:    "An owner's row is locked before it is read, so that one operation waits for the other.",
		Where:   "ledger.lockAccount",
		Engines: []string{postgres},
		change:  replace(` FOR NO KEY UPDATE`, ``),
		scene:   &crowd,
	},
	{
		Name:    "commit-error-check",
		Does:    "A COMMIT that failed is never a success.",
		Where:   "db.writer.commit",
		Engines: []string{sqlite},
		change:  change{swallow: true},
		scene:   &lostCommit,
	},
}

// Names gives the names of all guards.
func Names() (names []string) {
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

// find gives the guards with some names.
func find(names ...string) (list []*Guard) {
	for i := range all {
		if slices.Contains(names, all[i].Name) {
			list = append(list, &all[i])
		}
	}
	return list
}
