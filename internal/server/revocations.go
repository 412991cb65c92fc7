package server

import (
	"context"
	"net/http"

	"jobledger/ledger"
)

// revocationRequest is the body of POST /v1/revocations.
type revocationRequest struct {
	Owner  string `json:"owner" maxLength:"255"`
	Amount number `json:"amount"`
	Key    string `json:"key,omitempty" maxLength:"255" doc:"names this revocation for ever; or the header does"`
	Reason string `json:"reason" maxLength:"1024"`
	Lot    string `json:"lot,omitempty" maxLength:"255" doc:"only from this lot; default: in spending order"`
}

func (s *Server) addRevocations() {
	add(s, route{
		method: http.MethodPost, path: "/v1/revocations", id: "revoke", tag: "revocations",
		need:    ledger.ScopeOperator,
		summary: "Take unspent credits back, as expired",
		about:   "Never more than the owner has available; held and used credits stay.",
		created: true, body: revocationRequest{},
	}, s.revoke)
}

func (s *Server) revoke(ctx context.Context, in *keyedInput) (ledger.RevokeResult, error) {
	var b revocationRequest
	if err := decode(in.RawBody, &b); err != nil {
		return ledger.RevokeResult{}, err
	}
	p := ledger.RevokeParams{Owner: b.Owner, Reason: b.Reason, Lot: b.Lot}
	var errs [2]error
	p.Amount, errs[0] = b.Amount.amount("amount")
	p.Key, errs[1] = idempotencyKey(in.IdempotencyKey, b.Key)
	if err := first(ledger.CheckID("owner", b.Owner), errs[0], errs[1]); err != nil {
		return ledger.RevokeResult{}, err
	}
	return s.ledger.Revoke(ctx, p)
}
