package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"jobledger/ledger"
)

// The limits of a request and its answer.
const (
	bodyMax     = 64 << 10         // bytes
	bodyTime    = 10 * time.Second // to read a body
	answerTime  = 20 * time.Second // to answer; the wait for a lock is 10 s
	reportTime  = 10 * time.Minute // to answer what looks at the whole ledger
	answerExtra = 10 * time.Second // to send an answer
)

// route is one operation of the API.
type route struct {
	method  string
	path    string
	id      string // unique; for the programs that are generated from the description
	tag     string // the noun
	summary string
	about   string
	need    ledger.Scope
	created bool // its answer is 201: it makes something that has a name
	whole   bool // it looks at the whole ledger
	body    any  // a value of the type of the body's document; nil: it has none
	free    bool // the body may be left out
}

// noInput is the input of an operation that takes nothing, bodyInput that of one that takes a document,
// keyedInput that of one whose document has a key, and verbInput that of one that does something with what it
// names.
type (
	noInput   struct{}
	bodyInput struct {
		RawBody []byte `contentType:"application/json"`
	}
	keyedInput struct {
		IdempotencyKey string `header:"Idempotency-Key" doc:"in place of the member key, or the same"`
		RawBody        []byte `contentType:"application/json"`
	}
	verbInput struct {
		ID      string `path:"id" maxLength:"255"`
		RawBody []byte `contentType:"application/json"`
	}
)

// answer is what a handler's result is sent as.
type answer[O any] struct{ Body O }

// list is the JSON form of every list. Next is what to pass as after for the next page; without it,
// there is none.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" doc:"for the parameter after of the next page; absent on the last"`
}

// paged answers a page of a list: what read finds, which is at most as many as limit says. wrong are the
// checks of what else the request names. A full page may be followed by an empty one.
func paged[T any](
	limit number, id func(*T) string, read func(most int) ([]T, error), wrong ...error,
) (list[T], error) {
	most, err := limit.limit()
	if err := first(append(wrong, err)...); err != nil {
		return list[T]{}, err
	}
	found, err := read(most)
	l := list[T]{Items: found}
	if err == nil && len(found) == most {
		l.Next = id(&found[most-1])
	}
	return l, err
}

// add adds an operation to the API. handle gives the result, or an error; I has the parameters, and the
// body as RawBody.
func add[I, O any](s *Server, r route, handle func(context.Context, *I) (O, error)) {
	op := huma.Operation{
		Method: r.method, Path: r.path, OperationID: r.id, Summary: r.summary, Description: r.about,
		Tags: []string{r.tag}, MaxBodyBytes: bodyMax, BodyReadTimeout: bodyTime,
		SkipValidateParams: true, SkipValidateBody: true, // handlers check, with the ledger's own words
		DefaultStatus: http.StatusOK, Security: []map[string][]string{{"token": {}}},
	}
	if r.created {
		op.DefaultStatus = http.StatusCreated
	}
	s.needs[r.id] = r.need
	op.Middlewares = huma.Middlewares{s.authorize(r.need), check(queryOf[I](), idsOf[I](), r)}
	if r.body != nil {
		op.RequestBody = &huma.RequestBody{}
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*answer[O], error) {
		result, err := handle(ctx, in)
		if err != nil {
			p := newProblem(err)
			note(ctx, p)
			return nil, p.stamp(requestID(ctx))
		}
		return &answer[O]{result}, nil
	})
	if r.body != nil {
		// The library would describe a body that it does not read itself as bytes.
		t := reflect.TypeOf(r.body)
		op.RequestBody.Required = !r.free
		op.RequestBody.Content["application/json"].Schema = s.api.OpenAPI().Components.Schemas.Schema(t, true, "")
	}
}

// queryOf names the query parameters that a request of an operation may have.
func queryOf[I any]() map[string]bool {
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[I]()) {
		if name := f.Tag.Get("query"); name != "" {
			known[name] = true
		}
	}
	return known
}

// idsOf names the ids in the path of an operation: what is as long as an id may be.
func idsOf[I any]() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[I]()) {
		if name := f.Tag.Get("path"); name != "" && f.Tag.Get("maxLength") == "255" {
			names = append(names, name)
		}
	}
	return names
}

// check is what every request of an operation passes before its body is read.
func check(known map[string]bool, ids []string, r route) func(huma.Context, func(huma.Context)) {
	bound := answerTime
	if r.whole {
		bound = reportTime
	}
	return func(c huma.Context, next func(huma.Context)) {
		request, w := humago.Unwrap(c)
		if err := first(checkPath(request, ids), checkQuery(request.URL.RawQuery, known),
			checkType(request, r.body != nil)); err != nil {
			newProblem(err).send(w, request)
			return
		}
		ctx, cancel := context.WithTimeout(c.Context(), bound)
		defer cancel()
		// A server without deadlines of its own, as in a test, cannot set one.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bound + answerExtra))
		next(huma.WithContext(c, ctx))
	}
}

// checkType refuses a body that says to be something else than JSON.
func checkType(r *http.Request, body bool) error {
	given := r.Header.Get("Content-Type")
	if !body || given == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(given)
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, ledger.Invalid,
			"the body must be application/json; the request says that it is something else")
	}
	return nil
}

// encode writes an answer, as the command line writes it. Nothing is sent unless all of it could be made.
func encode(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, _ = w.Write(b.Bytes()) // a client that has left is its own business
	return nil
}
