package strictjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"jobledger/internal/strictjson"
)

type inner struct {
	Amount int64          `json:"amount"`
	Note   string         `json:"note,omitempty"`
	Extra  map[string]any `json:"extra,omitempty"`
}

type outer struct {
	Name  string   `json:"name"`
	List  []inner  `json:"list,omitempty"`
	One   *inner   `json:"one,omitempty"`
	Own   *ownForm `json:"own,omitempty"`
	Plain string
	inner
}

// ownForm decodes itself, so that its members are its own business.
type ownForm struct{ text string }

func (o *ownForm) UnmarshalJSON(text []byte) error {
	o.text = string(text)
	return nil
}

// B100: what two readers could understand in two ways is refused, and the error names the place.
func TestB100Check(t *testing.T) {
	for text, want := range map[string]string{
		`{"status":"failed","status":"succeeded"}`: `"/status": the member is there twice`,
		`{"status":"failed","Status":"succeeded"}`: `"/Status": the member is there twice`,
		`{"status":1,"ſtatus":2}`:                  `"/ſtatus": the member is there twice`,
		`{"kind":1,"\u212aind":2}`:                 "\"/\u212aind\"" + `: the member is there twice`,
		`{"a":[{"b":1},{"b":1,"\u0062":2}]}`:       `"/a/1/b": the member is there twice`,
		`{"a/b":{"~":1,"~":1}}`:                    `"/a~1b/~0": the member is there twice`,
		`{"a":1}{"a":1}`:                           `more after the end`,
		`{"a":1} x`:                                `more after the end`,
		`1 2`:                                      `more after the end`,
		`{"a":1,}`:                                 `not a JSON document`,
		`{"a" 1}`:                                  `not a JSON document`,
		`{a:1}`:                                    `not a JSON document`,
		`{"a":01}`:                                 `not a JSON document`,
		`[1,]`:                                     `not a JSON document`,
		`]`:                                        `not a JSON document`,
		`{"a":NaN}`:                                `not a JSON document`,
		"{\"a\":\"\x01\"}":                         `not a JSON document`,
		"\ufeff{}":                                 `not a JSON document`,
		`{"a":1`:                                   `ends too early`,
		`{"a":`:                                    `ends too early`,
		`"abc`:                                     `ends too early`,
		``:                                         `is empty`,
		" \n":                                      `is empty`,
		"{\"a\":\"\xff\"}":                         `not valid UTF-8`,
		`{"a":"\ud83d"}`:                           `half of a surrogate pair`,
		`{"a":"\ude00\ud83d"}`:                     `half of a surrogate pair`,
		`"\ud83d`:                                  `ends too early`,
		strings.Repeat("[", 33) + strings.Repeat("]", 33):      `"/0/0/`,
		strings.Repeat(`{"a":`, 100_000):                       `nested deeper than 32`,
		strings.Repeat("[", 100_000):                           `nested deeper than 32`,
		`{"` + strings.Repeat("n", 500) + `":{"b":1,"b":1}}`:   `...": the member is there twice`,
		`{"x\u0000\n":{"b":1,"b":1}}`:                          `"/x\x00\n/b": the member`,
		`{"a":1,"b":{"` + strings.Repeat("\u2028", 9) + `":[}`: `not a JSON document`,
	} {
		err := strictjson.Check([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			len(err.Error()) > 200 {
			t.Errorf("%.60q: got %v, want %q", text, err, want)
		}
	}
}

func TestCheckTakes(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `null`, ` "a" `, `1`, `-0.5e+3`, `{"a":{"a":{"a":1}},"b":{"a":1}}`, `{"":1}`,
		`{"a":"\ud83d\ude00","b":"\\ud83d","c":"\"\u0000"}`, `{"straße":1,"strasse":2}`, `[[],[{}],{"a":[]}]`,
		strings.Repeat("[", 32) + strings.Repeat("]", 32),
	} {
		if err := strictjson.Check([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDecode(t *testing.T) {
	var got outer
	const text = `{"name":"n","list":[{"amount":1},{"amount":2,"extra":{"Any":{"THING":1}}}],"one":{"amount":3},
		"own":{"Name":1,"x":2},"Plain":"p","amount":4,"note":"embedded"}`
	if err := strictjson.Decode([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := outer{Name: "n", One: &inner{Amount: 3}, Own: &ownForm{`{"Name":1,"x":2}`}, Plain: "p",
		List:  []inner{{Amount: 1}, {Amount: 2, Extra: map[string]any{"Any": map[string]any{"THING": 1.0}}}},
		inner: inner{Amount: 4, Note: "embedded"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// B100: a name is a field's name byte for byte, or it is unknown.
func TestB100Decode(t *testing.T) {
	for text, want := range map[string]string{
		`{"Name":"n"}`:                   `"/Name": there is no such member`,
		`{"zz":1,"yy":1}`:                `"/yy": there is no such member`,
		`{"list":[{},{"Amount":1}]}`:     `"/list/1/Amount": there is no such member`,
		`{"one":{"amount":1,"more":2}}`:  `"/one/more": there is no such member`,
		`{"name":1}`:                     `"/name": it takes a text, not number`,
		`{"list":{}}`:                    `"/list": it takes an array, not object`,
		`{"list":[1]}`:                   `it takes an object, not number`,
		`{"one":{"amount":"1"}}`:         `"/one/amount": it takes a whole number, not string`,
		`{"one":{"amount":1.5}}`:         `"/one/amount": it takes a whole number, not number 1.5`,
		`{"one":{"amount":1e3}}`:         `it takes a whole number`,
		`{"one":{"extra":true}}`:         `"/one/extra": it takes an object, not bool`,
		`[]`:                             `the document: it takes an object, not array`,
		`{"name":"a","name":"b"}`:        `"/name": the member is there twice`,
		`{"own":{"name":"a","NAME":""}}`: `"/own/NAME": the member is there twice`,
	} {
		err := strictjson.Decode([]byte(text), new(outer))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := strictjson.Parse([]byte(`{"a":[1.50,"x",null,true,{"b":12345678901234567890}]}`))
	want := map[string]any{"a": []any{json.Number("1.50"), "x", nil, true,
		map[string]any{"b": json.Number("12345678901234567890")}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v", got, err)
	}
	got, err = strictjson.Parse([]byte(`{"a":1,"A":"\ud83d"}`))
	if object, ok := got.(map[string]any); err != nil || !ok || len(object) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{`{"a":{"b":1,"\u0062":1}}`, `{"a":1}}`, "\"\xff\"", strings.Repeat("[", 33)} {
		if got, err := strictjson.Parse([]byte(text)); err == nil {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestLookup(t *testing.T) {
	document, err := strictjson.Parse([]byte(`{"a":{"b":[10,{"c":null}],"m~n/o":"x","":"e","B":{"Z":1,"z":2}},
		"Status":"one","ſtatus":"two","s":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"/s": "1 true", "/a/m~0n~1o": "x true", "/a/": "e true", "/a/b/0": "", "/a/b/1/c": "", "/zz": "<nil> false",
		"/s/deeper": "<nil> false", "/a/zz/x": "<nil> false", "/status": "", "/Status": "", "/a/B/z": "", "/S": "",
	} {
		p, err := strictjson.ParsePointer(text)
		if err != nil || p.String() != text {
			t.Fatal(p, err)
		}
		value, found, err := p.Lookup(document)
		if want == "" {
			if err == nil || found || !strings.Contains(err.Error(), "in another case") {
				t.Errorf("%s: got %v, %t, %v", text, value, found, err)
			}
			continue
		}
		if got := fmt.Sprint(value, " ", found); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	list, err := strictjson.Parse([]byte(`[{"a":5},7]`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]any{
		"/0/a": json.Number("5"), "/1": json.Number("7"), "/2": nil, "/-1": nil, "/01": nil, "/-": nil, "/x": nil,
		"/99999999999999999999": nil, "": list,
	} {
		p, err := strictjson.ParsePointer(text)
		if err != nil {
			t.Fatal(err)
		}
		value, found, err := p.Lookup(list)
		if !reflect.DeepEqual(value, want) || found != (want != nil) || err != nil {
			t.Errorf("%s: got %v, %t, %v", text, value, found, err)
		}
	}
}

func TestPointersRefused(t *testing.T) {
	for _, text := range []string{"a", "a/b", "$.a", "/a~", "/a~2", "/~~0", strings.Repeat("/a", 33)} {
		if p, err := strictjson.ParsePointer(text); err == nil {
			t.Errorf("%s is %v", text, p)
		}
	}
}

// B100: a large document takes time by its size and no more, even if it is one long name with many
// values under it.
func TestB100LargeDocuments(t *testing.T) {
	name := strings.Repeat("n", 1<<20)
	began := time.Now()
	for _, text := range []string{
		`{"` + name + `":[0` + strings.Repeat(",0", 1<<19) + `]}`,
		`["` + strings.Repeat(`\\`, 1<<20) + `"]`,
	} {
		if _, err := strictjson.Parse([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > time.Minute { // copying the name would take many
		t.Errorf("took %v", took)
	}
}

// FuzzParse: what is taken is a JSON document for the standard library too, and says the same when it
// is written out and read again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"id":"u1","status":"succeeded","metrics":{"predict_time":1.5}}`, `{"a":1,"A":2}`, `[1,[2,[3]]]`,
		`"\ud83d\ude00"`, `{"a":"\ud83d"}`, `{"a":1}{`, strings.Repeat("[", 40),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		document, err := strictjson.Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
				t.Errorf("a message of %d bytes: %q", len(err.Error()), err)
			}
			return
		}
		var same any
		in := json.NewDecoder(bytes.NewReader(text))
		in.UseNumber()
		if !json.Valid(text) || in.Decode(&same) != nil || !reflect.DeepEqual(document, same) {
			t.Fatalf("got %#v, the standard library reads %#v", document, same)
		}
		again, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := strictjson.Parse(again); err != nil || !reflect.DeepEqual(read, document) {
			t.Errorf("written out as %s it reads %#v, %v", again, read, err)
		}
	})
}
