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
		u := &t.runs[i]
		if u.long && !c.soak {
			r.notRun = "in the long run only"
			continue
		}
		c.run(ctx, u, &r)
	}
	if r.counted && r.fired < r.wanted && r.violation == "" {
		r.violation = fmt.Sprintf("%d faults fired, %d were wanted", r.fired, r.wanted)
	}
	r.took = time.Since(began)
	return r
}

var (
	campaignLine = regexp.MustCompile(`campaign: \S+ \S+ wanted (\d+) done (\d+) fired (\d+)`)
	passedLine   = regexp.MustCompile(`(?m)^ *--- PASS: `)
	notRunLine   = regexp.MustCompile(`(?m)^.*not run: (.*)$`)
)

// run builds a test binary, unless it is there, runs it, and adds what it did.
func (c *checker) run(ctx context.Context, u *run, r *result) {
	if _, err := os.Stat(u.folder); err != nil {
		r.notRun = "there is no " + u.folder
		return
	}
	binary, err := c.build(ctx, u)
	if err != nil {
		r.violation = err.Error()
		return
	}
	bound, environment := quickMax, u.quick
	if c.soak {
		bound = soakMax
		if u.soak != nil {
			environment = u.soak
		}
	}
	args := append([]string{"-test.v", "-test.run=" + u.tests, "-test.timeout=" + bound.String()}, u.args...)
	if u.short && !c.soak {
		args = append(args, "-test.short")
	}
	command := exec.CommandContext(ctx, binary, args...)
	command.Dir, command.Env = u.folder, append(os.Environ(), environment...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	failed := command.Run()
	r.read(out.String())
	if failed != nil {
		r.violation = fmt.Sprintf("%s go test -count=1 -v -run '%s' ./%s: %v\n%s", strings.Join(environment, " "),
			u.tests, u.folder, failed, tail(out.String()))
	}
}

// read adds what a run's output says of it.
func (r *result) read(out string) {
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
	if m := notRunLine.FindStringSubmatch(out); m != nil {
		r.notRun = "in part: " + m[1]
	}
	if tests == 0 && r.notRun == "" {
		r.notRun = "no test has such a name"
	}
}

func (c *checker) build(ctx context.Context, u *run) (binary string, err error) {
	key := fmt.Sprint(u.folder, u.race, len(u.args) > 0)
	if c.built[key] != "" {
		return c.built[key], nil
	}
	binary = filepath.Join(c.folder, strconv.Itoa(len(c.built))+".test")
	args := []string{"test", "-c", "-o", binary}
	if u.race {
		args = append(args, "-race")
	}
	if len(u.args) > 0 {
		args = append(args, "-cover")
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
