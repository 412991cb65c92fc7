package server

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"jobledger/ledger"
)

//go:embed page/docs.html page/style.css
var pageFiles embed.FS

var docsPage = template.Must(template.ParseFS(pageFiles, "page/docs.html"))

// addPages adds what is not of the API: its description, health and figures.
func (s *Server) addPages() {
	s.mux.HandleFunc("GET /healthz", s.healthy)
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.HandleFunc("GET /metrics", s.guard(ledger.ScopeRead, s.metrics.handler()))
	style, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		panic(err) // it is in the binary
	}
	description := s.Description()
	docs := s.docs()
	s.mux.HandleFunc("GET /openapi.json", static("application/vnd.oai.openapi+json", description))
	s.mux.HandleFunc("GET /style.css", static("text/css; charset=utf-8", style))
	s.mux.HandleFunc("GET /docs", static("text/html; charset=utf-8", docs))
	s.mux.HandleFunc("GET "+problemsPath+"{code}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/docs#"+template.URLQueryEscaper(r.PathValue("code")), http.StatusFound)
	})
}

// static answers with bytes that never change.
func static(kind string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Security-Policy",
			"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		_, _ = w.Write(body) // a client that has left is its own business
	}
}

// Description is the OpenAPI description of the API, as it is served at /openapi.json.
func (s *Server) Description() []byte {
	text, err := json.Marshal(s.api.OpenAPI())
	var indented bytes.Buffer
	if err == nil {
		err = json.Indent(&indented, text, "", "  ")
	}
	if err != nil {
		panic(err) // it is made of this program alone
	}
	indented.WriteByte('\n')
	return indented.Bytes()
}

// documented is one operation as the page shows it.
type documented struct {
	Method, Path, Summary, About, ID string
	Scope                            ledger.Scope
	Status                           string
	Fields                           []documentedField
}

// documentedField is a parameter, or a member of the body.
type documentedField struct {
	Name, In, Type, About string
	Required              bool
}

// docs makes the page of the API out of its description.
func (s *Server) docs() []byte {
	var operations []documented
	for path, item := range maps.All(s.api.OpenAPI().Paths) {
		for _, op := range []*huma.Operation{item.Get, item.Post} {
			if op != nil {
				operations = append(operations, s.document(path, op))
			}
		}
	}
	slices.SortFunc(operations, func(a, b documented) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	var out bytes.Buffer
	err := docsPage.Execute(&out, struct {
		Operations []documented
		Codes      []ledger.CodeInfo
	}{operations, ledger.Codes})
	if err != nil {
		panic(err) // it is made of this program alone
	}
	return out.Bytes()
}

func (s *Server) document(path string, op *huma.Operation) documented {
	d := documented{
		Method: op.Method, Path: path, Summary: op.Summary, About: op.Description, ID: op.OperationID,
		Scope: s.needs[op.OperationID], Status: "200",
	}
	if op.Responses["201"] != nil {
		d.Status = "201"
	}
	for _, p := range op.Parameters {
		d.Fields = append(d.Fields, documentedField{
			Name: p.Name, In: p.In, Type: typeName(p.Schema), About: p.Description, Required: p.Required,
		})
	}
	if op.RequestBody == nil {
		return d
	}
	ref := op.RequestBody.Content["application/json"].Schema.Ref
	body := s.api.OpenAPI().Components.Schemas.SchemaFromRef(ref)
	for _, name := range slices.Sorted(maps.Keys(body.Properties)) {
		p := body.Properties[name]
		d.Fields = append(d.Fields, documentedField{
			Name: name, In: "body", Type: typeName(p), About: p.Description,
			Required: slices.Contains(body.Required, name),
		})
	}
	slices.SortStableFunc(d.Fields, func(a, b documentedField) int { return order(a) - order(b) })
	return d
}

// order puts what must be there first.
func order(f documentedField) int {
	if f.Required {
		return 0
	}
	return 1
}

// typeName shows a schema in a few words.
func typeName(s *huma.Schema) string {
	if len(s.Enum) == 0 {
		return s.Type
	}
	var words []string
	for _, w := range s.Enum {
		words = append(words, w.(string))
	}
	return strings.Join(words, ", ")
}
