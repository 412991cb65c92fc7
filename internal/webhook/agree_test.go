package webhook_test

import (
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"jobledger/internal/webhook"
)

// message is a random message of Standard Webhooks.
type message struct {
	secret, id string
	at         time.Time
	body       []byte
}

// random makes a message of random bytes, sent within the tolerance of now.
func random(r *rand.Rand, now time.Time) message {
	secret := make([]byte, 24+r.IntN(41))
	for i := range secret {
		secret[i] = byte(r.Uint32())
	}
	id := make([]byte, 1+r.IntN(40))
	for i := range id {
		id[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:~"[r.IntN(66)]
	}
	body := make([]byte, r.IntN(200))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	return message{
		secret: "whsec_" + base64.StdEncoding.EncodeToString(secret), id: string(id),
		at: now.Add(time.Duration(r.IntN(220)-200) * time.Second), body: body,
	}
}

// tamper changes one thing about a signed message.
func tamper(r *rand.Rand, h http.Header, body []byte) []byte {
	flip := func(name string) {
		value := []byte(h.Get(name))
		i := r.IntN(len(value))
		value[i] = "abcdefgh01234567"[(r.IntN(15)+strings.IndexByte("abcdefgh01234567", value[i])+1)%16]
		h.Set(name, string(value))
	}
	switch r.IntN(5) {
	case 0:
		flip("webhook-id")
	case 1:
		seconds, _ := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
		h.Set("webhook-timestamp", strconv.FormatInt(seconds+1-2*r.Int64N(2), 10))
	case 2:
		h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(body))
	case 3:
		h.Del([]string{"webhook-id", "webhook-timestamp", "webhook-signature"}[r.IntN(3)])
	default:
		return append([]byte{'x'}, body...)
	}
	return body
}

// The standard's own library and this one sign alike, and take and refuse the same messages.
func TestAgreesWithTheStandardsLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 10_000 {
		now := time.Now()
		m := random(r, now)
		theirs, err := standardwebhooks.NewWebhook(m.secret)
		if err != nil {
			t.Fatal(err)
		}
		list := keys(t, webhook.Standard, m.secret)
		ours, err := webhook.NewVerifier(webhook.StandardWebhooks(), list)
		if err != nil {
			t.Fatal(err)
		}
		h, err := webhook.Sign(list, m.id, m.at, m.body)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := theirs.Sign(m.id, m.at, m.body)
		if err != nil || signature != h.Get("webhook-signature") {
			t.Fatalf("%+v: we sign %v, they %q, %v", m, h, signature, err)
		}
		if we, they := ours.Verify(h, m.body, now), theirs.Verify(m.body, h); we != nil || they != nil {
			t.Fatalf("%+v: we say %v, they %v", m, we, they)
		}
		body := tamper(r, h, m.body)
		we, they := ours.Verify(h, body, now), theirs.Verify(body, h)
		if (we == nil) != (they == nil) {
			t.Fatalf("%+v, tampered with to %v %q: we say %v, they %v", m, h, body, we, they)
		}
		if we != nil {
			refused++
		}
	}
	if refused < 9_900 { // a flip can write what was there
		t.Errorf("only %d of 10,000 that were tampered with are refused", refused)
	}
}

// FuzzVerify: no header makes the verifier panic, and only the signature of this message passes.
func FuzzVerify(f *testing.F) {
	for _, text := range []string{exampleV1, exampleV1a, exampleV1 + " " + exampleV1a, "v1,", "v1=é",
		"sha256=00", strings.Repeat("v1, ", 40), "v1,AA", "1614265330"} {
		f.Add(text, "1614265330", exampleID, uint8(0))
		f.Add(exampleV1, text, text, uint8(1))
	}
	public := "whpk_" + base64.StdEncoding.EncodeToString(examplePublic(f))
	plain := plainScheme(webhook.Hex)
	ed := plainScheme(webhook.Base64)
	ed.Kind = webhook.Ed25519
	verifiers := []*webhook.Verifier{
		verifier(f, webhook.StandardWebhooks(), exampleSecret+" "+public),
		verifier(f, plain, strings.Repeat("s", 32)),
		verifier(f, ed, public),
	}
	f.Fuzz(func(t *testing.T, signature, timestamp, id string, which uint8) {
		v := verifiers[int(which)%len(verifiers)]
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature},
			"X-Signature": {signature}, "X-Time": {timestamp}}
		err := v.Verify(h, []byte(exampleBody), exampleTime)
		if err != nil {
			if r, ok := err.(*webhook.Refusal); !ok || r.Cause == "" || len(err.Error()) > 300 {
				t.Errorf("got %v", err)
			}
			return
		}
		if id != exampleID || timestamp != "1614265330" ||
			!strings.Contains(signature, exampleV1) && !strings.Contains(signature, exampleV1a) {
			t.Errorf("%q is taken for %q at %q", signature, id, timestamp)
		}
	})
}
