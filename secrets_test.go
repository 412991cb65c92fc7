//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/webhook"
)

// The secrets of these tests. Each is looked for without its prefix: half of one would be too much.
const (
	callbackSecret = "whsec_Y2FsbGJhY2stc2VjcmV0LW9mLXRoZS1wcm92aWRlcg=="
	plainSecret    = "a-plain-secret-of-some-length"
	pollSecret     = "poll-token-1f0e9d8c7b6a"
	hookSecret     = "whsec_aG9vay1zZWNyZXQtb2YtdGhlLWVuZHBvaW50LW9uZQ=="
	newHookSecret  = "whsec_aG9vay1zZWNyZXQtb2YtdGhlLWVuZHBvaW50LXR3bw=="
	shortSecret    = "whsec_dG9vLXNob3J0LXRoaW5n"
	dbPassword     = "db-password-5e4d3c2b1a"
	forgedToken    = "jl_FORGED7TOKEN7OF7NOBODY77"
)

// watch collects all that the program says, and knows what it must not say.
type watch struct {
	*testing.T
	dsn     string
	folder  string
	server  *served
	secrets map[string]string
	said    []saying
}

type saying struct{ who, what string }

// TestSecretsStayInside runs a server with secrets of every kind, uses it well and badly, runs the commands
// that look at what was said, and finds none of the secrets in any output, answer, log or export.
func TestSecretsStayInside(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		w := &watch{T: t, dsn: withPassword(t, dsn), folder: t.TempDir(), secrets: map[string]string{}}
		for _, secret := range []string{
			callbackSecret, plainSecret, pollSecret, hookSecret, newHookSecret, shortSecret, dbPassword, forgedToken,
		} {
			w.hide(secret)
		}
		w.files()
		tokens := w.setUp()
		w.server = serve(t, w.dsn, "--providers", w.file("providers.json"), "--poll", "--deliver",
			"--allow-private")
		w.calls(tokens)
		w.callbacks()
		w.commands()
		w.waitFor(`SELECT COUNT(*) FROM polls WHERE last_error <> ''`) // that is, when the log has it
		w.waitFor(`SELECT COUNT(*) FROM deliveries WHERE last_error <> ''`)
		if exit := w.server.end(syscall.SIGTERM); exit != 0 {
			t.Errorf("exit %d: %s", exit, w.server.stderr)
		}
		log := w.server.stderr.String()
		if !strings.Contains(log, `"msg":"poll"`) || !strings.Contains(log, "an event was not delivered") {
			t.Errorf("the log lacks the failures: %s", log)
		}
		w.say("the log", log)
		w.check()
	})
}

// withPassword puts a password into the URL of a server that asks for none.
func withPassword(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn // a file
	}
	u.User = url.UserPassword(u.User.Username(), dbPassword)
	return u.String()
}

// hide makes a text one that nothing may say.
func (w *watch) hide(secret string) {
	_, bare, prefixed := strings.Cut(secret, "_")
	if !prefixed {
		bare = secret
	}
	w.secrets[secret] = bare
}

func (w *watch) say(who, what string) { w.said = append(w.said, saying{who, what}) }

func (w *watch) file(name string) string { return filepath.Join(w.folder, name) }

func (w *watch) files() {
	w.Helper()
	for name, text := range map[string]string{
		"rep.secret": callbackSecret + "\n", "plain.secret": plainSecret, "poll.secret": pollSecret,
		"hook.secret": hookSecret, "new.secret": newHookSecret, "short.secret": shortSecret,
		"providers.json": `{"providers":[{"name":"rep","preset":"replicate","secret_file":"rep.secret",
			"poll":{"url":"http://127.0.0.1:1/{id}","secret_file":"poll.secret"}},
			{"name":"plain","scheme":"hmac-sha256","secret_file":"plain.secret",
			"signature":{"header":"X-Signature","encoding":"hex","timestamp":"none","content":"{body}"},
			"body":{"id":"/id","status":"/status"},"outcomes":{"failed":"failed"}}]}`,
		"body.json": `{"id":"u1","status":"succeeded"}`, "forged.txt": "webhook-id: m\n",
		"broken.json": `{"providers":[{"name":"rep","preset":"replicate","secret_file":"short.secret"}]}`,
	} {
		if err := os.WriteFile(w.file(name), []byte(text), 0o600); err != nil {
			w.Fatal(err)
		}
	}
}

// run runs a command and keeps what it says.
func (w *watch) run(line string) outcome {
	w.Helper()
	o := jobledger(w.T, w.dsn, strings.Fields(strings.ReplaceAll(line, "FOLDER", w.folder))...)
	w.say(line, o.stdout+o.stderr)
	return o
}

// setUp makes what the server works on, and gives a token of each scope.
func (w *watch) setUp() (tokens map[string]string) {
	w.Helper()
	tokens = map[string]string{}
	for _, scope := range []string{"read", "write", "operator"} {
		var made struct{ Secret string }
		text := must(w.T, w.dsn, "token", "create", "--name", scope, "--scope", scope, "--json") // says it once
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			w.Fatal(err)
		}
		tokens[scope] = made.Secret
		w.hide(made.Secret)
	}
	for _, line := range []string{
		"grant alice 100 --key k", "endpoint add http://127.0.0.1:1/hook --secret-file FOLDER/hook.secret",
		"endpoint rotate http://127.0.0.1:1/hook --secret-file FOLDER/new.secret",
		"job create j1 --owner alice --cost 7", "job submit j1 --provider rep",
		"job accepted j1 --attempt 1 --upstream-id u1", "job create j2 --owner alice --cost 7",
		"job submit j2 --provider rep", "job accepted j2 --attempt 1 --upstream-id u2",
		"job create j3 --owner alice --cost 7", "job cancel j3",
	} {
		if o := w.run(line); o.exit != 0 {
			w.Fatalf("%s: %+v", line, o)
		}
	}
	return tokens
}

