package kit

import "strings"

// A script is a scenario as text. Its lines are
//
//	request -> expected -- why     ask, and compare the answer; why is for the report
//	kill                           kill all processes
//
// The lines are sent by two processes in turn, so that one does not know what the other only
// remembers. A kill replaces them by new ones.

// play plays a script to its end even if an answer is wrong: what that does to the balance comes last. The
// fault tells of the first and the last wrong answer.
func (s *stage) play(script string) error {
	var wrong []error
	turn := 0
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "kill" {
			s.killAll()
			continue
		}
		request, expected, asks := strings.Cut(line, " -> ")
		if !asks {
			continue
		}
		expected, why, _ := strings.Cut(expected, " -- ")
		if err := s.enter(s.players); err != nil {
			return err
		}
		answer, err := s.ask(turn%s.players, request)
		if err != nil {
			return worst(append(wrong, err)...)
		}
		if err := compare(s.say(request), answer, s.say(expected), why); err != nil {
			wrong = append(wrong, err)
		}
		turn++
	}
	if len(wrong) == 0 {
		return nil
	}
	return worst(wrong[0], wrong[len(wrong)-1])
}
