package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"jobledger/internal/racelab/guards"
)

// TestLabGuards: the table fits a terminal, one guard is told of in full, and the JSON has both.
func TestLabGuards(t *testing.T) {
	stdout, stderr, exit := run(t, "", "lab guards --guard commit-error-check")
	for _, want := range []string{
		"commit-error-check: A COMMIT that failed is never a success.\n",
		"\nWithout it this invariant breaks: nothing acknowledged is lost.\n",
		"the observer was told that it had won, and the job is pending\n",
		"\nWith all guards in place: 1 scene played, nothing breaks.\n",
	} {
		if exit != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, %s, no %q in\n%s", exit, stderr, want, stdout)
		}
	}
	stdout, _, exit = run(t, "", "lab guards")
	lines := strings.Split(stdout, "\n")
	if exit != 0 || !strings.HasPrefix(lines[0], "GUARD  ") || len(lines) != 19 {
		t.Errorf("exit %d\n%s", exit, stdout)
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	var r guards.Result
	stdout, _, _ = run(t, "", "lab guards --json --guard check")
	err := json.Unmarshal([]byte(stdout), &r)
	if err != nil || !r.OK || len(r.Guards) != 1 || !r.Guards[0].Caught {
		t.Errorf("%v: %s", err, stdout)
	}
	_, stderr, exit = run(t, "", "lab guards --guard luck")
	if exit != 2 || !strings.HasPrefix(stderr, "jobledger: guard: there is no guard \"luck\"") {
		t.Errorf("exit %d, %s", exit, stderr)
	}
}