// call sends a request, and keeps what it is answered with.
func (w *watch) call(method, path, body string, header ...string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.server.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if r.Header.Set("Content-Type", "application/json"); path == "/sign-in" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r) // follows no redirect
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	for _, cookie := range answer.Cookies() {
		w.hide(cookie.Value) // whose place is the header Set-Cookie alone
	}
	w.say(method+" "+path, answer.Status+" "+answer.Header.Get("Location")+" "+string(text))
}

// calls are good ones, and ones with secrets where none belong.
func (w *watch) calls(tokens map[string]string) {
	w.Helper()
	const job = `{"id":"j4","owner":"alice","cost":`
	for _, secret := range append([]string{forgedToken, plainSecret}, tokens["read"], tokens["write"],
		tokens["operator"]) {
		bearer := []string{"Authorization", "Bearer " + secret}
		w.call("POST", "/v1/jobs", job+`5}`, bearer...)
		w.call("POST", "/v1/jobs", job+`"`+secret+`"`, bearer...)
		w.call("GET", "/v1/jobs?token="+secret, "", bearer...)
		w.call("GET", "/v1/jobs", "", "Authorization", "Basic "+secret)
		w.call("GET", "/v1/jobs", "", "Authorization", secret)
		w.call("POST", "/sign-in", "token="+secret+"&next=%2F")
		for _, members := range []string{
			`"https://a.example","secret":"` + shortSecret + `"`, `"https://a.example","secret":"` + hookSecret,
			`"https://a.example","types":5,"secret":"` + hookSecret + `"`,
			`"http://127.0.0.1:1/hook","secret":"` + newHookSecret + `"`,
		} {
			w.call("POST", "/v1/endpoints", `{"url":`+members+`}`, bearer...)
		}
		for _, path := range []string{"/", "/v1/endpoints", "/v1/deliveries", "/v1/events", "/v1/jobs/j1/explain",
			"/metrics", "/openapi.json", "/v1/entries", "/v1/audit"} {
			w.call("GET", path, "", bearer...)
		}
	}
}

// callbacks are a good one and forged ones.
func (w *watch) callbacks() {
	w.Helper()
	body := `{"id":"u1","status":"succeeded"}`
	keys, err := webhook.ParseKeys(webhook.Standard, callbackSecret)
	if err != nil {
		w.Fatal(err)
	}
	h, err := webhook.Sign(keys, "m1", time.Now(), []byte(body))
	if err != nil {
		w.Fatal(err)
	}
	var header []string
	var text strings.Builder
	for name := range h {
		header = append(header, name, h.Get(name))
		text.WriteString(name + ": " + h.Get(name) + "\n")
	}
	if err := os.WriteFile(w.file("good.txt"), []byte(text.String()), 0o600); err != nil {
		w.Fatal(err)
	}
	w.call("POST", "/v1/callbacks/rep", body, header...)
	w.call("POST", "/v1/callbacks/rep", body+" ", header...)
	w.call("POST", "/v1/callbacks/rep", body)
	w.call("POST", "/v1/callbacks/plain", body, "X-Signature", plainSecret)
	w.call("POST", "/v1/callbacks/nobody", body, header...)
}

// commands are those that look, and some that fail.
func (w *watch) commands() {
	w.Helper()
	const verify = "callback verify rep --providers FOLDER/providers.json --body FOLDER/body.json " +
		"--headers FOLDER/"
	for _, line := range []string{
		"doctor --providers FOLDER/providers.json", verify + "good.txt", verify + "forged.txt", "endpoint list",
		"token list", "audit", "export", "balance", "entries", "job explain j1", "events list", "events deliveries",
		"reconcile list", "deliver --once --allow-private", "serve --providers FOLDER/broken.json",
		"endpoint add http://127.0.0.1:1/hook --secret-file FOLDER/short.secret",
		"endpoint add http://127.0.0.1:1/hook --secret-file FOLDER/hook.secret --types job.failed",
		"endpoint add http://127.0.0.1:1/hook --secret-file FOLDER/nowhere", "init", "version",
		"balance --db postgres://u:" + dbPassword + "@127.0.0.1:1/d?connect_timeout=1",
		"balance --db postgres://u:" + dbPassword + "%zz@h/d",
		"balance --db postgres://u@h/d?sslmode=" + dbPassword,
		"copy --from " + w.dsn + " --to postgres://u:" + dbPassword + "@127.0.0.1:1/d?connect_timeout=1",
		"backup FOLDER/backup.db",
	} {
		w.run(line)
		w.run(line + " --json")
	}
}

// waitFor waits until a query gives more than 0.
func (w *watch) waitFor(query string) {
	w.Helper()
	d, err := dbtest.OpenRaw(w.dsn)
	if err != nil {
		w.Fatal(err)
	}
	defer d.Close()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		var n int
		if err := d.QueryRow(query).Scan(&n); err != nil {
			w.Fatalf("%s: %v", query, err)
		}
		if n > 0 {
			return
		}
		if time.Since(began) > time.Minute {
			w.Fatalf("%s: still 0", query)
		}
	}
}

// check looks for every secret in all that was said.
func (w *watch) check() {
	w.Helper()
	for secret, bare := range w.secrets {
		for _, s := range w.said {
			if strings.Contains(s.what, bare) {
				w.Errorf("%s is shown by %s: %.400s", secret, s.who, s.what)
			}
		}
	}
}
