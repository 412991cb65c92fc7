package providers_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/internal/httpcall"
	"jobledger/internal/providers"
	"jobledger/internal/webhook"
	"jobledger/ledger"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// folder makes a folder with secrets in it.
func folder(t testing.TB) string {
	t.Helper()
	public := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	f := t.TempDir()
	for name, text := range map[string]string{
		"rep.secret":     secret + "\n",
		"plain.secret":   "a-plain-secret-of-some-length\n",
		"short.secret":   "short",
		"empty.secret":   "\n",
		"token":          "r8_token\n",
		"rep.token":      "r8_token\n",
		"own.key":        "own-key",
		"own-new.secret": "a-new-secret-of-some-length",
		"own-old.secret": "an-old-secret-of-some-length",
		"lines":          "two\nlines",
		"large":          strings.Repeat("a", 1<<20+1),
		"fal-keys.json": fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"%s"}]}`,
			base64.RawURLEncoding.EncodeToString(public)),
	} {
		if err := os.WriteFile(filepath.Join(f, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// load writes a providers file beside the secrets and loads it.
func load(t testing.TB, text string) (*providers.Set, error) {
	t.Helper()
	path := filepath.Join(folder(t), "providers.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return providers.Load(path)
}

// one loads a file of one provider.
func one(t testing.TB, entry string) *providers.Provider {
	t.Helper()
	s, err := load(t, `{"providers":[`+entry+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	return s.All()[0]
}

const (
	replicate = `{"name":"rep","preset":"replicate","secret_file":"rep.secret"}`
	plain     = `"name":"own","scheme":"hmac-sha256","secret_file":"plain.secret",` +
		`"body":{"id":"/id","status":"/state"},"outcomes":{"done":"completed"}`
	signature = `"signature":{"header":"X-S","encoding":"hex","timestamp":"none","content":"{body}"}`
)

func TestLoad(t *testing.T) {
	s, err := load(t, `{"providers":[`+replicate+`,
		{"name":"fal","preset":"fal","secret_file":"fal-keys.json","authority":"callback"},
		{`+plain+`,`+signature+`,"authority":"poll","poll":{"url":"https://own.example/{id}"}},
		{"name":"mute","poll":{"url":"https://own.example/?j={id}","body":{"status":"/s"},
			"outcomes":{"y":"completed"}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.All() {
		got = append(got, fmt.Sprint(p.Name, " ", p.Authority, " ", p.Poll != nil, " ", p.TakesCallbacks()))
	}
	want := "rep any false true, fal callback false true, own poll true true, mute any true false"
	if strings.Join(got, ", ") != want || s.Find("fal") != s.All()[1] || s.Find("Fal") != nil ||
		len(s.Polled()) != 2 || s.Polled()[0].Name != "own" {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Every mistake is one line that names the provider and the member.
func TestLoadRefuses(t *testing.T) {
	for _, c := range [][2]string{
		// More members of the provider rep, which is fine without them.
		{`"Authority":"any"`, `"/Authority": there is no such member`},
		{`"x":1`, `"/x": there is no such member`},
		{`"secret_files":1`, `"/secret_files": it takes an array, not number`},
		{`"poll":{"secret_file":"token","every":"5s"}`, `"/poll/every": there is no such member`},
		{`"scheme":"standard"`, `scheme: the preset has one`},
		{`"secret_files":["short.secret"]`, `secret_file: short.secret: key 1: is not whsec_`},
		{`"secret_files":["rep.secret","nope"]`, `secret_file: open `},
		{`"signature":{"header":"x"}`, `signature: the scheme standard fixes`},
		{`"signature":{"past":"5"}`, `signature.past: "5" is not a duration`},
		{`"signature":{"future":"0s"}`, `signature: the tolerance for the future is 0s`},
		{`"outcomes":{"succeeded":"done"}`, `outcomes: "succeeded" means "done", which is not one of [comp`},
		{`"body":{"cost":"metrics"}`, `body.cost: "metrics" is not a JSON pointer`},
		{`"authority":"both"`, `authority: "both" is not one of any, callback, poll`},
		{`"authority":"poll"`, `authority: it is poll, and there is no poll section`},
		{`"authority":"callback","poll":{"secret_file":"token"}`, `authority: it is callback, and there is`},
		{`"poll":{}`, `poll.header: a secret_file and a {secret}`},
		{`"poll":{"secret_file":"lines"}`, `poll.header: it has a character`},
		{`"poll":{"secret_file":"nope"}`, `poll.secret_file: open`},
		{`"poll":{"secret_file":"token","header":"X-Key"}`, `poll.header: "X-Key" is not a header`},
		{`"poll":{"secret_file":"token","header":"X: y"}`, `poll.header: a secret_file and a {secret}`},
		{`"poll":{"secret_file":"token","url":"https://x.example/"}`, `poll.url: there is no {id} in it`},
		{`"poll":{"secret_file":"token","url":"https://{id}.example/"}`, `poll.url: {id} is in the name of`},
		{`"poll":{"secret_file":"token","url":"https://x.example/{id}/{job}"}`, `poll.url: it takes no place`},
		{`"poll":{"secret_file":"token","url":"ftp://x.example/{id}"}`, `poll.url: is not an address`},
		{`"poll":{"secret_file":"token","url":"https://u:p@x.example/{id}"}`, `poll.url: has a user name`},
		{`"poll":{"secret_file":"token","least":"1ms"}`, `poll.least: 1ms is out of range; it takes 100ms`},
		{`"poll":{"secret_file":"token","least":"1m","most":"5s"}`, `poll.most: 5s is out of range; it takes 1m0s`},
		{`"poll":{"secret_file":"token","timeout":"2m"}`, `poll.timeout: 2m0s is out of range; it takes 1s`},
		{`"poll":{"secret_file":"token","outcomes":{"x":"y"}}`, `poll.outcomes: "x" means "y"`},
		{`"poll":{"secret_file":"token","body":{"status":"x"}}`, `poll.body.status: "x" is not a JSON`},
	} {
		loadFails(t, `{"name":"rep","preset":"replicate","secret_file":"rep.secret",`+c[0]+`}`,
			`providers: provider "rep": `+c[1])
	}
}

// What is wrong with a whole entry, or with the file.
func TestLoadRefusesEntries(t *testing.T) {
	for _, c := range [][2]string{
		{`{"name":"rep","name":"rep"}`, `/providers/0/name": the member is there twice`},
		{`{"preset":"replicate","secret_file":"rep.secret"}`, `provider 1: name: it takes 1 to 64`},
		{`{"name":"a/b","preset":"replicate"}`, `provider "a/b": name: it takes`},
		{`{"name":"` + strings.Repeat("n", 65) + `"}`, `name: it takes 1 to 64`},
		{`{"name":"rep","preset":"repl"}`, `"rep": preset: "repl" is not one of fal, replicate`},
		{`{"name":"rep","secret_file":"rep.secret"}`, `"rep": scheme: there is neither`},
		{`{"name":"rep","preset":"replicate"}`, `"rep": secret_file: there is none, and no poll section`},
		{`{"name":"r","preset":"fal","secret_file":1}`, `"r": "/secret_file": it takes a text, not number`},
		{`{"name":"r","preset":"fal","secret_file":"nope"}`, `"r": secret_file: open `},
		{`{"name":"r","preset":"fal","secret_file":"large"}`, `large is larger than 1048576 bytes`},
		{`{"name":"r","preset":"fal","secret_file":"token"}`, `"r": secret_file: token: key 1: is not a`},
		{`{"name":"r","preset":"fal","secret_files":["lines"]}`, `"r": secret_files: lines: key 1: is`},
		{`{"name":"r","preset":"replicate","secret_file":"empty.secret"}`, `empty.secret: there is no key`},
		{`{"name":"r","preset":"replicate","authority":"callback","secret_file":""}`, `there is none to check`},
		{`{"name":"o","poll":{"url":"https://x.example/{id}"}}`, `"o": poll.body.status: there is no`},
		{`{"name":"o","body":{"status":"/s"},"poll":{"url":"https://x.example/{id}"}}`, `poll.outcomes: no word`},
		{`{"name":"o","scheme":"standard","secret_file":"rep.secret","body":{"status":"/s"}}`, `body.id: there is`},
		{`{"name":"own","scheme":"rsa","secret_file":"plain.secret"}`, `signature: the kind "rsa" is not one`},
		{`{` + plain + `}`, `"own": signature: the encoding "" is not one of`},
		{`{` + plain + `,"signature":{"header":"X-S","encoding":"hex","timestamp":"X-T","content":"{body}"}}`,
			`"own": signature: the content "{body}" has no {header:X-T}`},
		{`{` + plain + `,"signature":{"header":"X-S","encoding":"hex","content":"{body}"}}`, `timestamp is empty`},
		{replicate + `,` + replicate, `provider "rep": name: there are two of this name`},
		{``, `providers: there is none`},
		{`5`, `provider 1: the document: it takes an object, not number`},
		{`{"name":"x"`, `not a JSON document`},
		{`{"name":"rep","preset":"replicate"},`, `not a JSON document`},
	} {
		loadFails(t, c[0], c[1])
	}
	if _, err := providers.Load(filepath.Join(t.TempDir(), "none")); ledger.CodeOf(err) != ledger.Invalid {
		t.Errorf("no file: %v", err)
	}
}

func loadFails(t *testing.T, entry, want string) {
	t.Helper()
	_, err := load(t, `{"providers":[`+entry+`]}`)
	if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), want) ||
		strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "r8_") {
		t.Errorf("%s:\n got %v\nwant %s", entry, err, want)
	}
}

// The examples of the manual are files that load.
func TestManual(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "providers.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```json\n")[1:]
	if len(blocks) < 3 {
		t.Errorf("found %d examples", len(blocks))
	}
	for _, block := range blocks {
		example, _, _ := strings.Cut(block, "```")
		if s, err := load(t, example); err != nil || s.Find("rep") == nil && s.Find("own") == nil {
			t.Errorf("%s\n%v", example, err)
		}
	}
}

// Both presets take what their providers send, as it is signed.
func TestPresets(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	p := one(t, replicate)
	body := []byte(`{"id":"ufaw","status":"succeeded","output":["https://x"],"metrics":{"predict_time":4.5}}`)
	keys, err := webhook.ParseKeys(webhook.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	h, err := webhook.Sign(keys, "msg_1", now, body)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(h, body, now); err != nil {
		t.Error(err)
	}
	if err := p.Verify(h, append(body, ' '), now); err == nil {
		t.Error("another body is taken")
	}
	reads(t, p, string(body), "ufaw  0 succeeded completed <nil>")
	for word, outcome := range map[string]ledger.Outcome{
		"starting": "", "processing": "", "failed": ledger.Failed, "canceled": ledger.Canceled,
		"aborted": ledger.TimedOut, "Succeeded": "", "something new": "",
	} {
		reads(t, p, fmt.Sprintf(`{"id":"u","status":%q}`, word), fmt.Sprintf("u  0 %s %s <nil>", word, outcome))
	}

	p = one(t, `{"name":"fal","preset":"fal","secret_file":"fal-keys.json"}`)
	falBody := `{"request_id":"123e","gateway_request_id":"123e","status":"OK",` +
		`"payload":{"seed":196619188014358660}}`
	const signed = "r\nu\n1700000000\n" + falSum
	private := ed25519.NewKeyFromSeed(make([]byte, 32))
	h = map[string][]string{
		"X-Fal-Webhook-Request-Id": {"r"}, "X-Fal-Webhook-User-Id": {"u"},
		"X-Fal-Webhook-Timestamp": {"1700000000"},
		"X-Fal-Webhook-Signature": {hex.EncodeToString(ed25519.Sign(private, []byte(signed)))},
	}
	if err := p.Verify(h, []byte(falBody), now); err != nil {
		t.Error(err)
	}
	if err := p.Verify(h, []byte(falBody), now.Add(301*time.Second)); err == nil {
		t.Error("an old one is taken")
	}
	reads(t, p, falBody, "123e  0 OK completed <nil>")
	reads(t, p, `{"request_id":"1","status":"ERROR","error":"status code 422"}`, "1  0 ERROR failed <nil>")
}

// falSum is the SHA-256 of the body above, as sha256sum gives it.
const falSum = "ccf26dc2131e7bd33aa2d3d01884d6a9d1796d8a9209f95f5a3729bd48dcd2d8"

// What an entry says itself comes on top of its preset.
func TestPresetsCanBeChanged(t *testing.T) {
	p := one(t, `{"name":"rep","preset":"replicate","secret_files":["rep.secret"],"signature":{"past":"1h"},
		"outcomes":{"aborted":"failed","expired":"timed_out"},"body":{"cost":"/metrics/credits","job":"/input/job"},
		"poll":{"secret_file":"token","most":"1h"}}`)
	reads(t, p, `{"id":"u","status":"aborted"}`, "u  0 aborted failed <nil>")
	reads(t, p, `{"id":"u","status":"expired","input":{"job":"j"}}`, "u j 0 expired timed_out <nil>")
	reads(t, p, `{"id":"u","status":"succeeded","metrics":{"credits":3}}`, "u  0 succeeded completed 3")
	request, err := p.Poll.Request(t.Context(), "a b/../c?d#e")
	if err != nil || request.URL.String() != "https://api.replicate.com/v1/predictions/a%20b%2F..%2Fc%3Fd%23e" ||
		request.Header.Get("Authorization") != "Bearer r8_token" || p.Poll.Most() != time.Hour ||
		p.Poll.Timeout != 10*time.Second {
		t.Errorf("got %v, %v, %v", request, err, p.Poll.Most())
	}
	if err := p.Poll.Check(httpcall.Options{}); err != nil {
		t.Error(err)
	}
}
