// Package webhook signs messages and verifies the signatures of others': Standard Webhooks with shared
// secrets (v1) and key pairs (v1a), and the plain HMAC-SHA256 and Ed25519 headers that other senders use.
//
// A signature that does not cover the time of sending, or a header that another check rests on, is
// refused when the [Scheme] is made, not when a message arrives.
package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Cause says why a message is refused. It is for the log and for whoever sets a sender up; the sender of
// a refused message is told nothing.
type Cause string

// The causes.
const (
	MissingSignature   Cause = "missing_signature"   // no header with a signature
	MissingTimestamp   Cause = "missing_timestamp"   // no header with the time
	MissingHeader      Cause = "missing_header"      // no header with something else that is signed
	MalformedTimestamp Cause = "malformed_timestamp" // not seconds since 1970 in decimal digits
	MalformedSignature Cause = "malformed_signature" // not a signature in the scheme's form
	MalformedHeader    Cause = "malformed_header"    // repeated, or with a character that shifts what follows
	Stale              Cause = "stale"               // sent longer ago than the scheme takes
	Early              Cause = "early"               // sent further in the future than clocks differ
	UnknownKey         Cause = "unknown_key"         // signed with a kind of key that is not on file
	BadSignature       Cause = "bad_signature"       // another secret, another body or another time
)

// Refusal is the error of a message that is not what its sender signed, now.
type Refusal struct {
	Cause  Cause
	Detail string // one line; names headers, and never holds a secret or a signature
}

// Error gives the cause and the detail.
func (r *Refusal) Error() string { return string(r.Cause) + ": " + r.Detail }

func refuse(cause Cause, format string, args ...any) error {
	return &Refusal{cause, fmt.Sprintf(format, args...)}
}

// Verifier checks the messages of one sender.
type Verifier struct {
	scheme  Scheme
	content []part
	keys    []Key
}

// NewVerifier makes a verifier for a scheme and the keys on file, of which there are 1 to 8: during a
// rotation a message is good if any of them signed it. The error names what is wrong with the scheme.
func NewVerifier(scheme Scheme, keys []Key) (*Verifier, error) {
	content, err := scheme.check()
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 || len(keys) > keysMax {
		return nil, fmt.Errorf("there are %d keys; it takes 1 to %d", len(keys), keysMax)
	}
	for _, k := range keys {
		if k.public != nil && scheme.Kind == HMAC || k.public == nil && scheme.Kind == Ed25519 {
			return nil, fmt.Errorf("a key is %s, which the scheme %s does not use", k, scheme.Kind)
		}
	}
	return &Verifier{scheme, content, keys}, nil
}

// Verify refuses a message, with a [*Refusal], unless one of the keys signed exactly this body and the
// headers that the scheme names, and now is within the scheme's tolerance of the time of sending.
func (v *Verifier) Verify(header http.Header, body []byte, now time.Time) error {
	text, err := single(header, v.scheme.Signature, MissingSignature)
	if err != nil {
		return err
	}
	if err := v.checkTime(header, now); err != nil {
		return err
	}
	signed, err := v.signed(header, body)
	if err != nil {
		return err
	}
	signatures, err := v.scheme.parse(text)
	if err != nil {
		return err
	}
	return v.match(signatures, signed)
}

// checkTime reads the time of sending. That the signature covers it is the scheme's business.
func (v *Verifier) checkTime(header http.Header, now time.Time) error {
	if v.scheme.Timestamp == NoTimestamp {
		return nil
	}
	text, err := single(header, v.scheme.Timestamp, MissingTimestamp)
	if err != nil {
		return err
	}
	sent, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(sent, 10) != text || sent < 0 {
		return refuse(MalformedTimestamp, "%s is not a number of seconds since 1970", v.scheme.Timestamp)
	}
	age := now.Unix() - sent // neither is negative, so that it cannot overflow
	switch {
	case age > int64(v.scheme.Past/time.Second):
		return refuse(Stale, "%s is %d s ago; it takes %s", v.scheme.Timestamp, age, v.scheme.Past)
	case -age > int64(v.scheme.Future/time.Second):
		return refuse(Early, "%s is %d s in the future; it takes %s", v.scheme.Timestamp, -age, v.scheme.Future)
	}
	return nil
}

// signed puts together the bytes that the sender signed.
func (v *Verifier) signed(header http.Header, body []byte) ([]byte, error) {
	var signed []byte
	for i, p := range v.content {
		switch p.kind {
		case literal:
			signed = append(signed, p.text...)
		case wholeBody:
			signed = append(signed, body...)
		case bodySum:
			signed = fmt.Appendf(signed, "%x", sha256.Sum256(body))
		case headerValue:
			value, err := single(header, p.text, MissingHeader)
			if err != nil {
				return nil, err
			}
			if err := v.contained(i, value); err != nil {
				return nil, err
			}
			signed = append(signed, value...)
		}
	}
	return signed, nil
}

// contained refuses a value that holds what comes after it: the same bytes, and so the same signature,
// would then say something else when they are divided elsewhere.
func (v *Verifier) contained(i int, value string) error {
	if i+1 < len(v.content) && v.content[i+1].endsIn(value) {
		return refuse(MalformedHeader, "%s has %q in it, which ends it", v.content[i].text, v.content[i+1].text)
	}
	return nil
}

// match compares every signature with every key, in a time that does not tell which was close.
func (v *Verifier) match(signatures []signature, signed []byte) error {
	good, known := 0, false
	for i := range v.keys {
		k := &v.keys[i]
		var sum []byte
		if k.public == nil {
			sum = k.sum(signed)
		}
		for _, s := range signatures {
			switch {
			case s.asymmetric != (k.public != nil):
				continue
			case s.asymmetric && ed25519.Verify(k.public, signed, s.bytes):
				good = 1
			case !s.asymmetric:
				good |= subtle.ConstantTimeCompare(sum, s.bytes)
			}
			known = true
		}
	}
	switch {
	case good == 1:
		return nil
	case !known:
		return refuse(UnknownKey, "%s has no signature of a kind that there is a key for", v.scheme.Signature)
	}
	return refuse(BadSignature, "no key on file signed this; another secret, or the body was changed on the way")
}

func (k *Key) sum(signed []byte) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write(signed)
	return h.Sum(nil)
}

// single gives the one value of a header. Of several, who knows which one another reader took.
func single(header http.Header, name string, missing Cause) (string, error) {
	values := header.Values(name)
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", refuse(missing, "there is no header %s", name)
	case len(values) > 1:
		return "", refuse(MalformedHeader, "the header %s is there %d times", name, len(values))
	case len(values[0]) > headerMax:
		return "", refuse(MalformedHeader, "the header %s is longer than %d bytes", name, headerMax)
	}
	return values[0], nil
}
