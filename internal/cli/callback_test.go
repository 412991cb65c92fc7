package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/internal/webhook"
)

// callbackFolder makes a folder with a providers file, a callback's body, and its headers.
func callbackFolder(t *testing.T, body string, sent time.Time) (folder string) {
	t.Helper()
	secret := webhook.NewSecret()
	keys, err := webhook.ParseKeys(webhook.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := webhook.Sign(keys, "msg_1", sent, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	headers := "POST /v1/callbacks/rep HTTP/1.1\r\nHost: example.com\r\n"
	for name, values := range signed {
		headers += name + ": " + values[0] + "\r\n"
	}
	folder = t.TempDir()
	for name, text := range map[string]string{
		"providers.json": `{"providers":[{"name":"rep","preset":"replicate","secret_file":"secret",
			"body":{"cost":"/cost","job":"/job","attempt":"/attempt"}},
			{"name":"two","preset":"replicate","secret_file":"secret","authority":"poll",
			"poll":{"secret_file":"secret"}}]}`,
		"secret": secret, "body": body, "headers": headers,
		"none": "\n", "bad": "no header",
		"other": strings.Replace(headers, "Webhook-Id: msg_1", "Webhook-Id: msg_2", 1),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func verifyLine(folder, provider, headers, body string) string {
	in := func(name string) string { return filepath.Join(folder, name) }
	return "callback verify " + provider + " --providers " + in("providers.json") + " --headers " + in(headers) +
		" --body " + in(body)
}

// The check of a callback needs no database, and says what it would do.
func TestCallbackVerify(t *testing.T) {
	now := time.Now()
	done := `{"id":"u1","status":"succeeded","cost":5,"job":"j\u001b","attempt":2}`
	const taken = "taken: %s signed this\nWHAT         VALUE\nupstream id  u1\n"
	for _, c := range []struct{ provider, body, want string }{
		{"rep", strings.Replace(done, `\u001b`, "1", 1), "job          j1\nstatus       succeeded\n" +
			"outcome      completed\nattempt      2\ncost         5\n" +
			"it would settle the job as completed, if the job is open\n"},
		{"rep", `{"id":"u1","status":"starting"}`, "status       starting\n" +
			"the status is no end in the file: the job counts as running, and nothing changes\n"},
		{"two", `{"id":"u1","status":"failed"}`, "status       failed\noutcome      failed\n" +
			"it would not settle the job, but have the provider polled at once: the authority is poll\n"},
	} {
		f := callbackFolder(t, c.body, now)
		stdout, stderr, exit := run(t, "none", verifyLine(f, c.provider, "headers", "body"))
		if want := fmt.Sprintf(taken, c.provider) + c.want; stdout != want || stderr != "" || exit != 0 {
			t.Errorf("got %d %s%s\nwant %s", exit, stdout, stderr, want)
		}
	}
	f := callbackFolder(t, `{"id":"u1","status":"failed"}`, now)
	stdout, _, _ := run(t, "none", verifyLine(f, "rep", "headers", "body")+" --json")
	if stdout != `{"provider":"rep","says":{"upstream_id":"u1","job":"","attempt":0,"word":"failed",`+
		`"outcome":"failed","cost":null}}`+"\n" {
		t.Errorf("got %s", stdout)
	}
	f = callbackFolder(t, done, now)
	_, stderr, exit := run(t, "none", verifyLine(f, "rep", "headers", "body"))
	if exit != 2 || !strings.HasPrefix(stderr, "jobledger: job: ") {
		t.Errorf("got %d %s", exit, stderr)
	}
}

// B99: each cause has its own word.
func TestB99CallbackVerifyRefuses(t *testing.T) {
	f := callbackFolder(t, `{"id":"u1","status":"succeeded"}`, time.Now())
	good := verifyLine(f, "rep", "headers", "body")
	for line, want := range map[string]string{
		verifyLine(f, "rep", "other", "body"):                "4 jobledger: bad_signature: ",
		verifyLine(f, "rep", "headers", "secret"):            "4 jobledger: bad_signature: ",
		verifyLine(f, "rep", "none", "body"):                 "4 jobledger: missing_signature: ",
		good + " --at 2020-01-01T00:00:00Z":                  "4 jobledger: early: ",
		good + " --at 2099-01-01T00:00:00Z":                  "4 jobledger: stale: ",
		good + " --at yesterday":                             `2 jobledger: at: "yesterday" is not a time`,
		verifyLine(f, "rep", "bad", "body"):                  "2 jobledger: headers: ",
		verifyLine(f, "rep", "gone", "body"):                 "2 jobledger: headers: ",
		verifyLine(f, "rep", "headers", "gone"):              "2 jobledger: body: ",
		verifyLine(f, "nobody", "headers", "body"):           `2 jobledger: provider: "nobody" is not in`,
		strings.Replace(good, "providers.json", "secret", 1): "2 jobledger: providers: ",
		"callback verify rep --headers x":                    "2 jobledger: ",
	} {
		stdout, stderr, exit := run(t, "none", line)
		if got := fmt.Sprint(exit, " ", stderr); !strings.HasPrefix(got, want) || stdout != "" {
			t.Errorf("%s: got %s%s, want %s", line, stdout, got, want)
		}
	}
}
