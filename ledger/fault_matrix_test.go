package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// Every statement of every write operation goes wrong in every way: the state is that of before or
// that of after, and which of them is known; the neighbours in the same commit are untouched; and the same
// calls again, on the same handle, finish.
func TestFaultAtEveryStatement(t *testing.T) {
	c := dbtest.StartCampaign(t, "T03", 1)
	t.Cleanup(func() { c.All(c.Tried()) }) // every one that there is has to fire
	for _, o := range slices.Concat(faultOperations, faultServerOperations) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, dsn string) {
				newMatrix(t, faultStart(t, dsn), o.run, o.code).tryAll(t, c)
			})
		})
	}
}

// tryAll tries every statement, in every way or, where a trial takes long, in one.
func (m *matrix) tryAll(t *testing.T, c *dbtest.Campaign) {
	t.Helper()
	planned, fired, least, part := 0, 0, 8, 1
	switch {
	case m.alone:
		least, part = 1, len(faults)
	case testing.Short():
		least, part = 2, 4
	}
	for target, query := range m.statements {
		for i := range faults {
			if faults[i].panics && isControl(query) || faults[i].side == db.After && !m.answered[target] {
				continue
			}
			if (target+i)%part != 0 {
				continue
			}
			planned++
			done := m.try(t, &faults[i], target)
			if c.Done(done); done {
				fired++
			}
		}
	}
	// Of two statements at least so many trials, and an operation has a statement of its own beside those
	// that begin and end it.
	if fired != planned || 2*fired < least*len(m.statements) || len(m.statements) < 4 {
		t.Errorf("%d of %d faults fired, at %d statements", fired, planned, len(m.statements))
	}
}

// matrix is what one operation does when nothing goes wrong, to compare with.
type matrix struct {
	from       *filled
	alone      bool // each operation is a transaction of its own
	run        operation
	code       ledger.Code
	again      ledger.Code // what the operation answers when it is repeated
	statements []string
	answered   []bool
	known      map[string]bool // the ids at the start

	none, neighbours, all, twice []string // dumps: of nobody's writes, the neighbours' alone, everybody's
}

func newMatrix(t *testing.T, from *filled, run operation, code ledger.Code) *matrix {
	t.Helper()
	m := &matrix{from: from, run: run, code: code, known: map[string]bool{}}
	r := newTrial(t, from, nil, 0)
	m.alone = r.alone
	for _, line := range faultDump(t, r.dsn, nil) {
		for _, id := range idPattern.FindAllString(line, -1) {
			m.known[id] = true
		}
	}
	m.none = faultDump(t, r.dsn, m.known)
	m.wantCodes(t, r.batch(neighbourBefore, run, neighbourAfter), "", code, "")
	m.statements, m.answered = r.statements, r.answered
	m.all = faultDump(t, r.dsn, m.known)
	m.again = codeOrNone(run(context.Background(), r.l))
	m.twice = faultDump(t, r.dsn, m.known)
	r.close()

	r = newTrial(t, from, nil, 0)
	defer r.close()
	m.wantCodes(t, r.batch(neighbourBefore, neighbourAfter), "", "")
	m.neighbours = faultDump(t, r.dsn, m.known)
	if slices.Equal(m.none, m.neighbours) || (code == "" && slices.Equal(m.neighbours, m.all)) {
		t.Fatal("the operation changes nothing")
	}
	return m
}

func codeOrNone(err error) ledger.Code {
	if err == nil {
		return ""
	}
	return ledger.CodeOf(err)
}

func (m *matrix) wantCodes(t *testing.T, errs []error, codes ...ledger.Code) {
	t.Helper()
	for i, err := range errs {
		if codeOrNone(err) != codes[i] {
			t.Errorf("operation %d: %v, want code %q", i, err, codes[i])
		}
	}
}

// try lets one statement go wrong on a fresh copy, and checks the answers, the state, and the same
// calls again. It reports whether the fault fired.
func (m *matrix) try(t *testing.T, f *fault, target int) (fired bool) {
	t.Helper()
	r := newTrial(t, m.from, f, target)
	defer r.close()
	query := m.statements[target]
	label := fmt.Sprintf("%s, statement %d (%.40s)", f.name, target, strings.Join(strings.Fields(query), " "))
	errs := r.batch(neighbourBefore, m.run, neighbourAfter)
	state, answers := m.expect(f, query)
	for i, err := range errs {
		if !answers[i](err) {
			t.Errorf("%s: operation %d is answered with %v", label, i, err)
		}
	}
	wantDump(t, label, faultDump(t, r.dsn, m.known), state)

	applied := slices.Equal(state, m.all)
	final, code := m.all, m.code
	if applied {
		final, code = m.twice, m.again
	}
	again := []error{}
	for _, o := range []operation{neighbourBefore, m.run, neighbourAfter} {
		again = append(again, o(context.Background(), r.l))
	}
	m.wantCodes(t, again, "", code, "")
	wantDump(t, label+", the same again", faultDump(t, r.dsn, m.known), final)
	return r.fired
}

// expect gives the state after a fault, and what the three operations may be told.
func (m *matrix) expect(f *fault, query string) (state []string, answers [3]func(error) bool) {
	done := func(err error) bool { return err == nil }
	own := func(err error) bool { return codeOrNone(err) == m.code }
	unknown := func(err error) bool { return ledger.CodeOf(err) == ledger.OutcomeUnknown }
	injected := func(err error) bool { return errors.Is(err, errInjected) }
	refused := m.code != "" && slices.Equal(m.neighbours, m.all)
	lost, beside := m.none, func(answer func(error) bool) func(error) bool { return answer }
	if m.alone {
		lost, beside = m.neighbours, func(func(error) bool) func(error) bool { return done }
	}
	beginning := strings.HasPrefix(query, "BEGIN") || strings.HasPrefix(query, "SELECT MAX(version)")
	switch {
	case f.cancels && beginning:
		return m.neighbours, [3]func(error) bool{done, func(err error) bool {
			return errors.Is(err, context.Canceled) && ledger.CodeOf(err) == ledger.Busy
		}, done}
	case f.cancels:
		return m.all, [3]func(error) bool{done, unknown, done}
	case query == "COMMIT" && refused:
		state, answers = m.none, [3]func(error) bool{unknown, own, unknown}
	case query == "COMMIT":
		state, answers = lost, [3]func(error) bool{beside(unknown), unknown, beside(unknown)}
	case beginning:
		return lost, [3]func(error) bool{beside(injected), injected, beside(injected)}
	case f.panics:
		return m.neighbours, [3]func(error) bool{done, func(err error) bool {
			p, ok := errors.AsType[*db.PanicError](err)
			return ok && p.Value == "injected"
		}, done}
	case strings.HasPrefix(query, "ROLLBACK"), refused && strings.HasPrefix(query, "RELEASE"):
		return m.neighbours, [3]func(error) bool{done, own, done}
	default:
		return m.neighbours, [3]func(error) bool{done, injected, done}
	}
	if f.side == db.After {
		state = m.all
	}
	return state, answers
}

func wantDump(t *testing.T, label string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(got, s) })
	extra := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return slices.Contains(want, s) })
	t.Errorf("%s: wrong state\n missing %s\n too much %s", label,
		strings.Join(missing, "\n         "), strings.Join(extra, "\n          "))
}
