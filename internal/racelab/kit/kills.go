package kit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The scenarios in which a process is killed while it works through some requests. It gets them all at
// once: a process that had to wait for each would mostly be killed while it waits.

const (
	killJobs = 8   // requests per kill, each for a job of 7 credits
	killNear = 1.2 // the moment of the kill moves by this factor, so that it stays amid the requests
)

// killing is what happens in each round: a process does what prepares the requests, is sent them, and is
// killed. A new one is asked for the balance, and then the requests that were not answered.
type killing struct {
	prepare string                // a script
	request string                // JOB is the job
	answer  string                // to it
	again   string                // to it, when it was done before
	balance func(done int) string // after so many of the requests
	finally string                // a script that must hold in the end
}

var killedNotify = &killing{
	prepare: "grant ann 56 key-1 -> ok\n" + perJob("create JOB ann 7 MODE -> ok"),
	request: "notify JOB failed", answer: "won failed", again: "lost failed",
	balance: func(done int) string { return fmt.Sprintf("ok %d HELD%d", 7*done, 56-7*done) },
	finally: "balance ann -> ok 56 0 -- the cost of each job, once",
}

var killedCreate = &killing{
	prepare: "grant ann 56 key-1 -> ok",
	request: "create JOB ann 7 MODE", answer: "ok", again: "ok|refused",
	balance: func(done int) string { return fmt.Sprintf("ok %d HELD%d", 56-7*done, 7*done) },
	finally: perJob("notify JOB failed -> won failed -- it was created, in the end") +
		"balance ann -> ok 56 0 -- each job was paid once",
}

// perJob repeats a line for each job.
func perJob(line string) string {
	var b strings.Builder
	for i := range killJobs {
		b.WriteString(strings.ReplaceAll(line, "JOB", "job-"+strconv.Itoa(i+1)) + "\n")
	}
	return b.String()
}

// play plays the rounds, after one without a kill that tells how long the requests take.
func (k *killing) play(s *stage) error {
	s.players = 1
	s.nextRound()
	if err := s.play(k.prepare); err != nil {
		return err
	}
	began := time.Now()
	requests, err := s.sendAll(k)
	if err == nil {
		_, err = s.hear(requests, k.answer)
	}
	if err != nil {
		return err
	}
	middle := float64(time.Since(began)) / 2
	return s.repeat(func() error {
		if err := s.play(k.prepare); err != nil {
			return err
		}
		victim := s.cast[0].number
		left, err := s.untilKilled(k, time.Duration(2*middle*rand.Float64()))
		if err != nil {
			return err
		}
		if len(left) > killJobs/2 {
			middle *= killNear
		} else {
			middle /= killNear
		}
		return worst(s.checkKilled(k, victim, left), s.play(k.finally))
	})
}

// sendAll has a process begin to work, without waiting for its answers.
func (s *stage) sendAll(k *killing) (requests []string, err error) {
	for line := range strings.Lines(perJob(k.request)) {
		requests = append(requests, s.say(line))
	}
	return requests, s.cast[0].send(strings.Join(requests, "\n"))
}

// untilKilled has a process work, kills it after a while, and starts a new one. It gives the requests that
// were left without an answer.
func (s *stage) untilKilled(k *killing, after time.Duration) (left []string, err error) {
	requests, err := s.sendAll(k)
	if err != nil {
		return nil, err
	}
	s.pause(after) // to listen meanwhile would be to wake up, and to kill, just when an answer has come
	_ = s.cast[0].killAll()
	left, err = s.hear(requests, k.answer)
	s.cast[0].kill()
	s.cast = nil
	if f, ok := errors.AsType[*fault](err); ok && f.ended {
		err = nil
	}
	if err == nil {
		err = s.enter(1)
	}
	return left, err
}

// pause waits, precisely in the end.
func (s *stage) pause(span time.Duration) {
	const fine = 2 * time.Millisecond
	end := time.Now().Add(span)
	select {
	case <-time.After(span - fine):
		sleep(time.Until(end))
	case <-s.ctx.Done():
	}
}

// hear takes the answers to requests that were sent, and gives those requests that got none, or busy.
func (s *stage) hear(requests []string, expected string) (left []string, err error) {
	p := s.cast[0]
	for i, request := range requests {
		answer, err := p.await(s.ctx, request, s.checker.Timeout)
		s.keep(p, request, answer)
		if err != nil {
			return append(left, requests[i:]...), err
		}
		if fits(answer, busyWord) {
			left = append(left, request)
		} else if err := compare(request, answer, expected, ""); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// checkKilled asks a new process. Of the requests without an answer some may have been done: as many as
// the balance shows.
func (s *stage) checkKilled(k *killing, victim int, left []string) error {
	balance, err := s.ask(0, "balance ann")
	if err != nil {
		return err
	}
	var replies []reply
	for _, request := range left {
		answer, err := s.ask(0, request)
		if err != nil {
			return err
		}
		replies = append(replies, reply{request, answer})
	}
	answered := killJobs - len(left)
	killed := fmt.Sprintf("process %d was killed when it had answered %d of %d requests; "+
		"the next process says that the balance is %s", victim, answered, killJobs, quote(balance))
	done := answered
	for !fits(balance, s.say(k.balance(done))) {
		if done++; done > killJobs {
			return faultf("%s; expected %s to %s, in steps of 7", killed, quote(s.say(k.balance(answered))),
				quote(s.say(k.balance(killJobs))))
		}
	}
	silently, undone := done-answered, killJobs-done
	if count(replies, k.again) >= silently && count(replies, k.answer) >= undone {
		return nil
	}
	return faultf("%s, so %d of the others were done; asked again, they were answered %s, "+
		"expected %s %s, %s %s: something was done in part",
		killed, silently, tally(replies), either(k.again), times(silently), quote(k.answer), times(undone))
}

// count tells how many replies are as expected.
func count(replies []reply, expected string) (n int) {
	for _, r := range replies {
		if fits(r.answer, expected) {
			n++
		}
	}
	return n
}
