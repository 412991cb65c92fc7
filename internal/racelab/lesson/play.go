package lesson

import (
	"context"
	"fmt"

	"jobledger/internal/racelab/timeline"
)

// actor is one program of a lesson.
type actor struct {
	lane    int
	session *session
	knows   values
	ended   bool // it crashed, was refused, or found that there is nothing for it to do
	failed  bool // it crashed or was refused
}

// player is the scheduler: it gives every step of a script its turn.
type player struct {
	database *database
	watched  string // the query of the number that the lesson is about
	actors   []*actor
	waiting  *waiting // nil: nobody waits
	record   *timeline.Timeline
	at       int64 // the number of the last step
}

// waiting is an actor that needs a lock which another one has.
type waiting struct {
	actor *actor
	with  step // the statement that needs the lock
	event int  // the place in the record of what shows it waiting
	later []step
}

// perform gives every lane of the record an actor with a connection of its own, and plays a script with
// them. watched is the query of the number that the record shows.
func (s *database) perform(
	ctx context.Context, record *timeline.Timeline, watched string, script []step,
) error {
	ctx, stop := context.WithCancel(ctx)
	p := player{database: s, watched: watched, record: record}
	defer func() {
		stop() // what still waits for an answer gives up
		for _, a := range p.actors {
			a.session.drop()
		}
	}()
	for lane := range record.Lanes {
		session, err := s.connect(ctx)
		if err != nil {
			return err
		}
		p.actors = append(p.actors, &actor{lane: lane, session: session, knows: values{}})
	}
	return p.play(ctx, script)
}

// play runs the steps in the written order. What an actor has to do while it waits for a lock, it does
// as soon as it has the lock. Only one may wait at a time: of two, it would not be certain who goes first.
func (p *player) play(ctx context.Context, script []step) error {
	if err := p.watch(ctx); err != nil {
		return err
	}
	for _, s := range script {
		if err := p.turn(ctx, p.actors[s.lane], s); err != nil {
			return err
		}
		if err := p.wake(ctx); err != nil {
			return err
		}
	}
	if p.waiting != nil {
		return fmt.Errorf("%s waits for ever at %s", p.name(p.waiting.actor), p.waiting.with.text)
	}
	return nil
}

func (p *player) name(a *actor) string { return p.record.Lanes[a.lane] }

// turn lets an actor do one step, if it still can.
func (p *player) turn(ctx context.Context, a *actor, s step) error {
	switch {
	case a.ended:
		return nil
	case p.waits(a):
		p.waiting.later = append(p.waiting.later, s)
		return nil
	}
	if s.text == "BEGIN" {
		s.text = p.database.engine.begin
	}
	p.at++
	switch s.verb {
	case sets:
		a.knows[s.into[0]] = a.knows.of(s.text)
		p.bar(a, timeline.Write, "sets "+s.into[0]+" = "+s.text, s.into[0]+" = "+s.text+", in its own memory")
	case says:
		p.bar(a, timeline.Call, s.text, "says: "+s.text)
	case checks:
		return p.check(ctx, a, s)
	case crashes:
		return p.crash(ctx, a)
	default:
		return p.ask(ctx, a, s)
	}
	return nil
}

func (p *player) waits(a *actor) bool { return p.waiting != nil && p.waiting.actor == a }

// wake lets the one who waits go on, if it can now.
func (p *player) wake(ctx context.Context) error {
	w := p.waiting
	if w == nil {
		return nil
	}
	if err := p.ask(ctx, w.actor, w.with); err != nil || p.waits(w.actor) {
		return err
	}
	for _, s := range w.later {
		if err := p.turn(ctx, w.actor, s); err != nil {
			return err
		}
	}
	return nil
}

// ask puts a statement to the database: a new one, or again the one that the actor waits with.
func (p *player) ask(ctx context.Context, a *actor, s step) error {
	answer, waits := p.database.engine.attempt(ctx, a.session, query{s.verb, s.text, a.knows.args(s)})
	err := answer.err
	switch {
	case waits && p.waits(a):
		return nil
	case waits && p.waiting != nil:
		err = fmt.Errorf("it would wait, and %s waits already", p.name(p.waiting.actor))
	case waits:
		p.waiting = &waiting{actor: a, with: s, event: len(p.record.Events)}
		p.bar(a, timeline.Wait, "waits", a.knows.fill(s)+"\nwaits for the lock")
		return nil
	case p.waits(a):
		p.at++
		p.record.Events[p.waiting.event].End = p.at
		p.waiting = nil
	}
	if err == nil {
		err = p.accept(ctx, a, s, answer)
	} else {
		err = p.refuse(ctx, a, s, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", p.name(a), s.text, err)
	}
	return nil
}

func (p *player) bar(a *actor, k timeline.Kind, label, detail string) {
	p.event(timeline.Event{Lane: a.lane, Start: p.at, End: p.at + 1, Kind: k, Label: label, Detail: detail})
}

func (p *player) mark(a *actor, k timeline.Kind, label, detail string) {
	p.event(timeline.Event{Lane: a.lane, Start: p.at, End: p.at, Kind: k, Label: label, Detail: detail})
}

func (p *player) event(e timeline.Event) { p.record.Events = append(p.record.Events, e) }

// watch notes the number that the lesson is about: at the beginning, and at every commit, since one that
// leaves the number as it was may be what the lesson shows.
func (p *player) watch(ctx context.Context) error {
	n, err := p.database.observer.number(ctx, p.watched)
	if err != nil {
		return err
	}
	points := &p.record.Number.Points
	*points = append(*points, timeline.Point{At: p.at, Value: n})
	return nil
}
