package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

type ownersInput struct {
	Limit number `query:"limit" maximum:"1000" doc:"at most so many; default 100"`
	After string `query:"after" maxLength:"255" doc:"start after this owner"`
}

type balanceInput struct {
	Owner string `path:"owner" maxLength:"255"`
	At    moment `query:"at" doc:"as of this time; a span may be negative, such as -1h. Not together with lots"`
	Lots  flag   `query:"lots" doc:"with the owner's lots, in the order in which they are spent"`
}

func (s *Server) addOwners() {
	add(s, route{
		method: http.MethodGet, path: "/v1/owners", id: "listOwners", tag: "owners", need: ledger.ScopeRead,
		summary: "List the balances of all owners, by their ids",
	}, s.owners)
	add(s, route{
		method: http.MethodGet, path: "/v1/owners/{owner}/balance", id: "getBalance", tag: "owners",
		need:    ledger.ScopeRead,
		summary: "Show where an owner's credits are",
	}, s.balance)
}

func (s *Server) owners(ctx context.Context, in *ownersInput) (list[ledger.Balance], error) {
	return paged(in.Limit, func(b *ledger.Balance) string { return b.Owner },
		func(most int) ([]ledger.Balance, error) {
			return s.ledger.Balances(ctx, in.After, most)
		}, givenID("after", in.After))
}

func (s *Server) balance(ctx context.Context, in *balanceInput) (ledger.Balance, error) {
	p := ledger.BalanceParams{Owner: in.Owner}
	var errs [2]error
	p.At, errs[0] = in.At.when("at")
	p.Lots, errs[1] = in.Lots.on("lots")
	if err := first(errs[:]...); err != nil {
		return ledger.Balance{}, err
	}
	return s.ledger.Balance(ctx, p)
}
