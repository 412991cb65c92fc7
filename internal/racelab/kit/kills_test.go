//go:build unix

package kit

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheckKilled(t *testing.T) {
	for _, c := range []struct {
		killing *killing
		mode    string
		left    int    // requests without an answer
		heard   string // the balance, and the answers to them when they are sent again
		want    string
	}{
		{killedNotify, "charge", 0, "ok 56 0", ""},
		{killedNotify, "charge", 2, "ok 42 0/won failed/won failed", ""},
		{killedNotify, "charge", 2, "ok 49 0/lost failed/won failed", ""},
		{killedNotify, "charge", 2, "ok 56 0/lost failed/lost failed", ""},
		{killedNotify, "hold", 2, "ok 49 7/lost failed/won failed", ""},
		{killedNotify, "hold", 2, "ok 49 14/lost failed/won failed", `expected "ok 42 14" to "ok 56 0", in steps`},
		{killedNotify, "charge", 1, "ok 42 0/won failed", `expected "ok 49 0" to "ok 56 0", in steps of 7`},
		{killedNotify, "charge", 1, "ok 50 0/won failed", `"ok 50 0"; expected "ok 49 0"`},
		{killedNotify, "charge", 1, "ok 63 0/won failed", `"ok 63 0"; expected "ok 49 0"`},
		{killedNotify, "charge", 2, "ok 42 0/lost failed/won failed", `so 0 of the others were done; ` +
			`asked again, they were answered "lost failed" once, "won failed" once, ` +
			`expected "lost failed" never, "won failed" 2 times`},
		{killedNotify, "charge", 2, "ok 49 0/won failed/won failed", `so 1 of the others were done`},
		{killedNotify, "charge", 1, "ok 49 0/refused", `answered "refused" once`},
		{killedCreate, "charge", 2, "ok 14 0/ok/ok", ""},
		{killedCreate, "charge", 2, "ok 7 0/refused/ok", ""},
		{killedCreate, "hold", 2, "ok 7 49/ok/ok", ""},
		{killedCreate, "charge", 2, "ok 7 0/refused/refused", `expected "ok" or "refused" once, "ok" once`},
		{killedCreate, "hold", 2, "ok 7 42/ok/ok", `"ok 7 42"; expected "ok 14 42" to "ok 0 56"`},
	} {
		s := canned(t, c.mode, strings.Split(c.heard, "/")...)
		left := slices.Repeat([]string{s.say(strings.ReplaceAll(c.killing.request, "JOB", "job-1"))}, c.left)
		err := s.checkKilled(c.killing, 1, left)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.heard, err, c.want)
		}
	}
}

// What a killed process had answered is kept; what it had not is left to be asked again.
func TestUntilKilled(t *testing.T) {
	for _, c := range []struct {
		script string
		after  time.Duration
		left   int
		want   string
	}{
		{"echo won failed", 300 * time.Millisecond, 0, ""},
		{"test $n -gt 3 && sleep 9; echo won failed", 300 * time.Millisecond, killJobs - 3, ""},
		{"sleep 9", 50 * time.Millisecond, killJobs, ""},
		{"sleep 9", 0, killJobs, ""},
		{"printf 'won fai'; sleep 9", 100 * time.Millisecond, killJobs, ""},
		{"test $n = 2 && echo busy || echo won failed", 300 * time.Millisecond, 1, ""},
		{"test $n = 2 && echo won completed || echo won failed", 300 * time.Millisecond, 0,
			`"notify job-2.3 failed" was answered "won completed", expected "won failed"`},
	} {
		s := canned(t, "charge")
		s.killAll()
		s.checker.Command = shell("n=0; read request; echo ok charge; while read request; do n=$((n + 1)); " +
			c.script + "; done")
		if err := s.enter(1); err != nil {
			t.Fatal(err)
		}
		left, err := s.untilKilled(killedNotify, c.after)
		if len(left) != c.left || (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %d left, %v; want %d, %s", c.script, len(left), err, c.left, c.want)
		}
		if err == nil && (len(s.cast) != 1 || s.cast[0].number != 3) {
			t.Errorf("%s: no new process took the place", c.script)
		}
	}
}

// A kill finds a process at work even if all its work takes less than a millisecond.
func TestPauseIsPrecise(t *testing.T) {
	s := canned(t, "charge")
	for try := range 10 { // a busy machine may be late, but not always
		var spans []time.Duration
		for range 101 {
			began := time.Now()
			s.pause(200 * time.Microsecond)
			spans = append(spans, time.Since(began))
		}
		slices.Sort(spans)
		if spans[0] < 200*time.Microsecond {
			t.Fatalf("a pause of 200us took only %s", spans[0]) // no machine is early
		}
		if spans[20] <= 900*time.Microsecond {
			return
		}
		t.Logf("try %d: a pause of 200us took %s to %s, every fifth at most %s", try, spans[0], spans[100],
			spans[20])
	}
	t.Error("no pause is precise")
}
