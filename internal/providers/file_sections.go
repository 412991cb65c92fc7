package providers

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"jobledger/internal/httpcall"
	"jobledger/internal/webhook"
)

// The bounds of the schedule.
const (
	leastDefault   = 5 * time.Second
	mostDefault    = 5 * time.Minute
	timeoutDefault = 10 * time.Second
	leastMin       = 100 * time.Millisecond
	mostMax        = 24 * time.Hour
	timeoutMax     = time.Minute
)

// verifier makes the verifier of a provider's callbacks; nil if it has no secret.
func (e *entry) verifier(folder string) (*webhook.Verifier, error) {
	if !e.hasSecret() {
		return nil, nil
	}
	scheme, err := e.scheme()
	if err != nil {
		return nil, err
	}
	paths, member := e.SecretFiles, "secret_files"
	if e.SecretFile != "" {
		paths, member = append([]string{e.SecretFile}, paths...), "secret_file"
	}
	var keys []webhook.Key
	for _, path := range paths {
		text, err := readFile(inFolder(folder, path))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
		list, err := webhook.ParseKeys(scheme.Kind, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", member, path, err)
		}
		keys = append(keys, list...)
	}
	v, err := webhook.NewVerifier(scheme, keys)
	if err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	return v, nil
}

// scheme reads how the provider signs.
func (e *entry) scheme() (s webhook.Scheme, err error) {
	g := e.Signature
	if kind := webhook.Kind(e.Scheme); kind == webhook.Standard {
		if g.Header+g.Encoding+g.Timestamp+g.Content != "" {
			return s, errors.New("signature: the scheme standard fixes all but past and future")
		}
		s = webhook.StandardWebhooks()
	} else {
		s = webhook.Scheme{
			Kind: kind, Encoding: webhook.Encoding(g.Encoding), Signature: g.Header, Timestamp: g.Timestamp,
			Content: g.Content,
		}
	}
	if s.Past, err = span("signature.past", g.Past, webhook.PastDefault); err == nil {
		s.Future, err = span("signature.future", g.Future, webhook.FutureDefault)
	}
	return s, err
}

// poll reads how the provider is polled; nil if it is not.
func (e *entry) poll(folder string) (*Poll, error) {
	g := e.Poll
	if g == nil {
		return nil, nil
	}
	p := &Poll{address: g.URL}
	var err error
	p.Timeout, err = spanWithin("poll.timeout", g.Timeout, timeoutDefault, time.Second, timeoutMax)
	if err != nil {
		return nil, err
	}
	if p.least, err = spanWithin("poll.least", g.Least, leastDefault, leastMin, mostMax); err != nil {
		return nil, err
	}
	most := max(mostDefault, p.least)
	if p.most, err = spanWithin("poll.most", g.Most, most, p.least, mostMax); err != nil {
		return nil, err
	}
	if err := p.checkAddress(); err != nil {
		return nil, err
	}
	if err := p.readHeader(g, folder); err != nil {
		return nil, err
	}
	at := pointers{
		ID: cmp.Or(g.Body.ID, e.Body.ID), Status: cmp.Or(g.Body.Status, e.Body.Status),
		Cost: cmp.Or(g.Body.Cost, e.Body.Cost), Job: cmp.Or(g.Body.Job, e.Body.Job),
		Attempt: cmp.Or(g.Body.Attempt, e.Body.Attempt),
	}
	outcomes := g.Outcomes
	if len(outcomes) == 0 {
		outcomes = e.Outcomes
	}
	p.answer, err = newReader("poll.", at, outcomes)
	return p, err
}

// checkAddress refuses a template that is no address, or in which the id could be another host.
func (p *Poll) checkAddress() error {
	scheme, rest, _ := strings.Cut(p.address, "://")
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case !strings.Contains(p.address, idPlace):
		return fmt.Errorf("poll.url: there is no %s in it", idPlace)
	case strings.Contains(scheme+host, idPlace):
		return fmt.Errorf("poll.url: %s is in the name of the host", idPlace)
	case strings.ContainsAny(strings.ReplaceAll(p.address, idPlace, ""), "{}"):
		return fmt.Errorf("poll.url: it takes no place but %s", idPlace)
	}
	if err := p.Check(httpcall.Options{AllowPrivate: true, AllowHTTP: true}); err != nil {
		return fmt.Errorf("poll.url: %w", err)
	}
	return nil
}

const secretPlace = "{secret}"

// readHeader reads the header that is sent with each poll, and the secret in it.
func (p *Poll) readHeader(g *pollEntry, folder string) error {
	if g.Header == "" {
		if g.SecretFile != "" {
			return fmt.Errorf("poll.header: there is none that the secret goes into")
		}
		return nil
	}
	name, value, found := strings.Cut(g.Header, ":")
	value = strings.TrimSpace(value)
	if !found || !webhook.HeaderName(name) || value == "" {
		return fmt.Errorf("poll.header: %.40q is not a header (Authorization: Bearer %s)", g.Header, secretPlace)
	}
	if strings.Contains(value, secretPlace) != (g.SecretFile != "") {
		return fmt.Errorf("poll.header: a secret_file and a %s in the header go together", secretPlace)
	}
	if g.SecretFile != "" {
		text, err := readFile(inFolder(folder, g.SecretFile))
		if err != nil {
			return fmt.Errorf("poll.secret_file: %w", err)
		}
		value = strings.ReplaceAll(value, secretPlace, strings.TrimSpace(string(text)))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("poll.header: it has a character that no header can have")
	}
	p.header, p.value = name, value
	return nil
}

func inFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// span reads a duration, or gives what it is without one.
func span(member, text string, without time.Duration) (time.Duration, error) {
	if text == "" {
		return without, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %.40q is not a duration such as 500ms, 30s or 5m", member, text)
	}
	return d, nil
}

func spanWithin(member, text string, without, least, most time.Duration) (time.Duration, error) {
	d, err := span(member, text, without)
	if err == nil && (d < least || d > most) {
		err = fmt.Errorf("%s: %s is out of range; it takes %s to %s", member, d, least, most)
	}
	return d, err
}
