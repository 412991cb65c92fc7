//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// way is one of the ways in: it puts a value into a field, or values that are all to be refused.
type way struct {
	name string
	// allow puts a value that the field takes; n names what it makes.
	allow func(c *crossing, s *slot, v boundary, n string)
	// refuse puts values that the field does not take, each alone or all in one file.
	refuse func(c *crossing, s *slot, values []boundary)
	has    func(s *slot) bool
}

var ways = []way{
	{"command line", (*crossing).allowCLI, (*crossing).refuseCLI, func(s *slot) bool { return s.cli != "" }},
	{"HTTP", (*crossing).allowHTTP, (*crossing).refuseHTTP, func(s *slot) bool { return s.path != "" }},
	{"import of jsonl", allowBooks("jsonl"), refuseBooks("jsonl"), func(s *slot) bool { return s.rows != "" }},
	{"import of csv", allowBooks("csv"), refuseBooks("csv"), func(s *slot) bool { return s.rows != "" }},
}

// crossing is a run of the table by one way into one ledger.
type crossing struct {
	*testing.T
	dsn    string
	server *served
}

// TestBoundaries puts each value of the table into each of its fields, by each way in, on both engines. What
// one way takes, every way takes. What is refused is INVALID, in the form of that way, names the field, and
// leaves the export as it was, to the byte.
func TestBoundaries(t *testing.T) {
	for i := range ways {
		w := &ways[i]
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, dsn string) {
				c := &crossing{t, dsn, nil}
				if w.name == "HTTP" {
					c.server = serve(t, dsn)
				}
				for i := range slots {
					if w.has(&slots[i]) {
						c.cross(w, &slots[i], i)
					}
				}
				must(t, dsn, "audit")
			})
		})
	}
}

func (c *crossing) cross(w *way, s *slot, number int) {
	c.Helper()
	books := strings.HasPrefix(w.name, "import")
	var bad []boundary
	var taken []string
	for _, v := range s.values {
		leftOut := books && s.optional && v.text == ""
		if v.verdict != takes && !leftOut {
			bad = append(bad, v)
		}
	}
	if !books {
		c.prepare(s, boundary{}, fmt.Sprint("bad", number))
	}
	before := must(c.T, c.dsn, "export")
	w.refuse(c, s, bad)
	if after := must(c.T, c.dsn, "export"); after != before {
		c.Errorf("%s: what was refused changed the ledger by %s", s.name, news(before, after))
	}
	for i, v := range s.values {
		if v.verdict != takes {
			continue
		}
		n := fmt.Sprintf("ok%d-%d", number, i)
		if !books {
			c.prepare(s, v, n)
		}
		w.allow(c, s, v, n)
		taken = append(taken, v.text)
	}
	after := must(c.T, c.dsn, "export")
	for _, text := range taken {
		if s.kept && !strings.Contains(after, quoted(text)) {
			c.Errorf("%s: %.40q was taken and is not in the export", s.name, text)
		}
	}
}

// news gives the lines of a text that another does not have.
func news(before, after string) (list []string) {
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			list = append(list, line)
		}
	}
	return list
}

// prepare does what has to be there before a value can be put into a slot.
func (c *crossing) prepare(s *slot, v boundary, n string) {
	c.Helper()
	for line := range strings.Lines(s.before) {
		if !strings.Contains(line, "$V") || v.text != "" {
			must(c.T, c.dsn, words(line, v.text, n)...)
		}
	}
}

// words splits a command line, and puts the value and the name into it.
func words(line, value, n string) []string {
	list := strings.Fields(line)
	for i := range list {
		list[i] = strings.NewReplacer("$V", value, "$N", n).Replace(list[i])
	}
	return list
}

func (c *crossing) allowCLI(s *slot, v boundary, n string) {
	c.Helper()
	if strings.ContainsRune(v.text, 0) {
		return // the end of an argument: no command line can have it
	}
	must(c.T, c.dsn, words(s.cli, v.text, n)...)
}

func (c *crossing) refuseCLI(s *slot, values []boundary) {
	c.Helper()
	for _, v := range values {
		if strings.ContainsRune(v.text, 0) {
			continue
		}
		o := jobledger(c.T, c.dsn, append([]string{"--json"}, words(s.cli, v.text, s.bad())...)...)
		var e ledger.Error
		err := json.Unmarshal([]byte(o.stderr), &e)
		named := strings.ReplaceAll(e.Field, "-", "_") == s.field && strings.HasPrefix(e.Message, e.Field+": ")
		if err != nil || e.Code != ledger.Invalid || !named ||
			o.exit != ledger.Invalid.Info().Exit || o.stdout != "" {
			c.Errorf("%s: %.40q: got %+v, want %s of %s", s.name, v.text, o, ledger.Invalid, s.field)
		}
	}
}

// bad is what the things of a slot's refused values are named.
func (s *slot) bad() string {
	return fmt.Sprint("bad", slices.IndexFunc(slots, func(o slot) bool { return o.name == s.name }))
}

// said is what a server says of a request.
type said struct {
	Code          ledger.Code
	Field, Detail string
}

func (c *crossing) post(s *slot, v boundary, n string) (status int, answer said) {
	c.Helper()
	inPath := strings.ReplaceAll(url.PathEscape(v.text), ".", "%2E")
	path := strings.NewReplacer("$V", inPath, "$N", n).Replace(s.path)
	body := strings.NewReplacer("$V", s.json(v.text), "$N", n).Replace(s.body)
	status, err := c.server.post(path, body, &answer)
	if err != nil {
		c.Fatalf("%s: %.40q: %v", s.name, v.text, err)
	}
	return status, answer
}

// json is a value as it stands in a document: one that is a number or an object there as it is.
func (s *slot) json(text string) string {
	document := text != "" && (text[0] == '{' || json.Valid([]byte(text)))
	if s.raw && document && strings.TrimSpace(text) == text {
		return text
	}
	return quoted(text)
}

// quoted is a text as a JSON string, which has even the bytes that are no character.
func quoted(text string) string {
	if !utf8.ValidString(text) {
		return `"` + text + `"`
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // a text can be encoded
	}
	return strings.TrimSpace(b.String())
}

func (c *crossing) allowHTTP(s *slot, v boundary, n string) {
	c.Helper()
	if status, answer := c.post(s, v, n); status/100 != 2 {
		c.Errorf("%s: %.40q is refused: %d %+v", s.name, v.text, status, answer)
	}
}

func (c *crossing) refuseHTTP(s *slot, values []boundary) {
	c.Helper()
	for _, v := range values {
		if v.text == "" && strings.Contains(s.path, "$V") {
			continue // another path
		}
		status, answer := c.post(s, v, s.bad())
		want := ledger.Invalid.Info().HTTP
		named := answer.Field == s.field && strings.HasPrefix(answer.Detail, s.field+": ")
		if v.verdict == garbles && !strings.Contains(s.path, "$V") {
			want, named = 400, answer.Field == "" || strings.HasPrefix(answer.Field, s.field)
		}
		if status != want || answer.Code != ledger.Invalid || !named {
			c.Errorf("%s: %.40q: got %d %+v, want %d %s of %s", s.name, v.text, status, answer, want,
				ledger.Invalid, s.field)
		}
	}
}
