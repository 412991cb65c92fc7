package racelab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"jobledger/ledger"
)

// A child process is told its plan as one JSON document on stdin and answers on stdout: one message
// when its workers are ready, and, after the word fire on stdin, one for each notification. Its stdin
// stays open for as long as the parent lives.

// fireWord is what releases a child's workers.
const fireWord = "fire"

// errGone ends a child process whose parent has ended.
var errGone = errors.New("the process that started the race is gone")

// message is what a child tells its parent: one of the fields.
type message struct {
	Ready bool          `json:"ready,omitempty"`
	Shot  *shot         `json:"shot,omitempty"`
	Error *ledger.Error `json:"error,omitempty"`
}

// Child is one process of a race, on the stdin and stdout that [Run] gave it. It ends when its part
// is done, and at the latest when stdin does.
func Child(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	hear, say := json.NewDecoder(stdin), json.NewEncoder(stdout)
	var p plan
	if err := hear.Decode(&p); err != nil {
		return ledger.InvalidField("stdin", "is not the plan of a race; this command is for race itself")
	}
	if err := p.check(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	released := make(chan struct{})
	go func() {
		var word string
		if hear.Decode(&word) == nil && word == fireWord {
			close(released)
			_ = hear.Decode(&word) // returns when the parent has closed stdin, or ended
		}
		stop(errGone)
	}()
	err := p.fire(ctx, func() error {
		if err := say.Encode(message{Ready: true}); err != nil {
			return err
		}
		select {
		case <-released:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, func(s shot) error { return say.Encode(message{Shot: &s}) })
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		_ = say.Encode(message{Error: e}) // a parent that does not hear it sees the exit status
	}
	return err
}

// spread runs the race in child processes. Calls of release and keep are as for fire.
func (p *plan) spread(ctx context.Context, release func() error, keep func(shot) error) error {
	var one sync.Mutex
	return together(ctx, p.Processes, release, func(ctx context.Context, i int, wait func() error) error {
		c := child{plan: *p, wait: wait, keep: func(s shot) error {
			one.Lock()
			defer one.Unlock()
			return keep(s)
		}}
		c.plan.Process = i + 1
		return c.run(ctx)
	})
}

// child is a child process as its parent sees it.
type child struct {
	plan  plan
	wait  func() error // until all processes are ready
	keep  func(shot) error
	watch *time.Timer // kills a silent child
}

// errMute is the end of what a child says before it has said everything.
var errMute = errors.New("it stopped talking")

// run starts a child and sees it to its end. A child that fails, dies or falls silent is an error.
func (c *child) run(ctx context.Context) error {
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	cmd, stderr := c.command(ctx), new(tail)
	cmd.Stderr = stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("race: process %d: %w", c.plan.Process, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("race: process %d: %w", c.plan.Process, err)
	}
	c.watch = time.AfterFunc(c.silence(), func() {
		kill(internal("process %d of the race said nothing for %s", c.plan.Process, c.silence()))
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
		return internal("process %d of the race ended before it was done: %v%s", c.plan.Process, err, stderr)
	}
	return nil
}

// command is the child's command line. By default it is this program, under the name it was called by.
func (c *child) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "race-child")
	if program, err := os.Executable(); err == nil {
		cmd.Path, cmd.Err = program, nil
	}
	if len(c.plan.Child) > 0 {
		cmd = exec.CommandContext(ctx, c.plan.Child[0], c.plan.Child[1:]...)
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (c *child) silence() time.Duration {
	if c.plan.Silence > 0 {
		return c.plan.Silence
	}
	return SilenceDefault
}

// converse is the parent's side of the talk, up to the child's last notification.
func (c *child) converse(say *json.Encoder, hear *json.Decoder) error {
	if say.Encode(c.plan) != nil {
		return errMute
	}
	if m, err := listen(hear); err != nil || !m.Ready {
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
	for range c.plan.share() {
		m, err := listen(hear)
		if err != nil || m.Shot == nil {
			return cmp.Or(err, errMute)
		}
		c.watch.Reset(c.silence())
		if err := c.keep(*m.Shot); err != nil {
			return err
		}
	}
	return nil
}

// listen hears one message. What cannot be heard, for whatever reason, is errMute.
func listen(hear *json.Decoder) (m message, err error) {
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
