package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"jobledger/ledger"
)

// What is remembered of tokens: for so long that a busy client costs one look-up a second, and a token
// that was revoked is refused within that time.
const (
	tokenTime = time.Second
	tokensMax = 1000
)

// gate decides who may do what.
type gate struct {
	ledger *ledger.Ledger
	closed bool // a token is needed even if none was ever made
	cross  *http.CrossOriginProtection

	// session gives the token that a browser signed in with, if it did.
	session func(*http.Request) (token ledger.Token, signedIn bool, err error)

	mutex  sync.Mutex
	tokens map[[sha256.Size]byte]remembered // by the hash of the secret
	open   bool                             // no token was ever made
	openAt time.Time                        // when that was looked up
}

type remembered struct {
	token ledger.Token
	until time.Time
}

func newGate(l *ledger.Ledger, closed bool) *gate {
	return &gate{
		ledger: l, closed: closed, cross: http.NewCrossOriginProtection(),
		tokens: map[[sha256.Size]byte]remembered{},
	}
}

// authorize lets an operation be asked for by those who may.
func (s *Server) authorize(need ledger.Scope) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(c)
		if err := s.gate.permit(r, need); err != nil {
			newProblem(err).send(w, r)
			return
		}
		next(c)
	}
}

// guard is authorize for what is not an operation.
func (s *Server) guard(need ledger.Scope, next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := s.gate.permit(r, need); err != nil {
			newProblem(err).send(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// permit says why a request may not do something; nil if it may.
func (g *gate) permit(r *http.Request, need ledger.Scope) error {
	header := r.Header.Get("Authorization")
	if header == "" {
		return g.permitBrowser(r, need)
	}
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return &ledger.Error{Code: ledger.Unauthenticated, Message: "the header Authorization is not Bearer ..."}
	}
	token, err := g.authenticate(r.Context(), strings.TrimSpace(secret))
	if err != nil {
		return err
	}
	return allow(r, token, need)
}

// allow says why a token may not do something; nil if it may.
func allow(r *http.Request, token ledger.Token, need ledger.Scope) error {
	recordOf(r.Context()).token = token.Name
	if !token.Scope.Allows(need) {
		return &ledger.Error{
			Code:    ledger.Forbidden,
			Message: fmt.Sprintf("token %q has the scope %s, and this needs %s", token.Name, token.Scope, need),
		}
	}
	return nil
}

// permitBrowser permits a browser that signed in to look at documents, and to do no more: its session is no
// token. Everybody else without a token is permitted what permitOpen does.
func (g *gate) permitBrowser(r *http.Request, need ledger.Scope) error {
	if r.Method == http.MethodGet && g.session != nil {
		token, signedIn, err := g.session(r)
		if err != nil {
			return err
		}
		if signedIn {
			return allow(r, token, need)
		}
	}
	return g.permitOpen(r)
}

// permitOpen permits a request without a token while no token was ever made: to programs on this machine,
// but not to a page in its browser, neither one that another site sent nor one whose name was made to lead
// here.
func (g *gate) permitOpen(r *http.Request) error {
	open, err := g.isOpen(r.Context())
	switch {
	case err != nil:
		return err
	case !open:
		return &ledger.Error{
			Code: ledger.Unauthenticated, Message: "a token is needed: send the header Authorization: Bearer jl_...",
		}
	case !localName(r.Host):
		return &ledger.Error{
			Code:    ledger.Forbidden,
			Message: fmt.Sprintf("without tokens this server answers to localhost only, not to %.100q", r.Host),
		}
	}
	if err := g.cross.Check(r); err != nil {
		return &ledger.Error{Code: ledger.Forbidden, Message: err.Error()}
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Dest") != "document" {
		// It could not read the answer, but it could keep the ledger at work, also by a frame that stays empty.
		return &ledger.Error{Code: ledger.Forbidden, Message: "a page of another site asks"}
	}
	return nil
}

// localName tells whether a Host header names this machine to itself.
func localName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || strings.EqualFold(host, "localhost")
}

func (g *gate) isOpen(ctx context.Context) (bool, error) {
	if g.closed {
		return false, nil
	}
	g.mutex.Lock()
	open, fresh := g.open, time.Since(g.openAt) < tokenTime
	g.mutex.Unlock()
	if fresh {
		return open, nil
	}
	list, err := g.ledger.Tokens(ctx)
	if err != nil {
		return false, err
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.open, g.openAt = len(list) == 0, time.Now()
	return g.open, nil
}

// authenticate gives the token of a secret. Only tokens that were valid are remembered, under a hash:
// looking one up takes as long whatever a guess has in common with it.
func (g *gate) authenticate(ctx context.Context, secret string) (ledger.Token, error) {
	hash := sha256.Sum256([]byte(secret))
	now := time.Now()
	g.mutex.Lock()
	known, found := g.tokens[hash]
	g.mutex.Unlock()
	if found && now.Before(known.until) {
		return known.token, nil
	}
	token, err := g.ledger.Authenticate(ctx, secret)
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if err != nil {
		delete(g.tokens, hash)
		return ledger.Token{}, err
	}
	if len(g.tokens) >= tokensMax {
		clear(g.tokens)
	}
	g.tokens[hash] = remembered{token, now.Add(tokenTime)}
	return token, nil
}
