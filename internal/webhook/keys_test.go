package webhook_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/internal/webhook"
)

// A secret that can be guessed, or that is of another kind, is refused without being shown.
func TestKeysRefused(t *testing.T) {
	short := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 23)))
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 513)))
	for _, c := range []struct {
		kind       webhook.Kind
		text, want string
	}{
		{webhook.Standard, "", "there is no key"},
		{webhook.Standard, " \n", "there is no key"},
		{webhook.Standard, "whsec_" + short, "key 1: has 23 bytes; it takes 24 to 512"},
		{webhook.Standard, exampleSecret + " whsec_" + long, "key 2: has 513 bytes"},
		{webhook.Standard, "whsec_", "key 1: has 0 bytes"},
		{webhook.Standard, "whsec_!?", "key 1: is not whsec_ and base64"},
		{webhook.Standard, "whpk_" + short, "key 1: is not a public key of 32 bytes"},
		{webhook.HMAC, strings.Repeat("p", 23), "key 1: has 23 bytes"},
		{webhook.HMAC, "two words", "key 1: has 3 bytes"},
		{webhook.HMAC, "whsec_" + short, "key 1: has 23 bytes"},
		{webhook.Ed25519, strings.Repeat("00", 31), "key 1: is not a public key of 32 bytes"},
		{webhook.Ed25519, exampleSecret, "key 1: is not a public key"},
		{webhook.Ed25519, "{", "not a key set in JSON"},
		{webhook.Ed25519, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA"}]}`, "the key set has no Ed25519 key"},
		{webhook.Ed25519, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}`, "key 1: is not a public key"},
	} {
		list, err := webhook.ParseKeys(c.kind, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(list) > 0 {
			t.Errorf("%s %q: got %v, %v, want %q", c.kind, c.text, list, err, c.want)
		}
		for word := range strings.FieldsSeq(c.text) {
			if len(word) > 2 && err != nil && strings.Contains(err.Error(), word) && c.kind != webhook.HMAC {
				t.Errorf("the error shows the key: %v", err)
			}
		}
	}
}

// A key shows its kind, in whatever form it is printed.
func TestKeysAreNotShown(t *testing.T) {
	list := keys(t, webhook.Standard, exampleSecret)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, list[0]); got != "a shared secret" {
			t.Errorf("%s shows %s", verb, got)
		}
	}
}

func TestNewSecret(t *testing.T) {
	a, b := webhook.NewSecret(), webhook.NewSecret()
	if a == b || len(a) != len("whsec_")+44 {
		t.Errorf("got %s and %s", a, b)
	}
	keys(t, webhook.Standard, a+" "+b)
}

// A scheme or a set of keys that does not fit it is refused before any message comes.
func TestVerifierRefused(t *testing.T) {
	good := plainScheme(webhook.Hex)
	change := func(f func(*webhook.Scheme)) webhook.Scheme {
		s := good
		f(&s)
		return s
	}
	shared := keys(t, webhook.Standard, exampleSecret)
	public := keys(t, webhook.Ed25519, strings.Repeat("00", 32))
	var nine []webhook.Key
	for range 9 {
		nine = append(nine, shared...)
	}
	for _, c := range []struct {
		scheme webhook.Scheme
		keys   []webhook.Key
		want   string
	}{
		{good, nil, "there are 0 keys; it takes 1 to 8"},
		{good, nine, "there are 9 keys"},
		{good, public, "a key is a public key, which the scheme hmac-sha256 does not use"},
		{change(func(s *webhook.Scheme) { s.Kind = webhook.Ed25519 }), shared, "a key is a shared secret"},
		{change(func(s *webhook.Scheme) { s.Kind = "rsa" }), shared, `the kind "rsa" is not one of`},
		{change(func(s *webhook.Scheme) { s.Encoding = "" }), shared, `the encoding "" is not one of hex, base64`},
		{change(func(s *webhook.Scheme) { s.Signature = "a b" }), shared, `"a b" is not the name of a header`},
		{change(func(s *webhook.Scheme) { s.Signature = "" }), shared, `"" is not the name of a header`},
		{change(func(s *webhook.Scheme) { s.Past = time.Hour * 25 }), shared, "for the past is 25h0m0s"},
	} {
		if _, err := webhook.NewVerifier(c.scheme, c.keys); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.scheme, err, c.want)
		}
	}
	if _, err := webhook.Sign(public, "m", exampleTime, nil); err == nil {
		t.Error("signed with a public key")
	}
	if _, err := webhook.Sign(nil, "m", exampleTime, nil); err == nil {
		t.Error("signed with nothing")
	}
}
