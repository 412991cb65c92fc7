package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	lineBytesMax = 4096        // of one answer
	graceMax     = time.Second // between the end of a process's stdin and its being killed
)

// process is a running copy of the program. It is asked one thing at a time.
type process struct {
	number    int
	abilities []string // as it named them; empty until it was asked

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	heard  chan said     // what it says, each line when somebody listens
	gone   chan struct{} // closed when nobody will listen again
	done   chan struct{} // closed when it has ended and everything that it said was heard
	exit   error         // how it ended; after done
	stderr lines
	last   string // the last line on its stderr; after done
}

// said is a line that a process wrote, or the start of one that is too long.
type said struct {
	line string
	long bool
}

// launch starts a process in a group of its own, so that what it starts can be ended with it.
func launch(ctx context.Context, command []string, dir string, number int) (*process, error) {
	p := &process{
		number: number, cmd: exec.CommandContext(ctx, command[0], command[1:]...),
		heard: make(chan said), gone: make(chan struct{}), done: make(chan struct{}),
	}
	p.stderr.each = func(s said) error { p.last = s.line; return nil }
	p.cmd.Stdout, p.cmd.Stderr = &lines{each: p.hear}, &p.stderr
	p.cmd.Env = append(os.Environ(), DirVariable+"="+dir)
	p.cmd.Cancel = p.killAll
	p.cmd.WaitDelay = graceMax
	ownGroup(p.cmd)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, faultf("it cannot be started: %v", err)
	}
	go func() {
		p.exit = p.cmd.Wait()
		if len(p.stderr.part) > 0 {
			p.last = string(p.stderr.part)
		}
		close(p.done)
	}()
	return p, nil
}

var errUnheard = errors.New("nobody listens any more")

// hear hands a line to whoever asks next. A process that floods its stdout is held up here.
func (p *process) hear(s said) error {
	select {
	case p.heard <- s:
		return nil
	case <-p.gone:
		return errUnheard
	}
}

func (p *process) killAll() error { return killGroup(p.cmd.Process) }

// ask sends a request and gives the answer.
func (p *process) ask(ctx context.Context, request string, timeout time.Duration) (string, error) {
	if err := p.send(request); err != nil {
		return "", err
	}
	return p.await(ctx, request, timeout)
}

// send writes requests, one a line, unless the process has said something that it was not asked.
func (p *process) send(requests string) error {
	select {
	case s := <-p.heard:
		return faultf("process %d wrote %s without being asked", p.number, quote(s.line))
	default:
	}
	// A process that no longer reads is one that ends: its exit tells more than the error would.
	_, _ = io.WriteString(p.stdin, requests+"\n")
	return nil
}

// await gives the answer to a request that was sent. A process that ends, stays silent or talks nonsense is
// a fault.
func (p *process) await(ctx context.Context, request string, timeout time.Duration) (string, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case s := <-p.heard:
		return p.checkSaid(request, s)
	case <-p.done:
		return "", p.ended(request)
	case <-timer.C:
		return "", faultf("process %d did not answer %s within %s (did it flush the line?)",
			p.number, quote(request), timeout)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (p *process) checkSaid(request string, s said) (string, error) {
	if s.long {
		return "", faultf("process %d answered %s with a line of more than %d bytes",
			p.number, quote(request), lineBytesMax)
	}
	if err := checkAnswer(s.line); err != nil {
		return s.line, faultf("process %d answered %s with %s: %v", p.number, quote(request), quote(s.line), err)
	}
	return s.line, nil
}

// ended says that a process ended instead of answering.
func (p *process) ended(request string) error {
	how, last := "exit status 0", ""
	if p.exit != nil {
		how = p.exit.Error()
	}
	if text := strings.TrimSpace(p.last); text != "" {
		last = ", its last words on stderr: " + quote(text)
	}
	text := fmt.Sprintf("process %d ended when it was asked %s: %s%s", p.number, quote(request), how, last)
	return &fault{text: text, ended: true}
}

// kill ends a process, and all that it started, at once.
func (p *process) kill() { p.stop(0) }

// stop ends a process and all that it started. It is told by the end of its stdin, and killed if that
// does not help in time.
func (p *process) stop(grace time.Duration) {
	select {
	case <-p.gone:
	default:
		close(p.gone)
	}
	if grace > 0 {
		_ = p.stdin.Close()
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	_ = p.killAll() // what is left of its group; mostly nothing
	<-p.done
}

// lines is a writer that hands on what is written to it line by line.
type lines struct {
	each func(said) error
	part []byte // a line that has not ended
}

// Write fails if each does.
func (l *lines) Write(b []byte) (int, error) {
	for piece := range bytes.SplitAfterSeq(b, []byte("\n")) {
		l.part = append(l.part, piece...)
		long := len(l.part) > lineBytesMax
		if !long && !bytes.HasSuffix(piece, []byte("\n")) {
			continue
		}
		s := said{strings.TrimRight(string(l.part), "\r\n"), long}
		l.part = l.part[:0]
		if err := l.each(s); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
