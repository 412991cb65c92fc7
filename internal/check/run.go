package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The bounds of one run: what hangs is a violation.
const (
	quickMax = 5 * time.Minute
	soakMax  = 45 * time.Minute
)

// result is what a technique did.
type result struct {
	wanted, done, fired int
	counted             bool // by a campaign; else done is the number of tests
	notRun              string
	violation           string
	took                time.Duration
}

// checker runs techniques, and keeps the test binaries that it has built.
type checker struct {
	soak   bool
	folder string // of the binaries
	built  map[string]string
	out    io.Writer
}

// runAll runs the techniques one after the other, prints a row for each, and then what was violated.
func runAll(ctx context.Context, out io.Writer, soak bool, chosen func(string) bool) (ok bool) {
	folder, err := os.MkdirTemp("", "jobledger-check-")
	if err != nil {
		fmt.Fprintln(out, err)
		return false
	}
	defer os.RemoveAll(folder)
	c := &checker{soak: soak, folder: folder, built: map[string]string{}, out: out}
	began, ok := time.Now(), true
	var violations []string
	fmt.Fprintf(out, "| id | technique | wanted | done | fired | verdict | time |\n"+
		"|---|---|--:|--:|--:|---|--:|\n")
	for i := range techniques {
		t := &techniques[i]
		if !chosen(t.id) {
			continue
		}
		r := c.try(ctx, t)
		fmt.Fprintln(out, r.row(t))
		if r.violation != "" {
			ok = false
			violations = append(violations, t.id+": "+r.violation)
		}
		if ctx.Err() != nil {
			fmt.Fprintln(out, "\nstopped")
			return false
		}
	}
	fmt.Fprintf(out, "\n%v\n", time.Since(began).Round(time.Second))
	for _, v := range violations {
		fmt.Fprintf(out, "\n%s\n", v)
	}
	return ok
}

func (r *result) row(t *technique) string {
	verdict, wanted, fired := "ok", "", ""
	if r.counted {
		wanted, fired = strconv.Itoa(r.wanted), strconv.Itoa(r.fired)
	}
	switch {
	case r.violation != "":
		verdict = "**violation**"
	case r.notRun != "":
		verdict = "*not run*: " + r.notRun
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s | %s | %.0f s |", t.id, t.what, wanted, r.done, fired, verdict,
		r.took.Seconds())
}

// try does all runs of a technique.
func (c *checker) try(ctx context.Context, t *technique) (r result) {
	began := time.Now()
	r.notRun = t.notRun
	for i := range t.runs {
		c.run(ctx, &t.runs[i], &r)
	}
	if r.counted && r.fired < r.wanted {
		r.violate("%d faults fired, %d were wanted", r.fired, r.wanted)
	}
	r.took = time.Since(began)
	return r
}

// violate keeps the first violation of a technique: it is the one to look at.
func (r *result) violate(format string, args ...any) {
	if r.violation == "" {
		r.violation = fmt.Sprintf(format, args...)
	}
}

var (
	campaignLine = regexp.MustCompile(`campaign: \S+ \S+ wanted (\d+) done (\d+) fired (\d+)`)
	passedLine   = regexp.MustCompile(`(?m)^ *--- PASS: `)
	notRunLine   = regexp.MustCompile(`(?m)^[^>\n]*not run: (.*)$`) // not the line of a script that would say so
)

// run builds a test binary, unless it is there, runs it, and adds what it did.
func (c *checker) run(ctx context.Context, u *run, r *result) {
	binary, err := c.build(ctx, u)
	if err != nil {
		r.violate("%v", err)
		return
	}
	bound, environment := quickMax, u.quick
	if c.soak {
		bound = soakMax
		if u.soak != nil {
			environment = u.soak
		}
	}
	args, again := []string{"-test.v", "-test.run=" + u.tests, "-test.timeout=" + bound.String()}, ""
	if u.short && !c.soak {
		args, again = append(args, "-test.short"), " -short"
	}
	if u.race {
		again += " -race"
	}
	command := exec.CommandContext(ctx, binary, args...)
	command.Dir, command.Env = u.folder, append(os.Environ(), environment...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	failed := command.Run()
	said := r.read(out.String())
	switch {
	case failed != nil:
		r.violate("%s go test -count=1 -v%s -run '%s' ./%s: %v\n%s", strings.Join(environment, " "), again,
			u.tests, u.folder, failed, tail(out.String()))
	case !said:
		r.violate("no test in ./%s is named %s", u.folder, u.tests)
	}
}

// read adds what a run's output says of it. It reports whether the output says anything: a test that was
// run, or why none was.
func (r *result) read(out string) bool {
	campaigns := campaignLine.FindAllStringSubmatch(out, -1)
	for _, m := range campaigns {
		r.counted = true
		for i, sum := range []*int{&r.wanted, &r.done, &r.fired} {
			n, _ := strconv.Atoi(m[i+1])
			*sum += n
		}
	}
	tests := len(passedLine.FindAllString(out, -1))
	if len(campaigns) == 0 {
		r.done += tests
	}
	reason := notRunLine.FindStringSubmatch(out)
	if reason != nil {
		r.notRun = "in part: " + reason[1]
	}
	return tests > 0 || reason != nil
}

func (c *checker) build(ctx context.Context, u *run) (binary string, err error) {
	key := fmt.Sprint(u.folder, u.race)
	if c.built[key] != "" {
		return c.built[key], nil
	}
	binary = filepath.Join(c.folder, strconv.Itoa(len(c.built))+".test")
	args := []string{"test", "-c", "-o", binary}
	if u.race {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(ctx, "go", append(args, "./"+u.folder)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	c.built[key] = binary
	return binary, nil
}

// tail is what a reader needs of a run that failed: the lines that say why, and the last ones.
func tail(out string) string {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
