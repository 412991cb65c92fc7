package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"jobledger/db/dbtest"
)

// secretFile writes a file as an editor leaves it, with a newline at its end.
func secretFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook.secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

const eventTypes = "job.completed, job.failed, job.canceled, job.timed_out, job.conflict"

func TestTokenCommands(t *testing.T) {
	dsn := dbtest.SQLite(t)
	stdout, stderr, exit := run(t, dsn, "token create --name app --scope write")
	head, secret, _ := strings.Cut(strings.TrimSpace(stdout), "\n")
	if exit != 0 || head != "created token app (write):" || !strings.HasPrefix(secret, "jl_") ||
		stderr != "keep the secret: nobody can show it again\n" {
		t.Fatalf("%s%s%d", stdout, stderr, exit)
	}
	conversation(t, dsn, `$ token list
NAME  SCOPE  CREATED               REVOKED
app   write  TIME
$ token create --name app --scope read
jobledger: there is a token "app" already: revoke it, and give the new one another name
$ token create --name app --scope root
jobledger: scope: "root" is not one of read, write, operator
$ token revoke app
token app is revoked since TIME
$ token revoke app
token app is revoked since TIME
$ token revoke other
jobledger: there is no token "other"`)
	if stdout, _, _ := run(t, dsn, "token list --json"); strings.Contains(stdout, secret) ||
		!strings.Contains(stdout, `"name":"app"`) {
		t.Error(stdout)
	}
}

func TestEndpointCommands(t *testing.T) {
	dsn := dbtest.SQLite(t)
	one, two := secretFile(t, hookSecret), secretFile(t, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD5tpUKvI=")
	short := secretFile(t, "whsec_c2hvcnQ=")
	names := strings.NewReplacer("ONE", one, "TWO", two, "SHORT", short, "of TYPES", "of "+eventTypes)
	conversation(t, dsn, names.Replace(`$ endpoint list
events are sent nowhere: endpoint add names a URL
$ endpoint add https://app.example/hooks --secret-file ONE
https://app.example/hooks is told of all events
$ endpoint add https://app.example/hooks --secret-file ONE
already done, nothing changed: https://app.example/hooks is told of all events
$ endpoint add https://app.example/hooks --secret-file TWO --types job.failed
jobledger: endpoint https://app.example/hooks exists with other content; it differs in secret, types
$ endpoint add http://app.example/hooks --secret-file ONE
jobledger: url: is without TLS: it takes https://
$ endpoint add http://app.example/hooks --secret-file ONE --allow-http --types job.conflict,job.failed
http://app.example/hooks is told of job.failed, job.conflict
$ endpoint add http://127.0.0.1:9/hooks --secret-file ONE --types job.started
jobledger: types: "job.started" is not one of TYPES
$ endpoint add http://127.0.0.1:9/hooks --secret-file SHORT
jobledger: secret: is not whsec_ and the base64 of 24 to 64 bytes
$ endpoint rotate https://app.example/hooks --secret-file TWO
https://app.example/hooks signs with the new secret, and with the one before
$ endpoint disable http://app.example/hooks --reason moved
http://app.example/hooks is disabled
$ endpoint list
URL                        TYPES              STATE
https://app.example/hooks  all events         enabled
http://app.example/hooks   job.failed,        disabled: moved
                           job.conflict
$ endpoint enable http://app.example/hooks
http://app.example/hooks is enabled
$ endpoint enable https://nowhere.example
jobledger: there is no endpoint "https://nowhere.example"`))
	for _, line := range []string{
		"endpoint list --json", "endpoint add https://app.example/hooks --json --secret-file " + one, "export",
	} {
		stdout, _, exit := run(t, dsn, line)
		if exit != 0 || strings.Contains(stdout, "whsec_") {
			t.Errorf("%s: %s", line, stdout)
		}
	}
	_, stderr, exit := run(t, dsn, "endpoint add https://a.example --secret-file "+one+".missing")
	if exit != 2 || !strings.HasPrefix(stderr, "jobledger: secret-file: ") {
		t.Errorf("%d: %s", exit, stderr)
	}
}

// Events from a settlement to a dead letter, and from there to the receiver.
func TestEventCommands(t *testing.T) {
	dsn := dbtest.SQLite(t)
	var up atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer receiver.Close()
	say := func(script string) {
		t.Helper()
		script = strings.NewReplacer("URL", receiver.URL, "FILE", secretFile(t, hookSecret)).Replace(script)
		conversation(t, dsn, script)
	}
	say(`$ endpoint add URL --secret-file FILE
URL is told of all events
$ grant alice 9 --key k
granted 9 to alice: available 9, held 0
$ job create j1 --owner alice --cost 2
held 2 for job j1 on alice: available 7, held 2
$ notify j1 failed
returned 2 for job j1 on alice (failed): available 9, held 0
$ events list --type job.failed
TIME                  EVENT       TYPE        OWNER
TIME  settled:j1  job.failed  alice
$ events list --job j2
jobledger: there is no job "j2"
$ events list --type job.lost
jobledger: type: "job.lost" is not one of ` + eventTypes)
	stdout, stderr, exit := run(t, dsn, "deliver --once")
	if exit != 0 || stdout != "delivered: 0, failed and tried again later: 1, given up: 0\n" ||
		!strings.Contains(stderr, `"msg":"an event was not delivered"`) || strings.Contains(stderr, "whsec_") {
		t.Errorf("%d: %s%s", exit, stdout, stderr)
	}
	if stdout, _, _ := run(t, dsn, "job explain j1"); !strings.Contains(stdout, "pending after 1") {
		t.Error(stdout)
	}
	dbtest.Exec(t, dsn, `UPDATE deliveries SET status = 'dead', done_at = 1 WHERE event_id = 'settled:j1'`)
	up.Store(true)
	stdout, stderr, exit = run(t, dsn, "events deliveries --status dead --endpoint "+receiver.URL)
	if exit != 0 || !strings.Contains(stdout, "settled:j1") || !strings.Contains(stdout, " dead ") {
		t.Errorf("%d: %s%s", exit, stdout, stderr)
	}
	stdout, stderr, exit = run(t, dsn, "events replay --dead")
	if exit != 0 || !strings.HasSuffix(stdout, "on the way again: 1\n") {
		t.Errorf("%d: %s%s", exit, stdout, stderr)
	}
	say(`$ events replay --dead
nothing is sent again
$ events replay
jobledger: event: name one event, or all that were given up with --dead
$ events replay settled:j2
jobledger: there is no event "settled:j2"
$ deliver --once --allow-private
delivered: 1, failed and tried again later: 0, given up: 0
$ deliver --once --allow-private --json
{"delivered":0,"retried":0,"dead":0}`)
}
