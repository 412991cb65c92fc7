package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

// grantRequest is the body of POST /v1/grants.
type grantRequest struct {
	Owner     string `json:"owner" maxLength:"255"`
	Amount    number `json:"amount"`
	Key       string `json:"key,omitempty" maxLength:"255" doc:"names this grant for ever; or the header does"`
	Priority  number `json:"priority,omitempty" minimum:"0" doc:"a lower one is spent first; default 0"`
	Effective moment `json:"effective,omitempty" doc:"spendable from this time on; default: at once"`
	Expires   moment `json:"expires,omitempty" doc:"spendable before this time; default: for ever"`
	Reason    string `json:"reason,omitempty" maxLength:"1024" blank:"true"`
	Metadata  object `json:"metadata,omitempty"`
}

func (s *Server) addGrants() {
	add(s, route{
		method: http.MethodPost, path: "/v1/grants", id: "grant", tag: "grants", need: ledger.ScopeWrite,
		summary: "Give an owner credits, as one new lot",
		about:   "An owner comes into being with its first grant. The key never grants twice.",
		created: true, body: grantRequest{},
	}, s.grant)
}

func (s *Server) grant(ctx context.Context, in *keyedInput) (ledger.GrantResult, error) {
	var b grantRequest
	if err := decode(in.RawBody, &b); err != nil {
		return ledger.GrantResult{}, err
	}
	p := ledger.GrantParams{Owner: b.Owner, Reason: b.Reason, Metadata: ledger.JSON(b.Metadata)}
	var errs [5]error
	p.Amount, errs[0] = b.Amount.amount("amount")
	p.Key, errs[1] = idempotencyKey(in.IdempotencyKey, b.Key)
	p.Priority, errs[2] = b.Priority.or(0, "priority", 0, ledger.AmountMax)
	p.Effective, errs[3] = b.Effective.when("effective")
	p.Expires, errs[4] = b.Expires.when("expires")
	if err := first(append([]error{ledger.CheckID("owner", b.Owner)}, errs[:]...)...); err != nil {
		return ledger.GrantResult{}, err
	}
	return s.ledger.Grant(ctx, p)
}
