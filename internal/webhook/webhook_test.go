package webhook_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"jobledger/internal/webhook"
)

// The example message of the standard's own libraries, and its signature.
const (
	exampleSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	exampleBody   = `{"test": 2432232314}`
	exampleV1     = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	exampleSeed   = "VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
	exampleV1a    = "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHe" +
		"YGb7KaaBRdM5WqyeFiL8Ag=="
)

var exampleTime = time.Unix(1614265330, 0)

// keys parses keys that a test knows to be good.
func keys(t testing.TB, kind webhook.Kind, text string) []webhook.Key {
	t.Helper()
	list, err := webhook.ParseKeys(kind, text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func verifier(t testing.TB, scheme webhook.Scheme, text string) *webhook.Verifier {
	t.Helper()
	v, err := webhook.NewVerifier(scheme, keys(t, scheme.Kind, text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// headers makes a header of names and values that take turns.
func headers(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func example(signatures string) http.Header {
	return headers("webhook-id", exampleID, "webhook-timestamp", "1614265330", "webhook-signature", signatures)
}

// says checks why a message was refused; an empty cause: it was taken.
func says(t *testing.T, what string, err error, want webhook.Cause) {
	t.Helper()
	var cause webhook.Cause
	if r, ok := errors.AsType[*webhook.Refusal](err); ok {
		cause = r.Cause
	}
	if cause != want || (err == nil) != (want == "") {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
	if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 300) {
		t.Errorf("%s: a message of %d bytes: %q", what, len(err.Error()), err)
	}
}

// examplePublic is the public key of the example's seed.
func examplePublic(t testing.TB) ed25519.PublicKey {
	t.Helper()
	seed, err := base64.StdEncoding.DecodeString(exampleSeed)
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
}

func TestVectors(t *testing.T) {
	h, err := webhook.Sign(keys(t, webhook.Standard, exampleSecret), exampleID, exampleTime, []byte(exampleBody))
	if err != nil || h.Get("webhook-signature") != exampleV1 || h.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("signed %v, %v", h, err)
	}
	public := "whpk_" + base64.StdEncoding.EncodeToString(examplePublic(t))
	const other = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
	for _, c := range []struct {
		keys, signatures string
		want             webhook.Cause
	}{
		{exampleSecret, exampleV1, ""},
		{strings.TrimPrefix(exampleSecret, "whsec_"), exampleV1, ""},
		{exampleSecret, other + " v2,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= " + exampleV1 + " " + other, ""},
		{exampleSecret, "v1,é " + exampleV1, ""},
		{exampleSecret, other, webhook.BadSignature},
		{exampleSecret, "v1,", webhook.BadSignature},
		{exampleSecret, exampleV1a, webhook.UnknownKey},
		{exampleSecret, "v1b,AA== x", webhook.UnknownKey},
		{public, exampleV1a, ""},
		{public, exampleV1 + " " + exampleV1a, ""},
		{public, exampleV1, webhook.UnknownKey},
		{public, "v1a," + exampleV1[3:], webhook.BadSignature},
		{public + " " + exampleSecret, exampleV1, ""},
	} {
		v := verifier(t, webhook.StandardWebhooks(), c.keys)
		says(t, c.signatures, v.Verify(example(c.signatures), []byte(exampleBody), exampleTime), c.want)
	}
}

// B94: a message without the time of sending is refused, and so is one without the rest.
func TestB94MissingHeaders(t *testing.T) {
	v := verifier(t, webhook.StandardWebhooks(), exampleSecret)
	for name, want := range map[string]webhook.Cause{
		"webhook-timestamp": webhook.MissingTimestamp,
		"webhook-signature": webhook.MissingSignature,
		"webhook-id":        webhook.MissingHeader,
	} {
		for _, empty := range []bool{false, true} {
			h := example(exampleV1)
			h.Del(name)
			if empty {
				h.Set(name, "")
			}
			says(t, name, v.Verify(h, []byte(exampleBody), exampleTime), want)
		}
		h := example(exampleV1)
		h.Add(name, h.Get(name))
		says(t, name+" twice", v.Verify(h, []byte(exampleBody), exampleTime), webhook.MalformedHeader)
	}
}

// B95: the signature covers the id, the time and the body; a scheme in which it does not is no scheme.
func TestB95Covered(t *testing.T) {
	v := verifier(t, webhook.StandardWebhooks(), exampleSecret)
	for name, value := range map[string]string{"webhook-timestamp": "1614265331", "webhook-id": "msg_other"} {
		h := example(exampleV1)
		h.Set(name, value)
		says(t, name, v.Verify(h, []byte(exampleBody), exampleTime), webhook.BadSignature)
	}
	says(t, "body", v.Verify(example(exampleV1), []byte(exampleBody+" "), exampleTime), webhook.BadSignature)
	says(t, "no body", v.Verify(example(exampleV1), nil, exampleTime), webhook.BadSignature)
	for content, want := range map[string]string{
		"{header:webhook-id}.{body}":        "has no {header:webhook-timestamp}",
		"{header:webhook-timestamp}":        "has neither {body} nor {body_sha256}",
		"":                                  "has neither {body} nor {body_sha256}",
		"{header:webhook-timestamp}{body}":  "nothing between {body} and what is before it",
		"{header:webhook-timestamp}.{Body}": `"{Body"`,
		"{header:webhook-timestamp}.{header:a b}{body}": `"{header:a b"`,
		"{header:webhook-timestamp}.{body":              `"{body"`,
		"{header:}{body}":                               `"{header:"`,
	} {
		s := webhook.StandardWebhooks()
		s.Content = content
		refusedScheme(t, s, exampleSecret, want)
	}
}

func refusedScheme(t *testing.T, s webhook.Scheme, secret, want string) {
	t.Helper()
	_, err := webhook.NewVerifier(s, keys(t, webhook.Standard, secret))
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
		t.Errorf("%+v: got %v, want %q", s, err, want)
	}
}

// A part that ends early would let the same signed bytes be read as another message.
func TestShiftedBody(t *testing.T) {
	v := verifier(t, webhook.StandardWebhooks(), exampleSecret)
	shift := func(id, body string) (http.Header, []byte) {
		h := example("v1," + base64.StdEncoding.EncodeToString(sum(t, exampleSecret, id+".1614265330."+body)))
		h.Set("webhook-id", id)
		return h, []byte(body)
	}
	h, body := shift("msg.1", exampleBody)
	says(t, "id with a dot", v.Verify(h, body, exampleTime), webhook.MalformedHeader)
	h, body = shift("msg", exampleBody)
	says(t, "id without", v.Verify(h, body, exampleTime), "")
	for _, id := range []string{"", "a.b", "a b", "é", "a\n", strings.Repeat("a", 256)} {
		if h, err := webhook.Sign(keys(t, webhook.Standard, exampleSecret), id, exampleTime, nil); err == nil {
			t.Errorf("%q is signed: %v", id, h)
		}
	}
}

// sum is the HMAC of a text, computed here.
func sum(t testing.TB, secret, text string) []byte {
	t.Helper()
	key := []byte(secret)
	if encoded, found := strings.CutPrefix(secret, "whsec_"); found {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			t.Fatal(err)
		}
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// B96: how old and how early a message may be are two bounds, both inclusive, and neither can be off.
func TestB96Tolerance(t *testing.T) {
	const now = 1_700_000_000
	for text, want := range map[string]webhook.Cause{
		"1699999699": webhook.Stale, "1699999700": "", "1700000000": "", "1700000060": "",
		"1700000061": webhook.Early, "0": webhook.Stale, "9223372036854775807": webhook.Early,
		"-1": webhook.MalformedTimestamp, "9223372036854775808": webhook.MalformedTimestamp,
		"NaN": webhook.MalformedTimestamp, "1e9": webhook.MalformedTimestamp,
		"1700000000.0": webhook.MalformedTimestamp, "+1700000000": webhook.MalformedTimestamp,
		"01700000000": webhook.MalformedTimestamp, " 1700000000": webhook.MalformedTimestamp,
		"0x6553f100": webhook.MalformedTimestamp, "１７": webhook.MalformedTimestamp,
	} {
		v := verifier(t, webhook.StandardWebhooks(), exampleSecret)
		signed := sum(t, exampleSecret, exampleID+"."+text+"."+exampleBody)
		h := example("v1," + base64.StdEncoding.EncodeToString(signed))
		h.Set("webhook-timestamp", text)
		at := time.Unix(now, 999_999_999)
		says(t, text, v.Verify(h, []byte(exampleBody), at), want)
	}
	for _, d := range []time.Duration{0, -1, -time.Minute, time.Second - 1, 24*time.Hour + 1} {
		s := webhook.StandardWebhooks()
		s.Past = d
		refusedScheme(t, s, exampleSecret, "for the past is "+d.String()+"; it takes 1s to 24h")
		s = webhook.StandardWebhooks()
		s.Future = d
		refusedScheme(t, s, exampleSecret, "for the future is "+d.String()+"; it takes 1s to 24h")
	}
}

// B98: no header is too strange to be refused with a cause.
func TestB98MalformedSignatures(t *testing.T) {
	plain := plainScheme(webhook.Hex)
	for text, want := range map[string]webhook.Cause{
		"v1=é":                              webhook.MalformedSignature,
		"sha256=":                           webhook.BadSignature,
		"sha256=zz":                         webhook.MalformedSignature,
		"sha256=abc":                        webhook.MalformedSignature,
		"sha256=" + strings.Repeat("0", 62): webhook.BadSignature,
		strings.Repeat("0", 10_000):         webhook.MalformedHeader,
		strings.Repeat("v1= ", 1000):        webhook.MalformedSignature,
		"\x00\xff":                          webhook.MalformedSignature,
		"":                                  webhook.MissingSignature,
	} {
		v := verifier(t, plain, strings.Repeat("s", 32))
		says(t, text, v.Verify(headers("X-Signature", text, "X-Time", "1614265330"), nil, exampleTime), want)
	}
	for text, want := range map[string]webhook.Cause{
		"v1=é":                              webhook.UnknownKey,
		"v1,é":                              webhook.MalformedSignature,
		"v1," + exampleV1[4:]:               webhook.MalformedSignature,
		exampleV1 + exampleV1:               webhook.MalformedSignature,
		strings.Repeat("v1, ", 16):          webhook.BadSignature,
		strings.Repeat("v1, ", 17):          webhook.MalformedSignature,
		strings.Repeat("v1,a ", 1000):       webhook.MalformedSignature,
		exampleV1[:len(exampleV1)-2] + "F=": webhook.MalformedSignature, // the same bytes, written otherwise
		strings.Repeat("a", 10_000):         webhook.MalformedHeader,
		" ":                                 webhook.UnknownKey,
		"v1":                                webhook.BadSignature,
	} {
		v := verifier(t, webhook.StandardWebhooks(), exampleSecret)
		says(t, text, v.Verify(example(text), []byte(exampleBody), exampleTime), want)
	}
}

// B99: each mistake of whoever sets a sender up has a cause of its own.
func TestB99Causes(t *testing.T) {
	v := verifier(t, webhook.StandardWebhooks(), webhook.NewSecret())
	says(t, "other secret", v.Verify(example(exampleV1), []byte(exampleBody), exampleTime), webhook.BadSignature)
	v = verifier(t, webhook.StandardWebhooks(), exampleSecret)
	says(t, "parsed and written again", v.Verify(example(exampleV1), []byte(`{"test":2432232314}`), exampleTime),
		webhook.BadSignature)
	says(t, "late", v.Verify(example(exampleV1), []byte(exampleBody), exampleTime.Add(time.Hour)), webhook.Stale)
	says(t, "clocks", v.Verify(example(exampleV1), []byte(exampleBody), exampleTime.Add(-time.Hour)),
		webhook.Early)
	says(t, "kind", v.Verify(example(exampleV1a), []byte(exampleBody), exampleTime), webhook.UnknownKey)
}

func plainScheme(e webhook.Encoding) webhook.Scheme {
	return webhook.Scheme{
		Kind: webhook.HMAC, Encoding: e, Signature: "X-Signature", Timestamp: "X-Time",
		Content: "v0:{header:X-Time}:{body}", Past: webhook.PastDefault, Future: webhook.FutureDefault,
	}
}

// The plain headers, with the time in what is signed, and the forms in which the sum is written.
func TestPlainHMAC(t *testing.T) {
	const secret = "a secret that no space is in"
	key := strings.ReplaceAll(secret, " ", "-")
	right := sum(t, key, `v0:1614265330:{}`)
	for text, want := range map[string]webhook.Cause{
		hex.EncodeToString(right):                             "",
		strings.ToUpper(hex.EncodeToString(right)):            "",
		"sha256=" + hex.EncodeToString(right):                 "",
		"SHA256=" + hex.EncodeToString(right):                 webhook.MalformedSignature,
		base64.StdEncoding.EncodeToString(right):              webhook.MalformedSignature,
		hex.EncodeToString(right[:31]):                        webhook.BadSignature,
		hex.EncodeToString(sum(t, key, `v0:1614265331:{}`)):   webhook.BadSignature,
		hex.EncodeToString(sum(t, secret, `v0:161426533:{}`)): webhook.BadSignature,
	} {
		h := headers("x-signature", text, "x-time", "1614265330")
		says(t, text, verifier(t, plainScheme(webhook.Hex), key).Verify(h, []byte("{}"), exampleTime), want)
	}
	h := headers("x-signature", base64.StdEncoding.EncodeToString(right), "x-time", "1614265330")
	v := verifier(t, plainScheme(webhook.Base64), key)
	says(t, "base64", v.Verify(h, []byte("{}"), exampleTime), "")
	h.Set("x-time", "1614265331")
	says(t, "other time", v.Verify(h, []byte("{}"), exampleTime), webhook.BadSignature)
	h.Del("x-time")
	says(t, "no time", v.Verify(h, []byte("{}"), exampleTime), webhook.MissingTimestamp)
}

// A sender that signs no time must be named as one; then the body is all that is bound.
func TestNoTimestamp(t *testing.T) {
	key := strings.Repeat("k", 24)
	s := plainScheme(webhook.Hex)
	s.Content, s.Timestamp = "{body}", webhook.NoTimestamp
	h := headers("X-Signature", hex.EncodeToString(sum(t, key, "{}")))
	v := verifier(t, s, key)
	says(t, "now", v.Verify(h, []byte("{}"), exampleTime), "")
	says(t, "years later", v.Verify(h, []byte("{}"), time.Now()), "")
	says(t, "another body", v.Verify(h, []byte("{ }"), exampleTime), webhook.BadSignature)
	s.Timestamp = ""
	if _, err := webhook.NewVerifier(s, keys(t, webhook.HMAC, key)); err == nil ||
		!strings.Contains(err.Error(), `the name of a header, or "none"`) {
		t.Errorf("got %v", err)
	}
}

// The shape of a sender that signs the sum of the body with a key pair, and other headers with it.
func TestEd25519Headers(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := webhook.Scheme{
		Kind: webhook.Ed25519, Encoding: webhook.Hex, Signature: "X-Signature", Timestamp: "X-Time",
		Content: "{header:X-Request}\n{header:X-User}\n{header:X-Time}\n{body_sha256}",
		Past:    webhook.PastDefault, Future: webhook.FutureDefault,
	}
	text := fmt.Sprintf("r\nu\n1614265330\n%x", sha256.Sum256([]byte("{}")))
	h := headers("X-Request", "r", "X-User", "u", "X-Time", "1614265330",
		"X-Signature", hex.EncodeToString(ed25519.Sign(private, []byte(text))))
	set := fmt.Sprintf(`{"keys":[{"kty":"RSA","n":"x"},{"kty":"OKP","crv":"Ed25519","x":"%s","kid":"1"}]}`,
		base64.RawURLEncoding.EncodeToString(public))
	for _, form := range []string{hex.EncodeToString(public), base64.StdEncoding.EncodeToString(public),
		"whpk_" + base64.StdEncoding.EncodeToString(public), base64.RawURLEncoding.EncodeToString(public), set} {
		says(t, form, verifier(t, s, form).Verify(h, []byte("{}"), exampleTime), "")
	}
	v := verifier(t, s, set)
	says(t, "body", v.Verify(h, []byte("[]"), exampleTime), webhook.BadSignature)
	for name, value := range map[string]string{"X-Request": "r2", "X-User": "v", "X-Time": "1614265331"} {
		changed := h.Clone()
		changed.Set(name, value)
		says(t, name, v.Verify(changed, []byte("{}"), exampleTime), webhook.BadSignature)
	}
	h.Set("X-Signature", hex.EncodeToString(make([]byte, 63)))
	says(t, "short", v.Verify(h, []byte("{}"), exampleTime), webhook.BadSignature)
}

// During a rotation either secret is good, as long as it is on file; and a message may be signed with both.
func TestRotation(t *testing.T) {
	old, next := webhook.NewSecret(), webhook.NewSecret()
	at := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		signed, onFile string
		want           webhook.Cause
	}{
		{old, old, ""}, {old, next + " " + old, ""}, {next, next + "\n" + old + "\n", ""},
		{old, next, webhook.BadSignature}, {next + " " + old, old, ""}, {next + " " + old, next, ""},
	} {
		h, err := webhook.Sign(keys(t, webhook.Standard, c.signed), "m", at, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		v := verifier(t, webhook.StandardWebhooks(), c.onFile)
		says(t, c.signed+" for "+c.onFile, v.Verify(h, []byte("{}"), at), c.want)
	}
}
