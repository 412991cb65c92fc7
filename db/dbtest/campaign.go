package dbtest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// The environment of a campaign: the number of faults of technique T01 is in JOBLEDGER_TEST_T01, the seed in
// JOBLEDGER_TEST_SEED, and the databases of failures are kept in the folder JOBLEDGER_TEST_KEEP.
const (
	campaignVariable = "JOBLEDGER_TEST_"
	seedVariable     = "JOBLEDGER_TEST_SEED"
	keepVariable     = "JOBLEDGER_TEST_KEEP"
)

// Campaign counts the faults that a test means to bring about, and those that it did. A test with fewer
// than it wanted fails. What it did is in one line for a program to read; with a failure comes the command
// that does the same again.
type Campaign struct {
	Wanted int    // what the test means to do
	Seed   uint64 // of everything in it that is random

	t           *testing.T
	technique   string
	asked       int
	done, fired atomic.Int64
}

// StartCampaign begins a campaign of a technique: usual many, a tenth of it with -short, or as many as the
// environment says.
func StartCampaign(t *testing.T, technique string, usual int) *Campaign {
	t.Helper()
	if testing.Short() {
		usual = max(usual/10, 2)
	}
	asked := int(fromEnvironment(t, campaignVariable+technique, uint64(usual)))
	c := &Campaign{
		t: t, technique: technique, asked: asked, Wanted: asked,
		Seed: fromEnvironment(t, seedVariable, rand.Uint64()),
	}
	t.Cleanup(c.end)
	return c
}

func fromEnvironment(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Random gives the random numbers of one part of the campaign.
func (c *Campaign) Random(part int) *rand.Rand { return rand.New(rand.NewPCG(c.Seed, uint64(part))) }

// All makes the number of cases, which only the test knows, what was wanted.
func (c *Campaign) All(cases int) { c.Wanted = cases }

// Tried is the number of cases so far.
func (c *Campaign) Tried() int { return int(c.done.Load()) }

// Done counts one case. fired says that its fault came about.
func (c *Campaign) Done(fired bool) {
	c.done.Add(1)
	if fired {
		c.fired.Add(1)
	}
}

// end says what was done, and fails the test if it is less than was wanted.
func (c *Campaign) end() {
	c.t.Helper()
	if n := c.fired.Load(); n < int64(c.Wanted) && !c.t.Failed() {
		c.t.Errorf("%s: %d faults fired, %d were wanted", c.technique, n, c.Wanted)
	}
	c.t.Logf("campaign: %s %s wanted %d done %d fired %d seed %d", c.technique, c.t.Name(), c.Wanted,
		c.done.Load(), c.fired.Load(), c.Seed)
	if c.t.Failed() {
		c.t.Logf("again: %s%s=%d %s=%d go test -count=1 -v -run '%s' %s", campaignVariable, c.technique,
			c.asked, seedVariable, c.Seed, pattern(c.t.Name()), folder())
	}
}

// pattern matches one test, or subtest, alone.
func pattern(name string) string { return "^" + strings.ReplaceAll(name, "/", "$/^") + "$" }

// folder is the package under test, as the go command names it from the module's root.
func folder() string {
	here, err := os.Getwd()
	for up := here; err == nil && up != filepath.Dir(up); up = filepath.Dir(up) {
		if _, err := os.Stat(filepath.Join(up, "go.mod")); err == nil {
			name, _ := filepath.Rel(up, here)
			return "./" + filepath.ToSlash(name)
		}
	}
	return "."
}

// KeepIfFailed copies a SQLite database away if the test fails, before its own folder is deleted.
func KeepIfFailed(t *testing.T, path string) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() || isPostgres(path) {
			return
		}
		into := os.Getenv(keepVariable)
		if into == "" {
			into = os.TempDir()
		}
		kept, err := os.MkdirTemp(into, "jobledger-failed-")
		for _, suffix := range []string{"", "-wal"} {
			if err == nil {
				err = keepFile(path+suffix, filepath.Join(kept, filepath.Base(path)+suffix))
			}
		}
		t.Logf("the database is kept in %s (%v)", kept, err)
	})
}

func keepFile(from, to string) error {
	in, err := os.Open(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("keep %s: %w", from, err)
	}
	return out.Close()
}
