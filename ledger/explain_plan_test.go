package ledger

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"jobledger/db/dbtest"
)

// TestPlans holds that a settlement and the story of a job are read through indexes only, and that the
// audit reads the journal and the jobs in order without sorting them.
func TestPlans(t *testing.T) {
	pool, err := sql.Open("sqlite", dbtest.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	allEvents, _ := (&EventFilter{Type: "job.failed"}).query(0)
	jobEvents, _ := (&EventFilter{Job: "j"}).query(0)
	allDeliveries, _ := (&DeliveryFilter{Status: DeliveryDead}).query()
	toEndpoint, _ := (&DeliveryFilter{Endpoint: "e"}).query()
	ofEvent, _ := (&DeliveryFilter{Event: "v"}).query()
	for name, c := range map[string]struct {
		query string
		never string
	}{
		"attempts": {attemptsQuery, "SCAN"},
		"reports":  {reportsQuery, "SCAN"},
		"lots":     {jobLotsQuery, "SCAN"},
		"events":   {eventsQuery, "SCAN"},
		"journal":  {journalQuery, "TEMP B-TREE"},
		"claim":    {byReport.query, "SCAN"},
		"cancel":   {byCancel.query, "SCAN"},
		"account":  {accountQuery, "SCAN"},
		"awaited":  {awaitedQuery, "SCAN a"},
		"taken":    {takenQuery, "owner="},
		"jobs":     {jobEntriesOfAllQuery, "TEMP B-TREE"},
		"expiring": {expiringQuery, "TEMP B-TREE"},
		"owners":   {balancesQuery, "SCAN"},
		"last":     {lastEntriesQuery, "SCAN e"},
		"history":  {historyQuery, "SCAN e"},

		"all events":      {allEvents, "TEMP B-TREE"},
		"events of a job": {jobEvents, "SCAN events"},
		"deliveries":      {allDeliveries, "TEMP B-TREE"},
		"to an endpoint":  {toEndpoint, "TEMP B-TREE"},
		"of an event":     {ofEvent, "SCAN"},
		"story":           {storyDeliveriesQuery, "SCAN d"},
		"due endpoints":   {dueEndpointsQuery, "SCAN d"},
		"leased":          {leasedQuery, "SCAN"},
		"claim delivery":  {claimDeliveriesQuery, "TEMP B-TREE"},
		"what is due":     {claimDeliveriesQuery, "SCAN"},
		"claimed":         {claimedDeliveriesQuery, "SCAN"},
		"due polls":       {duePollsQuery, "TEMP B-TREE"},
		"claim poll":      {claimPollQuery, "SCAN"},
		"upstream id":     {upstreamQuery, "SCAN"},
		"token":           {tokenQuery, "SCAN"},
		"backlog":         {backlogQuery, "SCAN (jobs|j|a|deliveries|d|endpoints|p|polls)$"},
		"unresolved":      {unresolvedQuery, "SCAN (jobs|j|a)$"},
		"conflicts":       {"SELECT COUNT(*)" + conflictRange, "SCAN"},
	} {
		checkPlan(t, pool, name, c.query, c.never)
	}
}

// listQuery is the query of a list's page.
func listQuery(f interface{ query() (string, []any) }) string {
	query, _ := f.query()
	return query
}

// TestPlansOfLists holds the same of the pages of journals and jobs, whatever they are filtered by.
func TestPlansOfLists(t *testing.T) {
	pool, err := sql.Open("sqlite", dbtest.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for name, c := range map[string]struct {
		query string
		never string
	}{
		"all":      {listQuery(&EntryFilter{}), "TEMP B-TREE"},
		"owner's":  {listQuery(&EntryFilter{Owner: "o"}), "SCAN"},
		"job's":    {listQuery(&EntryFilter{Job: "j"}), "SCAN e"},
		"job list": {listQuery(&JobFilter{}), "TEMP B-TREE"},
		"owned":    {listQuery(&JobFilter{Owner: "o"}), "SCAN"},
		"open":     {listQuery(&JobFilter{Owner: "o", Status: Pending}), "SCAN"},
	} {
		checkPlan(t, pool, name, c.query, c.never)
	}
}

// checkPlan refuses plans with a step that matches never, and such as build an index to find what they
// need. A scan without an index ends with the table's name.
func checkPlan(t *testing.T, pool *sql.DB, name, query, never string) {
	t.Helper()
	steps, refused := 0, regexp.MustCompile(never)
	rows, err := pool.Query("EXPLAIN QUERY PLAN "+query, make([]any, strings.Count(query, "?"))...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for ; rows.Next(); steps++ {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		if refused.MatchString(detail) || strings.Contains(detail, "AUTOMATIC") {
			t.Errorf("%s: %s", name, detail)
		}
	}
	if err := rows.Close(); err != nil || steps == 0 {
		t.Errorf("%s: a plan of %d steps, %v", name, steps, err)
	}
}
