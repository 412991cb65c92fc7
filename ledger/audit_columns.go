package ledger

import (
	"fmt"
	"strings"
)

// auditTable says what the columns of a table may hold. Names stand apart by spaces.
type auditTable struct {
	name, key string // key names a row in a violation
	positive  string // columns of 1 to AmountMax
	amounts   string // columns of 0 to AmountMax
	times     string
	words     []wordColumn
	refs      []reference
}

type wordColumn struct{ column, allowed string }

type reference struct{ column, table, target string }

const (
	terminalWords = "completed failed canceled timed_out"
	sourceWords   = "callback poll operator sweep"
)

var auditTables = []auditTable{
	{
		name: "balances", key: "owner",
		amounts: "available held used expired seq",
	},
	{
		name: "jobs", key: "owner, id AS job", positive: "cost", amounts: "settled_cost attempt settled_attempt",
		times: "settled_at deadline created_at updated_at",
		words: []wordColumn{
			{"mode", "hold charge"},
			{"status", "pending processing " + terminalWords},
			{"submission", "none submitting accepted rejected uncertain unknown"},
			{"settled_source", sourceWords},
		},
		refs: []reference{{"owner", "balances", "owner"}},
	},
	{
		name: "entries", key: "owner, id AS entry", positive: "seq amount",
		amounts: "available_after held_after used_after expired_after",
		times:   "occurred_at recorded_at",
		words:   []wordColumn{{"kind", "grant hold consume release charge refund expire revoke"}},
		refs:    []reference{{"owner", "balances", "owner"}, {"job_id", "jobs", "id"}},
	},
	{
		name: "lots", key: "owner, id AS lot", amounts: "available held used expired amount priority",
		times: "effective_at expires_at",
		refs:  []reference{{"owner", "balances", "owner"}, {"entry_id", "entries", "id"}},
	},
	{
		name: "postings", key: "entry_id AS entry, lot_id AS lot", positive: "amount",
		refs: []reference{{"entry_id", "entries", "id"}, {"lot_id", "lots", "id"}},
	},
	{
		name: "attempts", key: "job_id AS job, attempt", positive: "attempt", times: "marked_at resolved_at",
		words: []wordColumn{{"submission", "submitting accepted rejected uncertain unknown"}},
		refs:  []reference{{"job_id", "jobs", "id"}},
	},
	{
		name: "answers", key: "job_id AS job, attempt", positive: "attempt n", times: "recorded_at",
		words: []wordColumn{{"submission", "accepted rejected uncertain"}},
		refs:  []reference{{"job_id", "jobs", "id"}},
	},
	{
		name: "reports", key: "job_id AS job, source || ' ' || outcome || ' ' || verdict AS report, attempt",
		positive: "count", amounts: "attempt", times: "first_at last_at",
		words: []wordColumn{
			{"source", sourceWords},
			{"outcome", terminalWords},
			{"verdict", "won duplicate conflict stale refused"},
		},
		refs: []reference{{"job_id", "jobs", "id"}},
	},
	{
		name: "events", key: "owner, job_id AS job, id AS event", times: "created_at",
		words: []wordColumn{{"type", "job.completed job.failed job.canceled job.timed_out job.conflict"}},
		refs:  []reference{{"job_id", "jobs", "id"}},
	},
	{
		name: "tokens", key: "id AS token", times: "created_at revoked_at",
		words: []wordColumn{{"scope", "read write operator"}},
	},
	{
		name: "endpoints", key: "id AS endpoint", times: "created_at paused_until disabled_at",
	},
	{
		name: "deliveries", key: "job_id AS job, event_id AS event, endpoint_id AS endpoint", amounts: "n tries",
		times: "next_at lease_until created_at done_at",
		words: []wordColumn{{"status", "pending delivered dead"}},
		refs:  []reference{{"event_id", "events", "id"}, {"endpoint_id", "endpoints", "id"}},
	},
	{
		name: "polls", key: "job_id AS job, attempt", positive: "attempt", amounts: "tries",
		times: "next_at lease_until",
		refs:  []reference{{"job_id", "jobs", "id"}},
	},
}

