package webhook

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind is the kind of signatures that a sender makes.
type Kind string

// The kinds.
const (
	Standard Kind = "standard" // a list of Standard Webhooks signatures: v1 HMAC-SHA256, v1a Ed25519
	HMAC     Kind = "hmac-sha256"
	Ed25519  Kind = "ed25519"
)

// Encoding is how the bytes of a signature are written. Standard Webhooks fix it to Base64.
type Encoding string

// The encodings. Hex may have the prefix sha256= and letters of either case.
const (
	Hex    Encoding = "hex"
	Base64 Encoding = "base64"
)

// NoTimestamp is the Timestamp of a sender that signs no time. What it sent can be sent again by anyone
// who saw it, for ever; whoever uses it must be content to hear the same thing twice.
const NoTimestamp = "none"

// Scheme is how a sender signs: with which headers, and which bytes.
type Scheme struct {
	Kind      Kind
	Encoding  Encoding
	Signature string // the name of the header with the signature
	Timestamp string // that of the header with the seconds since 1970, or NoTimestamp
	// Content is what is signed: text with {body}, {body_sha256} (in lower-case hexadecimal) and
	// {header:NAME} in it. It must have the body, and the timestamp's header if there is one.
	Content string
	Past    time.Duration // how long ago a message may have been sent: 1s to 24h
	Future  time.Duration // how far the sender's clock may be ahead of ours: 1s to 24h
}

// The tolerances that schemes have unless something else is known of the sender.
const (
	PastDefault   = 5 * time.Minute
	FutureDefault = time.Minute
)

// StandardWebhooks gives the scheme of Standard Webhooks 1.0.0.
func StandardWebhooks() Scheme {
	return Scheme{
		Kind:      Standard,
		Encoding:  Base64,
		Signature: HeaderSignature,
		Timestamp: HeaderTimestamp,
		Content:   "{header:" + HeaderID + "}.{header:" + HeaderTimestamp + "}.{body}",
		Past:      PastDefault,
		Future:    FutureDefault,
	}
}

// The bounds on what is looked at before a signature is known to be good.
const (
	headerMax     = 8 << 10 // bytes of one header
	signaturesMax = 16      // in a list
	keysMax       = 8
	toleranceMax  = 24 * time.Hour
)

// check gives the parts of the content, or what is wrong with the scheme.
func (s *Scheme) check() ([]part, error) {
	content, err := parseContent(s.Content)
	if err != nil {
		return nil, err
	}
	var hasBody, hasTime bool
	for _, p := range content {
		hasBody = hasBody || p.kind == wholeBody || p.kind == bodySum
		hasTime = hasTime || p.kind == headerValue && strings.EqualFold(p.text, s.Timestamp)
	}
	switch {
	case s.Kind != Standard && s.Kind != HMAC && s.Kind != Ed25519:
		return nil, fmt.Errorf("the kind %q is not one of %s, %s, %s", s.Kind, Standard, HMAC, Ed25519)
	case s.Encoding != Hex && s.Encoding != Base64:
		return nil, fmt.Errorf("the encoding %q is not one of %s, %s", s.Encoding, Hex, Base64)
	case !HeaderName(s.Signature):
		return nil, fmt.Errorf("the signature's header %q is not the name of a header", s.Signature)
	case !hasBody:
		return nil, fmt.Errorf("the content %q has neither {body} nor {body_sha256}", s.Content)
	case s.Timestamp == "":
		return nil, fmt.Errorf("the timestamp is empty; it takes the name of a header, or %q", NoTimestamp)
	case s.Timestamp != NoTimestamp && !hasTime:
		return nil, fmt.Errorf("the content %q has no {header:%s}: a time that is not signed proves nothing",
			s.Content, s.Timestamp)
	case s.Past < time.Second || s.Past > toleranceMax:
		return nil, fmt.Errorf("the tolerance for the past is %s; it takes 1s to 24h", s.Past)
	case s.Future < time.Second || s.Future > toleranceMax:
		return nil, fmt.Errorf("the tolerance for the future is %s; it takes 1s to 24h", s.Future)
	}
	return content, nil
}

// partKind is what one part of the content is.
type partKind int

const (
	literal partKind = iota
	wholeBody
	bodySum
	headerValue
)

// part is one part of the content. text is a literal, or the name of a header.
type part struct {
	kind partKind
	text string
}

// endsIn tells whether the part would end a value before it somewhere within the value.
func (p part) endsIn(value string) bool { return p.kind == literal && strings.Contains(value, p.text) }

// parseContent divides a content into parts. Two that vary must have a text between them: it would not
// be known where one ends.
func parseContent(text string) (content []part, err error) {
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			content = append(content, part{literal, before})
		}
		if !found {
			return content, nil
		}
		name, after, found := strings.Cut(rest, "}")
		p := part{text: strings.TrimPrefix(name, "header:")}
		switch {
		case found && name == "body":
			p.kind = wholeBody
		case found && name == "body_sha256":
			p.kind = bodySum
		case found && p.text != name && HeaderName(p.text):
			p.kind = headerValue
		default:
			return nil, fmt.Errorf("the content has %q, which is none of {body}, {body_sha256}, {header:NAME}",
				"{"+name)
		}
		if n := len(content); n > 0 && content[n-1].kind != literal {
			return nil, fmt.Errorf("the content has nothing between {%s} and what is before it", name)
		}
		content, text = append(content, p), after
	}
	return content, nil
}

// HeaderName tells whether a text is a header's name as HTTP has it.
func HeaderName(text string) bool {
	return text != "" && len(text) <= 100 && !strings.ContainsFunc(text, func(r rune) bool {
		return r > 0x7e || r <= ' ' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) && http.CanonicalHeaderKey(text) != ""
}

// signature is one decoded signature of a message.
type signature struct {
	asymmetric bool
	bytes      []byte
}

// parse reads the signature's header.
func (s *Scheme) parse(text string) ([]signature, error) {
	if s.Kind == Standard {
		return parseList(text)
	}
	if s.Encoding == Hex {
		text = strings.TrimPrefix(text, "sha256=")
	}
	decoded, err := s.Encoding.decode(text)
	if err != nil {
		return nil, refuse(MalformedSignature, "%s is not %s", s.Signature, s.Encoding)
	}
	return []signature{{s.Kind == Ed25519, decoded}}, nil
}

// parseList reads the list of Standard Webhooks. What is not a v1 or v1a signature is passed over: a
// later version of the standard may put it there.
// One that cannot be read does not spoil those that can, but a list of nothing else is no signature.
func parseList(text string) (list []signature, err error) {
	items, broken := strings.Fields(text), ""
	if len(items) > signaturesMax {
		return nil, refuse(MalformedSignature, "%s has %d signatures; it takes %d",
			HeaderSignature, len(items), signaturesMax)
	}
	for _, item := range items {
		version, encoded, _ := strings.Cut(item, ",")
		if version != versionHMAC && version != versionEd25519 {
			continue
		}
		decoded, err := Base64.decode(encoded)
		if err != nil {
			broken = version
			continue
		}
		list = append(list, signature{version == versionEd25519, decoded})
	}
	if len(list) == 0 && broken != "" {
		return nil, refuse(MalformedSignature, "the %s signature in %s is not base64", broken, HeaderSignature)
	}
	return list, nil
}

func (e Encoding) decode(text string) ([]byte, error) {
	if e == Hex {
		return hex.DecodeString(text)
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}
