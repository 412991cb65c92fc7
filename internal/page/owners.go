package page

import (
	"net/http"
	"strconv"

	"jobledger/ledger"
)

const chartPoints = 300

// ownersData is a page of the list of owners.
type ownersData struct {
	After  string
	Owners []ledger.Balance
	More   string
}

func (p *Page) owners(r *http.Request) (view, error) {
	d := ownersData{After: r.URL.Query().Get("after")}
	var err error
	if d.Owners, err = p.ledger.Balances(r.Context(), d.After, pageRows); err != nil {
		return view{}, err
	}
	d.More = nextPage("/owners", d.Owners, pageRows, func(b *ledger.Balance) string { return b.Owner })
	api := query("/v1/owners", "after", d.After)
	return view{Title: "Owners", Here: "owners", API: api, Data: d}, nil
}

// ownerData is an owner's account.
type ownerData struct {
	ledger.Statement
	Chart  *chart
	Before int64
	More   string
}

func (p *Page) owner(r *http.Request) (view, error) {
	before, err := number(r, "before")
	if err != nil {
		return view{}, err
	}
	id := pathID(r.PathValue("owner"))
	s, err := p.ledger.Statement(r.Context(), ledger.StatementParams{
		Owner: id, Before: before, Limit: pageRows, Points: chartPoints,
	})
	if err != nil {
		return view{}, err
	}
	d := ownerData{Statement: s, Chart: newChart(s.History), Before: before}
	if n := len(s.Entries); n > 0 && s.Entries[n-1].Seq > 1 {
		last := strconv.FormatInt(s.Entries[n-1].Seq, 10)
		d.More = query("/owners/"+segment(id), "before", last)
	}
	return view{Title: "Owner " + id, Here: "owners", API: apiURL("owners/%s/entries", id), Data: d}, nil
}
