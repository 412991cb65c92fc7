package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobledger/ledger"
)

const (
	stepsShown = 24                    // in the result of a scenario that failed
	busyMax    = 50                    // answers busy to one request before it is a fault
	busyWait   = 20 * time.Millisecond // after each
)

// stage is where a scenario is played: a directory, and the processes that work in it.
type stage struct {
	ctx     context.Context // of the whole run
	checker *checker
	dir     string
	players int    // how many processes take turns in a script
	mode    string // the present one
	rounds  int    // to play in it, where a scenario is played in rounds
	round   int    // the present one, of all modes; it is part of the names of owners, jobs and keys

	cast     []*process
	launched int

	mutex sync.Mutex
	steps []Step // of this round
}

func (c *checker) newStage(ctx context.Context, name string) (*stage, error) {
	s := &stage{ctx: ctx, checker: c, dir: filepath.Join(c.dir, name), players: 2}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("check: scratch directory: %w", err)
	}
	return s, nil
}

// enter has n processes take part: it starts those that are missing and waits until they are ready.
func (s *stage) enter(n int) error {
	before := len(s.cast)
	for len(s.cast) < n {
		s.launched++
		p, err := launch(s.ctx, s.checker.Command, s.dir, s.launched)
		if err != nil {
			return err
		}
		s.cast = append(s.cast, p)
	}
	for _, p := range s.cast[before:] {
		answer, err := p.ask(s.ctx, helloRequest, s.checker.Timeout)
		if err == nil {
			p.abilities, err = parseHello(answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// killAll kills all processes at once, as a power cut does to a machine's.
func (s *stage) killAll() {
	for _, p := range s.cast {
		p.kill()
	}
	s.cast = nil
}

// close ends the processes. The directory is deleted with the checker's own.
func (s *stage) close() {
	var wait sync.WaitGroup
	for _, p := range s.cast {
		wait.Go(func() { p.stop(graceMax) })
	}
	wait.Wait()
}

// repeat plays rounds, each with names of its own.
func (s *stage) repeat(play func() error) error {
	for range s.rounds {
		s.nextRound()
		if err := play(); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) nextRound() {
	s.round++
	s.steps = nil
}

// secondsPerRound is how far the clock of a round is ahead of the one before.
const secondsPerRound = 1000

// say completes a request or an expected answer. The names in it get the round's number, so that no round
// meets what another left; @N is the second N of the round; MODE is the mode; HELDN is N in mode hold and
// 0 in mode charge.
func (s *stage) say(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		seconds, isTime := strings.CutPrefix(word, "@")
		held, isHeld := strings.CutPrefix(word, "HELD")
		switch {
		case isTime:
			n, _ := strconv.Atoi(seconds) // the scripts are constants
			words[i] = strconv.Itoa(s.round*secondsPerRound + n)
		case isHeld && s.mode == string(ledger.ModeHold):
			words[i] = held
		case isHeld:
			words[i] = "0"
		case word == "MODE":
			words[i] = s.mode
		case isName.MatchString(word):
			words[i] += "." + strconv.Itoa(s.round)
		}
	}
	return strings.Join(words, " ")
}

var isName = regexp.MustCompile(`^(ann|bob|job-\w+|key-\w+)$`)

// ask has a process of the cast answer a request. While it says busy, it is asked again.
func (s *stage) ask(i int, request string) (answer string, err error) {
	request = s.say(request)
	for range busyMax {
		answer, err = s.cast[i].ask(s.ctx, request, s.checker.Timeout)
		s.keep(s.cast[i], request, answer)
		if err != nil || !fits(answer, busyWord) {
			return answer, err
		}
		time.Sleep(busyWait)
	}
	return answer, faultf("process %d answered %s with busy %d times", s.cast[i].number, quote(request), busyMax)
}

func (s *stage) keep(p *process, request, answer string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.steps = append(s.steps, Step{p.number, request, answer})
}

func (s *stage) lastSteps() []Step { return s.steps[max(0, len(s.steps)-stepsShown):] }

// compare finds fault with an answer that is not the expected one. why, if there is one, tells the author
// of the program what is at stake.
func compare(request, answer, expected, why string) error {
	if fits(answer, expected) {
		return nil
	}
	if why != "" {
		why = ": " + why
	}
	return faultf("%s was answered %s, expected %s%s", quote(request), quote(answer), either(expected), why)
}

// reply is what one request of several that were sent at once was answered.
type reply struct{ request, answer string }

// atOnce releases one process per list of requests at the same moment. Each sends its own, the next
// when the one before is answered.
func (s *stage) atOnce(requests [][]string) ([]reply, error) {
	if err := s.enter(len(requests)); err != nil {
		return nil, err
	}
	release, errs := make(chan struct{}), make([]error, len(requests))
	replies := make([][]reply, len(requests))
	var wait sync.WaitGroup
	for i, list := range requests {
		wait.Go(func() {
			<-release
			for _, request := range list {
				answer, err := s.ask(i, request)
				if err != nil {
					errs[i] = err
					return
				}
				replies[i] = append(replies[i], reply{request, answer})
			}
		})
	}
	close(release)
	wait.Wait()
	return slices.Concat(replies...), worst(errs...)
}

// worst gives the one error of several that says most: any that is no fault of the program, else the
// faults together, or nil.
func worst(errs ...error) error {
	all := &fault{}
	for _, err := range errs {
		f, ok := errors.AsType[*fault](err)
		switch {
		case err == nil:
		case !ok:
			return err
		case all.text == "":
			*all = *f
		case !strings.Contains(all.text, f.text):
			all.text += "; " + f.text
		}
	}
	if all.text == "" {
		return nil
	}
	return all
}
