// Package strictjson reads one JSON document so that no two readers can disagree about what it says.
//
// The standard decoder lets the last of two equal members win, matches the names of members without
// regard to case, and replaces bytes that are no character. Here each of these is an error that names
// the member, as are unknown members, more than one document, and deep nesting.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DepthMax is how deep arrays and objects may be nested.
const DepthMax = 32

// Check refuses a text that is not exactly one JSON document in UTF-8, that names a member of an
// object twice, if only in another case, that has half of a surrogate pair, or that is nested deeper
// than DepthMax. The error is one line and gives the place as a JSON pointer.
func Check(text []byte) error {
	if err := check(text, Fold); err != nil {
		return err
	}
	if LoneSurrogate(text) {
		return errors.New("the document has one half of a surrogate pair, which is no character")
	}
	return nil
}

// Decode checks a document and reads it into a value, as [json.Unmarshal] does. A member that the
// value has no field for is an error, and so is one whose name is a field's only in another case.
func Decode(text []byte, into any) error {
	if err := Check(text); err != nil {
		return err
	}
	document, err := parse(text)
	if err != nil {
		return err
	}
	if err := checkNames(document, reflect.TypeOf(into), nil); err != nil {
		return err
	}
	err = json.Unmarshal(text, into)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		var at *path
		for name := range strings.FieldsFuncSeq(e.Field, func(r rune) bool { return r == '.' }) {
			at = at.in(name)
		}
		return fmt.Errorf("%s: it takes %s, not %s", at, kindOf(e.Type), e.Value)
	}
	return err
}

// Parse gives somebody else's document as maps, slices, strings, bools, nil and [json.Number], for
// [Lookup]. It checks what Check does but for two things, which documents with texts and parameters of
// users in them are full of: members that differ in case, and halves of surrogate pairs, which become
// the replacement character.
func Parse(text []byte) (any, error) {
	if err := check(text, func(name string) string { return name }); err != nil {
		return nil, err
	}
	return parse(text)
}

func parse(text []byte) (document any, err error) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	err = in.Decode(&document)
	return document, err
}

// check reads a document without keeping it. Two members of an object are one and the same if same gives
// one text for their names.
func check(text []byte, same func(name string) string) error {
	switch {
	case !utf8.Valid(text):
		return errors.New("the document is not valid UTF-8")
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("the document is empty")
	}
	c := checker{json.NewDecoder(bytes.NewReader(text)), same}
	c.in.UseNumber()
	if err := c.value(nil, 0); err != nil {
		return err
	}
	if _, err := c.in.Token(); err != io.EOF {
		return errors.New("there is more after the end of the document")
	}
	return nil
}

type checker struct {
	in   *json.Decoder
	same func(name string) string
}

// value reads one value, which is at a path.
func (c *checker) value(at *path, depth int) error {
	token, err := c.in.Token()
	if err != nil {
		return c.notJSON(err)
	}
	opened, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth++; depth > DepthMax {
		return fmt.Errorf("%s: nested deeper than %d", at, DepthMax)
	}
	seen := make(map[string]bool)
	for i := 0; c.in.More(); i++ {
		name := strconv.Itoa(i)
		if opened == '{' {
			if name, err = c.member(seen, at); err != nil {
				return err
			}
		}
		if err := c.value(at.in(name), depth); err != nil {
			return err
		}
	}
	if _, err := c.in.Token(); err != nil {
		return c.notJSON(err)
	}
	return nil
}

// member reads the name of a member, which must be new to its object.
func (c *checker) member(seen map[string]bool, at *path) (name string, err error) {
	token, err := c.in.Token()
	if err != nil {
		return "", c.notJSON(err)
	}
	name, _ = token.(string) // the decoder lets nothing else pass for a name
	known := c.same(name)
	if seen[known] {
		return "", fmt.Errorf("%s: the member is there twice", at.in(name))
	}
	seen[known] = true
	return name, nil
}

func (c *checker) notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the document ends too early")
	}
	return fmt.Errorf("not a JSON document: %w (after byte %d)", err, c.in.InputOffset())
}

// checkNames compares the names in a document with the fields of the type that it is read into.
func checkNames(document any, t reflect.Type, at *path) error {
	for t != nil && t.Kind() == reflect.Pointer {
		if t.Implements(unmarshaler) {
			return nil
		}
		t = t.Elem()
	}
	if t == nil || reflect.PointerTo(t).Implements(unmarshaler) {
		return nil
	}
	switch document := document.(type) {
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return nil // the decoder will say so
		}
		for i, element := range document {
			if err := checkNames(element, t.Elem(), at.in(strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(document)) { // so that the error is always the same
			element, known := fieldOf(t, name)
			if !known {
				return fmt.Errorf("%s: there is no such member", at.in(name))
			}
			if err := checkNames(document[name], element, at.in(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// fieldOf gives the type that a member is read into; nil is a type without names to check.
func fieldOf(t reflect.Type, name string) (element reflect.Type, known bool) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), true
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || tag == "-" || f.Anonymous && tag == "" {
				continue
			}
			if tag == name || tag == "" && f.Name == name {
				return f.Type, true
			}
		}
		return nil, false
	}
	return nil, true
}

// kindOf names a Go type in JSON's words.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return "a whole number"
}
