package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"jobledger/ledger"
)

// view is one page as its template needs it.
type view struct {
	Title string
	Here  string // the entry of the navigation that it belongs to
	API   string // the path of the matching document; empty: there is none
	Data  any

	Still   bool   // it never changes: there is nothing to follow
	Running bool   // it is about something that is going on: without JavaScript, look again
	Chart   bool   // it has a picture of the lab
	Token   string // the name of the token that looks; empty: none
}

// answerMax bounds the making of a page.
const answerMax = 5 * time.Second

// viewer makes a view for a request.
type viewer func(*http.Request) (view, error)

//go:embed templates
var templateFiles embed.FS

// templates has a set for each page, by its name: the page around its own part, which is "main".
var templates = func() map[string]*template.Template {
	all := make(map[string]*template.Template)
	shared := template.Must(template.New("").Funcs(functions).ParseFS(
		templateFiles, "templates/layout.html", "templates/parts.html"))
	for _, name := range []string{
		"status", "owners", "owner", "jobs", "job", "reconcile", "conflicts", "deliveries", "audit", "lab",
		"run", "sign-in", "error",
	} {
		all[name] = template.Must(template.Must(shared.Clone()).ParseFS(templateFiles, "templates/"+name+".html"))
	}
	return all
}()

// show answers with a view: as a page, or as a stream of what becomes of it.
func (p *Page) show(name string, see viewer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		if wantsStream(r) {
			p.stream(w, r, name, see)
			return
		}
		v, err := p.see(r, see)
		if err != nil {
			p.fail(w, r, err)
			return
		}
		p.write(w, r, http.StatusOK, name, v)
	})
}

// see makes a view in bounded time.
func (p *Page) see(r *http.Request, see viewer) (view, error) {
	ctx, cancel := context.WithTimeout(r.Context(), answerMax)
	defer cancel()
	v, err := see(r.WithContext(ctx))
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &ledger.Error{Code: ledger.Busy, Message: "it took longer than " + answerMax.String()}
	}
	return v, err
}

// write sends a view as a page.
func (p *Page) write(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	v.Token = tokenOf(r.Context()).Name
	var b bytes.Buffer
	if err := templates[name].ExecuteTemplate(&b, "layout", v); err != nil {
		p.options.Log.Error("page", "name", name, "error", err)
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a reader that is gone needs no answer
}

// problem is what the error page tells.
type problem struct {
	Code    ledger.Code
	Message string
	Advice  string
}

// advice is what to do about an error, by its code.
var advice = map[ledger.Code]string{
	ledger.NotFound:       "Check the address; ids are compared letter by letter.",
	ledger.Busy:           "Nothing is wrong with the data. Look again in a moment.",
	ledger.Forbidden:      "Sign in with a token that may do this, or ask who keeps the ledger.",
	ledger.Inconsistent:   "Nothing was changed. Run jobledger audit and jobledger doctor.",
	ledger.Invalid:        "Go back and change it.",
	ledger.NotAllowed:     "Try again when that has ended.",
	ledger.OutcomeUnknown: "Look again in a moment.",
}

// fail answers with an error page.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := ledger.CodeOf(err)
	data := problem{Code: code, Message: err.Error(), Advice: advice[code]}
	if code == ledger.Internal {
		p.options.Log.Error("page", "path", r.URL.Path, "error", err)
		data.Message, data.Advice = "something here failed", "The server's log says what."
	}
	if code == ledger.Busy {
		w.Header().Set("Retry-After", "1")
	}
	title := fmt.Sprintf("%d %s", code.Info().HTTP, http.StatusText(code.Info().HTTP))
	p.write(w, r, code.Info().HTTP, "error", view{Title: title, Data: data, Still: true})
}

// noTime is the time of a file that has none.
var noTime time.Time

// tag names a content for a browser's cache.
func tag(content []byte) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(content)) }

// number reads a number from 0 on of a query; it is 0 where there is none.
func number(r *http.Request, field string) (int64, error) {
	text := r.URL.Query().Get(field)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, ledger.InvalidField(field, "%.40q is not a number", text)
	}
	return n, nil
}