// columnTest is one condition on a column. bad and shown are SQL.
type columnTest struct{ column, bad, shown, expected string }

// auditStorage asks SQLite to check its file. It finds what lies below the rows: an index that does not
// agree with its table would make the rows look otherwise to one query than to another.
func (a *auditor) auditStorage() error {
	if !a.sqlite {
		return nil
	}
	return a.query(checkStorage, `
		SELECT integrity_check AS problem
		FROM pragma_integrity_check
		WHERE integrity_check <> 'ok'`)
}

// auditColumns looks at each value alone.
func (a *auditor) auditColumns() error {
	for i := range auditTables {
		t := &auditTables[i]
		types, err := a.typeTests(t)
		if err != nil {
			return err
		}
		for _, c := range []struct {
			check string
			tests []columnTest
		}{
			{checkTypes, types},
			{checkWords, t.wordTests()},
			{checkAmounts, append(rangeTests(t.positive, 1, AmountMax), rangeTests(t.amounts, 0, AmountMax)...)},
			{checkTimes, rangeTests(t.times, 0, int64(timeMax))},
		} {
			if err := a.testColumns(c.check, t, c.tests); err != nil {
				return err
			}
		}
	}
	return nil
}

// typeTests compares the type of each value with that of its column. Only SQLite stores a type with
// each value, and a damaged one can differ even in a STRICT table; there is no common SQL for it.
func (a *auditor) typeTests(t *auditTable) (tests []columnTest, err error) {
	if !a.sqlite {
		return nil, nil
	}
	var columns []struct {
		Name, Type string
		Required   bool
	}
	err = a.tx.Select(&columns, `
		SELECT name, LOWER(type) AS type, "notnull" AS required FROM pragma_table_info(?)`, t.name)
	for _, c := range columns {
		types := "'" + c.Type + "'"
		if !c.Required {
			types += ", 'null'"
		}
		kind := "typeof(" + c.Name + ")"
		tests = append(tests, columnTest{c.Name, kind + " NOT IN (" + types + ")", kind, "of type " + c.Type})
	}
	return tests, err
}

func (t *auditTable) wordTests() (tests []columnTest) {
	for _, w := range t.words {
		list := strings.Fields(w.allowed)
		bad := w.column + " NOT IN ('" + strings.Join(list, "', '") + "')"
		tests = append(tests, columnTest{w.column, bad, w.column, "one of " + strings.Join(list, ", ")})
	}
	return tests
}

func rangeTests(columns string, lowest, highest int64) (tests []columnTest) {
	for _, c := range strings.Fields(columns) {
		bad := fmt.Sprintf("NOT %s BETWEEN %d AND %d", c, lowest, highest)
		tests = append(tests, columnTest{c, bad, c, fmt.Sprintf("%d to %d", lowest, highest)})
	}
	return tests
}

// testColumns finds, in one scan of a table, the rows that fail any of several tests.
func (a *auditor) testColumns(check string, t *auditTable, tests []columnTest) error {
	if len(tests) == 0 {
		return nil
	}
	var bad, problem []string
	for _, c := range tests {
		bad = append(bad, c.bad)
		problem = append(problem, fmt.Sprintf(
			`CASE WHEN %s THEN '%s is ' || CAST(%s AS TEXT) || ', expected %s; ' ELSE '' END`,
			c.bad, c.column, c.shown, c.expected))
	}
	return a.query(check, `SELECT `+t.key+`, `+strings.Join(problem, " || ")+` AS problem
		FROM `+t.name+` WHERE `+strings.Join(bad, " OR "))
}

// auditReferences finds rows that refer to a row that is not there.
func (a *auditor) auditReferences() error {
	for i := range auditTables {
		t := &auditTables[i]
		for _, r := range t.refs {
			err := a.query(checkReferences, fmt.Sprintf(`
				SELECT %s, '%s is ' || CAST(%s AS TEXT) || ', which %s does not have' AS problem
				FROM %s t
				WHERE %s IS NOT NULL AND NOT EXISTS (SELECT 1 FROM %s r WHERE r.%s = t.%s)`,
				t.key, r.column, r.column, r.table, t.name, r.column, r.table, r.target, r.column))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
