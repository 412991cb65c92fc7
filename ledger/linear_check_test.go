package ledger_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"jobledger/ledger"
)

// linearBound is how long one history is thought about. To come to no verdict is to fail.
const linearBound = 30 * time.Second

// check shows a history that is not linearizable, or of which nobody knows.
func (h *history) check(name string) {
	h.Helper()
	history := prepared(h.told)
	got := porcupine.CheckOperationsTimeout(linearModel, history, linearBound)
	if got == porcupine.Ok {
		return
	}
	_, info := porcupine.CheckOperationsVerbose(linearModel, history, linearBound)
	file, err := os.CreateTemp("", "jobledger-history-*.html")
	h.ok(err)
	defer file.Close()
	h.ok(porcupine.Visualize(linearModel, info, file))
	h.Fatalf("%s: %s: see %s", name, got, file.Name())
}

// prepared is a history as the checker gets it. The operations of unknown outcome return after all others.
// What a sweep cannot have done is left out, for there is no end to thinking about when it was not done.
func prepared(told []porcupine.Operation) (history []porcupine.Operation) {
	last := int64(0)
	created := map[linearCall]int64{} // when a job was first asked for
	for _, o := range told {
		last = max(last, o.Return+1)
		if c := o.Input.(linearCall); c.kind == "create" {
			job := linearCall{kind: "time out", owner: c.owner, number: c.number}
			if first, known := created[job]; !known || o.Call < first {
				created[job] = o.Call
			}
		}
	}
	for _, o := range told {
		c, answer := o.Input.(linearCall), o.Output.(linearAnswer)
		if answer.unknown {
			o.Return = last
		}
		first, known := created[c]
		idle := c.kind == "time out" && (!known || first > o.Return) ||
			c.kind == "expire" && !slices.Contains(answer.late, true)
		if !idle {
			history = append(history, o)
		}
	}
	return history
}

// linearSum is what the histories of an engine had in them.
type linearSum struct {
	mutex   sync.Mutex
	answers map[string]int                // by word
	spoiled map[porcupine.CheckResult]int // verdicts on histories with a wrong answer
}

func newLinearSum() *linearSum {
	return &linearSum{answers: map[string]int{}, spoiled: map[porcupine.CheckResult]int{}}
}

func (s *linearSum) add(h *history) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answers["histories"]++
	s.answers["left"] += h.left
	for _, o := range h.told {
		answer := o.Output.(linearAnswer)
		if answer.unknown {
			s.answers["unknown"]++
			continue
		}
		for _, word := range strings.Fields(answer.text) {
			if strings.Trim(word, "0123456789") != "" {
				s.answers[word]++
			}
		}
	}
	if len(s.spoiled) == 0 || h.random.IntN(10) == 0 {
		h.spoil()
		s.spoiled[porcupine.CheckOperationsTimeout(linearModel, prepared(h.told), time.Second)]++
	}
}

// spoil changes one answer of the history by one credit.
func (h *history) spoil() {
	for {
		o := &h.told[h.random.IntN(len(h.told))]
		answer := o.Output.(linearAnswer)
		digit := strings.LastIndexAny(answer.text, "0123456789")
		if !answer.unknown && digit >= 0 {
			answer.text = answer.text[:digit] + string(answer.text[digit]^1) + answer.text[digit+1:]
			o.Output = answer
			return
		}
	}
}

// check wants that everything happened that can, and that no wrong answer was believed.
func (s *linearSum) check(t *testing.T, engine string) {
	t.Helper()
	if s.answers["histories"] == 0 {
		return // there is no such engine here, as was said
	}
	if s.spoiled[porcupine.Ok] > 0 || s.spoiled[porcupine.Illegal] == 0 {
		t.Errorf("%s: verdicts on wrong answers: %v", engine, s.spoiled)
	}
	for _, want := range []string{"unknown", "left", "true", "false", "won", "duplicate", "conflict",
		"completed", "failed", "canceled", "timed_out", "INSUFFICIENT_CREDITS", "NOT_FOUND", "INVALID"} {
		if s.answers[want] == 0 && s.answers["histories"] >= linearHistories {
			t.Errorf("%s: nobody was told %s", engine, want)
		}
	}
}

// linearStep is a line of a history: when it was called and answered, and what.
type linearStep struct {
	from, to int64
	call     linearCall
	answer   string // empty: nobody knows
}

type linearCase struct {
	want  porcupine.CheckResult
	steps []linearStep
}

