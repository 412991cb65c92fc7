package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// writer makes requests out of a description: mostly sound ones about a few names, so that they meet, and
// some that are wrong in one place.
type writer struct {
	*rand.Rand
	described
	operations []operation
}

// operation is one operation of a description.
type operation struct{ method, path string }

func newWriter(d described, seed uint64) *writer {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 1)), described: d}
	for path, item := range d.Paths {
		for method := range item {
			w.operations = append(w.operations, operation{method, path})
		}
	}
	slices.SortFunc(w.operations, func(a, b operation) int {
		return strings.Compare(a.path+a.method, b.path+b.method)
	})
	return w
}

// nasty are values that have broken programs.
var nasty = []any{
	nil, true, false, 0, -1, 1.5, 1e300, "", " ", "\x00", "\u202e", "é", strings.Repeat("x", 256), "a/b", "..",
	"%00", strings.Repeat("9", 400), "' OR 1=1 --", "null", []any{}, []any{1}, map[string]any{},
	map[string]any{"a": nil},
	json.Number("9007199254740992"), json.Number("-0"), json.Number("1E400"), "2026-12-31T00:00:00Z",
	"9999-12-31T23:59:60Z", "-99999999999h", "106750d", "-1d",
}

// value makes a value for a schema.
func (w *writer) value(name string, s schema) any {
	if w.IntN(12) == 0 {
		return nasty[w.IntN(len(nasty))]
	}
	if s.Ref != "" {
		s = w.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	switch {
	case len(s.Enum) > 0:
		return s.Enum[w.IntN(len(s.Enum))]
	case s.Type == "integer":
		return 1 + w.IntN(3)
	case s.Type == "boolean":
		return w.IntN(2) == 0
	case s.Type == "object":
		return w.object(s)
	case name == "effective" || name == "expires" || name == "deadline" || name == "at":
		return []string{"30d", "1ms", "2030-01-01T00:00:00Z"}[w.IntN(3)]
	case name == "owner":
		return fmt.Sprintf("o%d", w.IntN(3))
	}
	return fmt.Sprintf("n%d", w.IntN(40))
}

func (w *writer) object(s schema) map[string]any {
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if (slices.Contains(s.Required, name) || w.IntN(3) == 0) && w.IntN(40) != 0 {
			made[name] = w.value(name, s.Properties[name])
		}
	}
	if w.IntN(40) == 0 {
		made[fmt.Sprint(nasty[w.IntN(len(nasty))])] = 1
	}
	return made
}

// request makes one request.
func (w *writer) request() (method, path, body string) {
	chosen := w.operations[w.IntN(len(w.operations))]
	op := w.Paths[chosen.path][chosen.method]
	path = chosen.path
	query := url.Values{}
	for _, p := range op.Parameters {
		text := fmt.Sprint(w.value(p.Name, p.Schema))
		switch {
		case p.In == "path":
			escaped := strings.NewReplacer(".", "%2E").Replace(url.PathEscape(text))
			path = strings.ReplaceAll(path, "{"+p.Name+"}", escaped)
		case p.In == "query" && w.IntN(2) == 0:
			query.Add(p.Name, text)
		}
	}
	if w.IntN(30) == 0 {
		query.Add(fmt.Sprint(nasty[w.IntN(len(nasty))]), "1")
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if op.RequestBody == nil {
		return strings.ToUpper(chosen.method), path, ""
	}
	document, err := json.Marshal(w.value("", op.RequestBody.Content["application/json"].Schema))
	if err != nil {
		panic(err)
	}
	switch w.IntN(30) {
	case 0: // one byte is another
		document[w.IntN(len(document))] = byte(w.IntN(256))
	case 1: // it breaks off
		document = document[:w.IntN(len(document)+1)]
	}
	return strings.ToUpper(chosen.method), path, string(document)
}

// broken tells whether a status is the server's fault. 503 is not: it is what a busy one says.
func broken(status int) bool { return status >= 500 && status != 503 }

// TestNoInputIsAFailure sends 10,000 requests that the description allows, or nearly, to a ledger on each
// engine. None is answered with a failure, each refusal is a problem, and in the end the books agree.
func TestNoInputIsAFailure(t *testing.T) {
	const clients, requests = 20, 500 // of each client
	dbtest.Each(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, server.Options{})
		d := describe(t, s)
		var mutex sync.Mutex
		statuses := map[string]int{}
		var group sync.WaitGroup
		for client := range clients {
			group.Go(func() {
				w := newWriter(d, uint64(client))
				for range requests {
					method, path, body := w.request()
					r, err := s.try(method, path, body)
					if err != nil {
						t.Errorf("%s %s %s: %v", method, path, body, err)
						continue
					}
					var p struct {
						Code   ledger.Code
						Status int
					}
					err = json.Unmarshal([]byte(r.text), &p)
					if err != nil || broken(r.status) || r.status >= 400 && (p.Status != r.status || p.Code == "") {
						t.Errorf("%s %s %s: %d %s", method, path, body, r.status, r.text)
					}
					mutex.Lock()
					statuses[fmt.Sprint(method, " ", r.status)]++
					mutex.Unlock()
				}
			})
		}
		group.Wait()
		t.Logf("busy: %d of GET, %d of POST; all: %v", statuses["GET 503"], statuses["POST 503"], statuses)
		for _, status := range []string{"GET 200", "POST 200", "POST 201", "POST 409", "POST 422", "POST 402"} {
			if statuses[status] < 5 {
				t.Errorf("only %d requests were answered with %s", statuses[status], status)
			}
		}
		if ok := s.must("GET", "/v1/audit", "").member(t, "ok"); ok != true {
			t.Errorf("the audit: %s", s.must("GET", "/v1/audit", "").text)
		}
	})
}

// FuzzAPI sends any bytes as the body of each operation that has one.
func FuzzAPI(f *testing.F) {
	s := sqlite(f)
	s.grant("o1", "k1", "1000000")
	s.must("POST", "/v1/jobs", `{"id":"n1","owner":"o1","cost":7}`)
	w := newWriter(describe(f, s), 1)
	w.operations = slices.DeleteFunc(w.operations, func(o operation) bool {
		return w.Paths[o.path][o.method].RequestBody == nil
	})
	for i, o := range w.operations {
		schema := w.Paths[o.path][o.method].RequestBody.Content["application/json"].Schema
		body, err := json.Marshal(w.value("", schema))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint(i), body)
	}
	f.Add(uint(0), []byte(`{"owner":"o1","amount":1,"amount":2,"key":"k"}`))
	f.Fuzz(func(t *testing.T, which uint, body []byte) {
		o := w.operations[which%uint(len(w.operations))]
		path := strings.NewReplacer("{id}", "n1", "{attempt}", "1", "{owner}", "o1").Replace(o.path)
		r, err := s.try("POST", path, string(body))
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid([]byte(r.text)) || broken(r.status) {
			t.Errorf("%s %q: %d %s", path, body, r.status, r.text)
		}
		if !json.Valid(body) && r.status/100 != 4 && len(body) > 0 {
			t.Errorf("%s %q is no JSON: %d %s", path, body, r.status, r.text)
		}
	})
}
