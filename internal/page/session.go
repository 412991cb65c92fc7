package page

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"jobledger/ledger"
)

const (
	sessionCookie = "jobledger_session"
	sessionTime   = 12 * time.Hour
	sessionsMax   = 1000
	formMax       = 8 << 10 // bytes of a form
)

// sessions are the browsers that signed in, in memory: who restarts the server signs in again.
type sessions struct {
	mutex sync.Mutex
	byID  map[string]session
}

// session is a browser that showed a token. The token's secret is not kept.
type session struct {
	token ledger.Token
	until time.Time
}

// begin opens a session, and gives its id. Of too many, the one that would end first is closed.
func (s *sessions) begin(token ledger.Token) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	first, now := "", time.Now()
	for id, other := range s.byID {
		if now.After(other.until) {
			delete(s.byID, id)
		} else if first == "" || other.until.Before(s.byID[first].until) {
			first = id
		}
	}
	if len(s.byID) >= sessionsMax {
		delete(s.byID, first)
	}
	id := rand.Text()
	s.byID[id] = session{token, now.Add(sessionTime)}
	return id
}

// find gives the session of a request.
func (s *sessions) find(r *http.Request) (ledger.Token, bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return ledger.Token{}, false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found, ok := s.byID[cookie.Value]
	if !ok || time.Now().After(found.until) {
		return ledger.Token{}, false
	}
	return found.token, true
}

func (s *sessions) end(r *http.Request) {
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(s.byID, cookie.Value)
	}
}

type tokenKey struct{}

// tokenOf is the token that a request was admitted with; without a name if it took none.
func tokenOf(ctx context.Context) ledger.Token {
	token, _ := ctx.Value(tokenKey{}).(ledger.Token)
	return token
}

// who tells who asks: the session's token, or nobody in particular where no token is needed.
func (p *Page) who(r *http.Request) (ledger.Token, error) {
	token, signedIn, err := p.Session(r)
	if err == nil && !signedIn && p.options.Gate != nil {
		err = p.options.Gate.Open(r)
	}
	return token, err
}

// Session gives the token that a browser signed in with. Errors: UNAUTHENTICATED if the token was revoked
// meanwhile, which ends the session; those of [ledger.Ledger.Tokens].
func (p *Page) Session(r *http.Request) (token ledger.Token, signedIn bool, err error) {
	token, signedIn = p.sessions.find(r)
	if !signedIn {
		return token, false, nil
	}
	all, err := p.ledger.Tokens(r.Context())
	if err != nil {
		return ledger.Token{}, false, err
	}
	i := slices.IndexFunc(all, func(t ledger.Token) bool { return t.ID == token.ID })
	if i < 0 || all[i].RevokedAt != nil {
		p.sessions.end(r)
		return ledger.Token{}, false, &ledger.Error{
			Code: ledger.Unauthenticated, Message: "the token of this session was revoked",
		}
	}
	return all[i], true, nil
}

// admit lets those through who may look. Others are asked for a token.
func (p *Page) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := p.who(r)
		switch {
		case err == nil:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, token)))
		case ledger.CodeOf(err) == ledger.Unauthenticated && r.Method == http.MethodGet && !wantsStream(r):
			http.Redirect(w, r, query("/sign-in", "next", r.URL.RequestURI()), http.StatusSeeOther)
		default:
			p.fail(w, r, err)
		}
	})
}

// signInForm is what the form shows.
type signInForm struct {
	Next    string
	Problem string
}

func (p *Page) askToken(w http.ResponseWriter, r *http.Request) {
	next := local(r.URL.Query().Get("next"))
	if _, err := p.who(r); err == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	p.write(w, r, http.StatusOK, "sign-in", view{Title: "Sign in", Still: true, Data: signInForm{Next: next}})
}

// signIn opens a session for who shows a token. The token is in the body of the request, and nowhere else.
func (p *Page) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, formMax)
	next := local(r.PostFormValue("next"))
	if p.options.Gate == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	token, err := p.options.Gate.Authenticate(r.Context(), strings.TrimSpace(r.PostFormValue("token")))
	if ledger.CodeOf(err) == ledger.Unauthenticated {
		form := signInForm{next, "This token is not valid."}
		p.write(w, r, http.StatusUnauthorized, "sign-in", view{Title: "Sign in", Still: true, Data: form})
		return
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	p.sessions.end(r)
	p.setCookie(w, r, p.sessions.begin(token), int(sessionTime.Seconds()))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (p *Page) signOut(w http.ResponseWriter, r *http.Request) {
	p.sessions.end(r)
	p.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

func (p *Page) setCookie(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || p.options.Secure,
	})
}

// local is an address on this server; anything else becomes the first page.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\n\r\t") {
		return "/"
	}
	return next
}
