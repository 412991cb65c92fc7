package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

type entriesInput struct {
	Owner string `query:"owner" maxLength:"255" doc:"only this owner's"`
	Job   string `query:"job" maxLength:"255" doc:"only this job's"`
	Limit number `query:"limit" maximum:"1000" doc:"at most so many; default 100"`
	After string `query:"after" maxLength:"255" doc:"start after the entry with this id"`
}

type ownerEntriesInput struct {
	Owner string `path:"owner" maxLength:"255"`
	Job   string `query:"job" maxLength:"255" doc:"only this job's"`
	Limit number `query:"limit" maximum:"1000" doc:"at most so many; default 100"`
	After string `query:"after" maxLength:"255" doc:"start after the entry with this id"`
}

func (s *Server) addEntries() {
	add(s, route{
		method: http.MethodGet, path: "/v1/owners/{owner}/entries", id: "listOwnerEntries", tag: "entries",
		need:    ledger.ScopeRead,
		summary: "List an owner's journal, in its order",
		about:   "It has no gaps: what comes later comes after, so that a program can follow it.",
	}, s.ownerEntries)
	add(s, route{
		method: http.MethodGet, path: "/v1/entries", id: "listEntries", tag: "entries", need: ledger.ScopeRead,
		summary: "List the journal",
		about: "Without owner or job this is for paging through what is there, not for following what comes: " +
			"a line can be committed after another with a higher id.",
	}, s.entries)
}

func (s *Server) ownerEntries(ctx context.Context, in *ownerEntriesInput) (list[ledger.Entry], error) {
	if err := ledger.CheckID("owner", in.Owner); err != nil {
		return list[ledger.Entry]{}, err
	}
	return s.entries(ctx, &entriesInput{Owner: in.Owner, Job: in.Job, Limit: in.Limit, After: in.After})
}

func (s *Server) entries(ctx context.Context, in *entriesInput) (list[ledger.Entry], error) {
	return paged(in.Limit, func(e *ledger.Entry) string { return e.ID }, func(most int) ([]ledger.Entry, error) {
		return s.ledger.Entries(ctx, ledger.EntryFilter{
			Owner: in.Owner, Job: in.Job, After: in.After, Limit: most,
		})
	}, givenID("owner", in.Owner), givenID("job", in.Job), givenID("after", in.After))
}
