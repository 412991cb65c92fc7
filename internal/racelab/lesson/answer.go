package lesson

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"jobledger/internal/racelab/timeline"
)

// accept takes the answer to a statement that did what it says.
func (p *player) accept(ctx context.Context, a *actor, s step, given answer) error {
	switch s.verb {
	case begins:
		a.session.open = true
		p.mark(a, timeline.Begin, s.text, s.text)
	case commits:
		a.session.open = false
		p.mark(a, timeline.Commit, s.text, s.text)
		return p.watch(ctx)
	case rollsBack:
		a.session.open = false
		p.mark(a, timeline.Rollback, s.text, s.text)
	case reads:
		if len(given.row) != len(s.into) {
			return fmt.Errorf("gave %d numbers for %s", len(given.row), strings.Join(s.into, ", "))
		}
		for i, name := range s.into {
			a.knows[name] = given.row[i]
		}
		found := strings.ReplaceAll(strings.Trim(fmt.Sprint(given.row), "[]"), " ", ", ")
		p.bar(a, timeline.Read, "reads "+found, a.knows.fill(s)+"\n-> "+found)
	case writes:
		return p.wrote(ctx, a, s, given.rows)
	}
	return nil
}

// wrote takes the answer to a write. What it changed outside a transaction is committed.
func (p *player) wrote(ctx context.Context, a *actor, s step, rows int64) error {
	a.knows["rows"] = rows
	text := a.knows.fill(s)
	detail, committed := text+"\n-> "+rowsOf(rows), rows > 0 && !a.session.open
	if committed {
		detail += ", committed"
	}
	p.bar(a, timeline.Write, p.brief(text, rows), detail)
	if !committed {
		return nil
	}
	return p.watch(ctx)
}

// brief is a write in a few words: what it made of the number that is watched, or its verb and table and
// how many rows it changed.
func (p *player) brief(text string, rows int64) string {
	set, _, _ := strings.Cut(text, "\nWHERE ")
	column := p.record.Number.Name + " = "
	if _, value, found := strings.Cut(set, " "+column); found && rows > 0 {
		value, _, _ = strings.Cut(value, ",")
		return column + value
	}
	words := strings.Fields(text)
	table := slices.IndexFunc(words[1:], func(w string) bool { return w != "INTO" })
	return words[0] + " " + words[1+table] + ", " + rowsOf(rows)
}

func rowsOf(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// refuse takes the answer no. Errors that are none stop the lesson.
func (p *player) refuse(ctx context.Context, a *actor, s step, err error) error {
	words := p.database.engine.refusal(err)
	if words == "" {
		return err
	}
	detail := a.knows.fill(s) + "\n-> refused: " + words
	if s.unseen {
		detail += ", and nobody looks"
	}
	verb, _, _ := strings.Cut(s.text, " ")
	p.mark(a, timeline.Refused, verb+": "+words, detail)
	if s.verb == commits { // not every engine ends what it could not commit
		if err := p.rollBack(ctx, a); err != nil {
			return err
		}
	}
	if s.unseen {
		return nil
	}
	a.failed = true
	return p.stop(ctx, a)
}

// check decides whether an actor goes on.
func (p *player) check(ctx context.Context, a *actor, s step) error {
	yes, because := false, ""
	if s.test.operator == failed {
		other := slices.Index(p.record.Lanes, s.test.left)
		yes = p.actors[other].failed
	} else {
		yes = a.knows.holds(s.test)
		because = fmt.Sprintf(", it is %d", a.knows.of(s.test.left))
	}
	if yes {
		p.bar(a, timeline.Read, s.text+": yes", s.text+"? yes"+because)
		return nil
	}
	p.mark(a, timeline.Refused, s.text+": no", s.text+"? no"+because+": it stops")
	return p.stop(ctx, a)
}

// stop ends an actor as its program does: what it has open is rolled back.
func (p *player) stop(ctx context.Context, a *actor) error {
	a.ended = true
	if !a.session.open {
		return nil
	}
	return p.rollBack(ctx, a)
}

// rollBack is a step that stands in no script.
func (p *player) rollBack(ctx context.Context, a *actor) error {
	p.at++
	return p.ask(ctx, a, step{lane: a.lane, verb: rollsBack, text: "ROLLBACK"})
}

// crash ends an actor without a word to the database.
func (p *player) crash(ctx context.Context, a *actor) error {
	detail := "CRASH: its connection is gone"
	if a.session.open {
		detail += ", and its transaction with it"
	}
	p.mark(a, timeline.Crash, "CRASH", detail)
	a.ended, a.failed = true, true
	a.session.drop()
	return p.database.engine.gone(ctx, a.session)
}