// linearCases are histories of a ledger that works, and of ledgers that do not.
func linearCases() map[string]linearCase {
	var (
		grant   = linearCall{kind: "grant", amount: 100}
		lapsing = linearCall{kind: "grant", number: 1, amount: 100, lapsing: true}
		first   = linearCall{kind: "create", number: 0, amount: 100}
		second  = linearCall{kind: "create", number: 1, amount: 100}
		fails   = linearCall{kind: "settle", outcome: ledger.Failed}
		wins    = linearCall{kind: "settle", outcome: ledger.Completed, amount: 100}
		later   = linearCall{kind: "grant", number: 3, amount: 100, lapsing: true}
		sweep   = linearCall{kind: "time out"}
		expire  = linearCall{kind: "expire"}
		balance = linearCall{kind: "balance"}
		job     = linearCall{kind: "job"}
	)
	granted, held := linearStep{1, 2, grant, "false 100 0 0 0"}, "false pending 0 100 0 0"
	return map[string]linearCase{
		"one hold of two": {porcupine.Ok, []linearStep{granted,
			{3, 6, first, held}, {4, 5, second, "INSUFFICIENT_CREDITS 0"}}},
		"two holds of all there is": {porcupine.Illegal, []linearStep{granted,
			{3, 6, first, held}, {4, 5, second, held}}},
		"refused for a hold that comes later": {porcupine.Illegal, []linearStep{granted,
			{3, 4, second, "INSUFFICIENT_CREDITS 0"}, {5, 6, first, held}}},
		"a read beside a hold": {porcupine.Ok, []linearStep{granted,
			{3, 8, first, held}, {4, 5, balance, "100 0 0 0"}, {6, 7, balance, "0 100 0 0"}}},
		"a read that goes back": {porcupine.Illegal, []linearStep{granted,
			{3, 8, first, held}, {4, 5, balance, "0 100 0 0"}, {6, 7, balance, "100 0 0 0"}}},
		"a stale read": {porcupine.Illegal, []linearStep{granted,
			{3, 4, first, held}, {5, 6, balance, "100 0 0 0"}}},
		"a lost grant":  {porcupine.Illegal, []linearStep{granted, {3, 4, balance, "0 0 0 0"}}},
		"a grant twice": {porcupine.Illegal, []linearStep{granted, {3, 4, grant, "false 200 0 0 0"}}},
		"unknown, and done": {porcupine.Ok, []linearStep{granted,
			{3, 4, first, ""}, {5, 6, balance, "0 100 0 0"}}},
		"unknown, and never done": {porcupine.Ok, []linearStep{granted,
			{3, 4, first, ""}, {5, 6, balance, "100 0 0 0"}}},
		"unknown, and done later": {porcupine.Ok, []linearStep{granted,
			{3, 4, first, ""}, {5, 6, balance, "100 0 0 0"}, {7, 8, balance, "0 100 0 0"}}},
		"unknown, and undone": {porcupine.Illegal, []linearStep{granted,
			{3, 4, first, ""}, {5, 6, balance, "0 100 0 0"}, {7, 8, balance, "100 0 0 0"}}},
		"unknown, and seen before it was asked for": {porcupine.Illegal, []linearStep{granted,
			{3, 4, balance, "0 100 0 0"}, {5, 6, first, ""}}},
		"unknown, and done twice": {porcupine.Illegal, []linearStep{granted,
			{3, 4, first, held}, {5, 6, fails, ""}, {7, 8, fails, "won failed 100 0 100 0 0 0"},
			{9, 10, balance, "200 0 0 0"}}},
		"two winners": {porcupine.Illegal, []linearStep{granted, {3, 4, first, held},
			{5, 8, fails, "won failed 100 0 100 0 0 0"}, {6, 7, wins, "won completed 0 100 0 0 100 0"}}},
		"a winner and a conflict": {porcupine.Ok, []linearStep{granted, {3, 4, first, held},
			{5, 8, fails, "conflict completed 0 100 0 0 100 0"}, {6, 7, wins, "won completed 0 100 0 0 100 0"}}},
		"swept": {porcupine.Ok, []linearStep{granted, {3, 4, first, held},
			{5, 6, sweep, "swept"}, {7, 8, job, "timed_out 0"}}},
		"not swept": {porcupine.Illegal, []linearStep{granted, {3, 4, first, held},
			{5, 6, sweep, "swept"}, {7, 8, job, "pending 0"}}},
		"lapsing credits while they last": {porcupine.Ok, []linearStep{
			{1, 2, lapsing, "false 100 0 0 0"}, {3, 4, first, held}}},
		"one lot swept, and one that was made meanwhile": {porcupine.Ok, []linearStep{granted,
			{3, 4, lapsing, "false 200 0 0 0"}, {98, 103, later, "false 300 0 0 0"}, {101, 102, expire, "swept"},
			{99, 104, first, "false pending 100 100 0 100"}}},
		"credits that come back too late": {porcupine.Ok, []linearStep{
			{1, 2, lapsing, "false 100 0 0 0"}, {3, 4, first, held}, {5, 6, later, "false 100 100 0 0"},
			{97, 102, fails, "won failed 100 0 0 0 0 200"}, {98, 99, second, "INSUFFICIENT_CREDITS 0"}}},
		"lapsing credits too late": {porcupine.Illegal, []linearStep{
			{1, 2, lapsing, "false 100 0 0 0"}, {103, 104, first, held}}},
		"lapsing credits at the last moment": {porcupine.Ok, []linearStep{
			{1, 2, lapsing, "false 100 0 0 0"}, {99, 104, first, held}}},
	}
}

func TestLinearModel(t *testing.T) {
	for name, c := range linearCases() {
		var told []porcupine.Operation
		for i, s := range c.steps {
			answer := linearAnswer{s.answer, s.answer == "",
				slices.Compact([]bool{s.from > 100, s.to > 100 || s.answer == ""})}
			told = append(told, porcupine.Operation{
				ClientId: i, Input: s.call, Call: s.from, Output: answer, Return: s.to,
			})
		}
		got := porcupine.CheckOperationsTimeout(linearModel, prepared(told), linearBound)
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
