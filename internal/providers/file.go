package providers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"jobledger/internal/strictjson"
	"jobledger/ledger"
)

// The shapes of the file. Members that are not here are refused.
type (
	file struct {
		Providers []json.RawMessage `json:"providers"`
	}

	entry struct {
		Name        string                    `json:"name"`
		Preset      string                    `json:"preset"`
		Scheme      string                    `json:"scheme"`
		Signature   signatureEntry            `json:"signature"`
		SecretFile  string                    `json:"secret_file"`
		SecretFiles []string                  `json:"secret_files"`
		Body        pointers                  `json:"body"`
		Outcomes    map[string]ledger.Outcome `json:"outcomes"`
		Authority   Authority                 `json:"authority"`
		Poll        *pollEntry                `json:"poll"`
	}

	signatureEntry struct {
		Header    string `json:"header"`
		Encoding  string `json:"encoding"`
		Timestamp string `json:"timestamp"`
		Content   string `json:"content"`
		Past      string `json:"past"`
		Future    string `json:"future"`
	}

	pointers struct {
		ID      string `json:"id"`
		Status  string `json:"status"`
		Cost    string `json:"cost"`
		Job     string `json:"job"`
		Attempt string `json:"attempt"`
	}

	pollEntry struct {
		URL        string                    `json:"url"`
		Header     string                    `json:"header"`
		SecretFile string                    `json:"secret_file"`
		Least      string                    `json:"least"`
		Most       string                    `json:"most"`
		Timeout    string                    `json:"timeout"`
		Body       pointers                  `json:"body"`
		Outcomes   map[string]ledger.Outcome `json:"outcomes"`
	}
)

// fileMax bounds the file and each secret file, in bytes.
const fileMax = 1 << 20

// Load reads a providers file and the secret files that it names, which are looked for in its folder.
// Errors: INVALID, in one line that names the provider and the member.
func Load(path string) (*Set, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, wrong("%v", err)
	}
	var f file
	if err := strictjson.Decode(text, &f); err != nil {
		return nil, wrong("%s: %v", path, err)
	}
	if len(f.Providers) == 0 {
		return nil, wrong("%s: providers: there is none", path)
	}
	s := new(Set)
	for i, raw := range f.Providers {
		p, err := readEntry(raw, filepath.Dir(path))
		if err != nil {
			return nil, wrong("provider %s: %v", nameOf(raw, i), err)
		}
		if s.Find(p.Name) != nil {
			return nil, wrong("provider %q: name: there are two of this name", p.Name)
		}
		s.list = append(s.list, p)
	}
	return s, nil
}

func wrong(format string, args ...any) error {
	return ledger.InvalidField("providers", format, args...)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(text) > fileMax {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, fileMax)
	}
	return text, nil
}

// nameOf is how messages name an entry: by its name or, without one, by its place from 1.
func nameOf(raw []byte, i int) string {
	var e struct{ Name string }
	if json.Unmarshal(raw, &e) == nil && e.Name != "" {
		return fmt.Sprintf("%.80q", e.Name)
	}
	return fmt.Sprint(i + 1)
}

// nameForm is what may stand in the path of a callback's address as it is.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// readEntry reads one provider. folder is where its secret files are.
func readEntry(raw []byte, folder string) (*Provider, error) {
	var given, e entry
	if err := strictjson.Decode(raw, &given); err != nil {
		return nil, err
	}
	if err := given.checkPreset(); err != nil {
		return nil, err
	}
	e = presets()[given.Preset]
	if given.Poll == nil {
		e.Poll = nil // what a preset knows of polls serves who wants to poll
	}
	if err := strictjson.Decode(raw, &e); err != nil {
		return nil, err
	}
	p := &Provider{Name: e.Name, Authority: e.Authority}
	if p.Authority == "" {
		p.Authority = Any
	}
	var err error
	if p.verifier, err = e.verifier(folder); err != nil {
		return nil, err
	}
	if p.verifier != nil {
		if p.callback, err = newReader("", e.Body, e.Outcomes); err != nil {
			return nil, err
		}
	}
	if p.Poll, err = e.poll(folder); err != nil {
		return nil, err
	}
	return p, p.checkAuthority()
}

func (e *entry) checkPreset() error {
	known := presets()
	_, found := known[e.Preset]
	switch {
	case !nameForm.MatchString(e.Name):
		return errors.New("name: it takes 1 to 64 letters, digits, '.', '_' and '-', the first a letter or digit")
	case e.Preset != "" && !found:
		return fmt.Errorf("preset: %.40q is not one of %s", e.Preset,
			strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	case e.Preset != "" && e.Scheme != "":
		return errors.New("scheme: the preset has one; it takes a preset or a scheme")
	case e.Preset == "" && e.Scheme == "" && e.hasSecret():
		return errors.New("scheme: there is neither a preset nor a scheme")
	}
	return nil
}

func (e *entry) hasSecret() bool { return e.SecretFile != "" || len(e.SecretFiles) > 0 }

// checkAuthority refuses a provider that nobody would hear of.
func (p *Provider) checkAuthority() error {
	switch {
	case p.Authority != Any && p.Authority != CallbackOnly && p.Authority != PollOnly:
		return fmt.Errorf("authority: %.40q is not one of %s, %s, %s", p.Authority, Any, CallbackOnly, PollOnly)
	case p.Authority == PollOnly && p.Poll == nil:
		return errors.New("authority: it is poll, and there is no poll section")
	case p.Authority == CallbackOnly && p.Poll != nil:
		return errors.New("authority: it is callback, and there is a poll section, whose answers would not count")
	case p.verifier == nil && p.Authority == CallbackOnly:
		return errors.New("secret_file: there is none to check a callback with")
	case p.verifier == nil && p.Poll == nil:
		return errors.New("secret_file: there is none, and no poll section: nothing could report a job")
	}
	return nil
}

// noID in place of the pointer to the id says that the answers to polls name none.
const noID = "-"

// newReader checks the pointers and the words. section is where they stand in the entry; empty: at its top,
// where they are of callbacks.
func newReader(section string, at pointers, outcomes map[string]ledger.Outcome) (r reader, err error) {
	if r.asked = section != ""; r.asked && at.ID == noID {
		at.ID = ""
	}
	for _, m := range []struct {
		name, text string
		into       **strictjson.Pointer
	}{
		{"id", at.ID, &r.id}, {"status", at.Status, &r.status}, {"cost", at.Cost, &r.cost},
		{"job", at.Job, &r.job}, {"attempt", at.Attempt, &r.attempt},
	} {
		if m.text == "" {
			continue
		}
		p, err := strictjson.ParsePointer(m.text)
		if err != nil {
			return r, fmt.Errorf("%sbody.%s: %w", section, m.name, err)
		}
		*m.into = &p
	}
	switch {
	case r.status == nil:
		return r, fmt.Errorf("%sbody.status: there is no pointer to the status", section)
	case r.id == nil && r.job == nil && !r.asked:
		return r, fmt.Errorf("%sbody.id: there is no pointer to the provider's id, nor to ours (body.job)", section)
	case len(outcomes) == 0:
		return r, fmt.Errorf("%soutcomes: no word of the provider is an end", section)
	}
	for _, word := range slices.Sorted(maps.Keys(outcomes)) {
		if !slices.Contains(ledger.Outcomes, outcomes[word]) {
			return r, fmt.Errorf("%soutcomes: %.40q means %.40q, which is not one of %v", section, word,
				outcomes[word], ledger.Outcomes)
		}
	}
	r.outcomes = outcomes
	return r, nil
}
