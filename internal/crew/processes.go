package crew

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"jobledger/ledger"
)

// SilenceDefault is how long a child process may say nothing: longer than a call's retries take.
const SilenceDefault = time.Minute

// Crew is several child processes of this program, each with a plan, whose answers are of type R.
type Crew[P, R any] struct {
	Name     string        // what the work is called in errors
	Argument string        // of this program: the command that calls [Serve]
	Command  []string      // in place of this program and Argument, if not empty
	Silence  time.Duration // bounds how long a child may say nothing; 0: SilenceDefault

	Plan  func(process int) P // of a process, from 1
	Parts func(plan P) int    // how many answers it gives
	Keep  func(answer R) error
}

// Run starts processes and sees them to their end. When all are ready it calls release, and lets them
// begin when that returns. Calls of Keep do not overlap. The first error stops all of them: a child
// that fails with a *ledger.Error gives that; one that dies or falls silent is INTERNAL.
func (c *Crew[P, R]) Run(ctx context.Context, processes int, release func() error) error {
	var one sync.Mutex
	keep := func(answer R) error {
		one.Lock()
		defer one.Unlock()
		return c.Keep(answer)
	}
	return Together(ctx, processes, release, func(ctx context.Context, i int, wait func() error) error {
		m := child[P, R]{Crew: c, process: i + 1, plan: c.Plan(i + 1), wait: wait, keep: keep}
		return m.run(ctx)
	})
}

// child is a child process as its parent sees it.
type child[P, R any] struct {
	*Crew[P, R]
	process int
	plan    P
	wait    func() error // until all processes are ready
	keep    func(R) error
	watch   *time.Timer // kills a silent child
}

// errMute is the end of what a child says before it has said everything.
var errMute = errors.New("it stopped talking")

// run starts a child and sees it to its end. A child that fails, dies or falls silent is an error.
func (c *child[P, R]) run(ctx context.Context) error {
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	cmd, stderr := c.command(ctx), new(tail)
	cmd.Stderr = stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("%s: process %d: %w", c.Name, c.process, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: process %d: %w", c.Name, c.process, err)
	}
	c.watch = time.AfterFunc(c.silence(), func() {
		kill(internal("process %d of the %s said nothing for %s", c.process, c.Name, c.silence()))
	})
	defer c.watch.Stop()
	said := c.converse(json.NewEncoder(stdin), json.NewDecoder(stdout))
	if said != nil && said != errMute {
		kill(said)
	}
	exit := cmd.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := cmp.Or(exit, said); err != nil {
		return internal("process %d of the %s ended before it was done: %v%s", c.process, c.Name, err, stderr)
	}
	return nil
}

// command is the child's command line. By default it is this program, under the name it was called by.
func (c *child[P, R]) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], c.Argument)
	if program, err := os.Executable(); err == nil {
		cmd.Path, cmd.Err = program, nil
	}
	if len(c.Command) > 0 {
		cmd = exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (c *child[P, R]) silence() time.Duration {
	return cmp.Or(c.Silence, SilenceDefault)
}

// converse is the parent's side of the talk, up to the child's last answer.
func (c *child[P, R]) converse(say *json.Encoder, hear *json.Decoder) error {
	if say.Encode(c.plan) != nil {
		return errMute
	}
	if m, err := listen[R](hear); err != nil || !m.Ready {
		return cmp.Or(err, errMute)
	}
	c.watch.Stop() // the others may take their time
	if err := c.wait(); err != nil {
		return err
	}
	c.watch.Reset(c.silence())
	if say.Encode(fireWord) != nil {
		return errMute
	}
	for range c.Parts(c.plan) {
		m, err := listen[R](hear)
		if err != nil || m.Part == nil {
			return cmp.Or(err, errMute)
		}
		c.watch.Reset(c.silence())
		if err := c.keep(*m.Part); err != nil {
			return err
		}
	}
	return nil
}

func internal(format string, args ...any) error {
	return &ledger.Error{Code: ledger.Internal, Message: fmt.Sprintf(format, args...)}
}

// listen hears one message. What cannot be heard, for whatever reason, is errMute.
func listen[R any](hear *json.Decoder) (m message[R], err error) {
	switch {
	case hear.Decode(&m) != nil:
		return m, errMute
	case m.Error != nil:
		return m, m.Error
	}
	return m, nil
}

// tail keeps the last line or so of what is written to it.
type tail struct{ text string }

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	const bytesMax = 500
	t.text += string(b)
	t.text = t.text[max(0, len(t.text)-bytesMax):]
	return len(b), nil
}

// String is the last line in parentheses, or nothing.
func (t *tail) String() string {
	text := strings.TrimSpace(t.text)
	if text == "" {
		return ""
	}
	return " (" + text[strings.LastIndexByte(text, '\n')+1:] + ")"
}
