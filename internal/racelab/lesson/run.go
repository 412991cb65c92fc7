package lesson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/internal/racelab/scratch"
	"jobledger/internal/racelab/timeline"
	"jobledger/ledger"
)

// runMax bounds a run: a lesson takes a fraction of a second.
const runMax = 30 * time.Second

// Options say how to play a lesson.
type Options struct {
	Fixed bool // the fixed version; else the wrong one

	// Server is the URL of a PostgreSQL server, on which a scratch database is made and dropped; what is
	// in the database that the URL names is not looked at. Empty: a scratch file of SQLite.
	Server string
}

// Number is the answer to a lesson's question.
type Number struct {
	Name  string `json:"name"`
	Value int64  `json:"value"` // what the database says in the end
	Want  int64  `json:"want"`  // what is right
	OK    bool   `json:"ok"`
}

// Result is what a lesson showed. Its JSON form is a contract. It has no ids, times or names of files:
// the same lesson on the same engine gives the same result.
type Result struct {
	Lesson   string            `json:"lesson"`
	Fixed    bool              `json:"fixed"`
	Engine   string            `json:"engine"`
	Shows    string            `json:"shows"`
	Timeline timeline.Timeline `json:"timeline"`
	Numbers  []Number          `json:"numbers"`
	Guard    string            `json:"guard"`
	Function string            `json:"function"`
}

// Run plays a lesson in a scratch database, which it removes, also when it fails or ctx ends.
//
// Errors: INVALID if the lesson cannot be shown on that engine, or Server is no PostgreSQL server that
// can be used; INCONSISTENT, with the result, if the wrong version ended with every number right or the
// fixed one with a number wrong; INTERNAL; that of ctx if it ended.
func (l *Lesson) Run(ctx context.Context, o Options) (r Result, err error) {
	e, err := l.engine(o.Server)
	if err != nil {
		return Result{}, err
	}
	bounded, stop := context.WithTimeoutCause(ctx, runMax, fmt.Errorf("it did not end within %s", runMax))
	defer stop()
	s, err := makeDatabase(bounded, e, o.Server)
	if err == nil {
		r, err = l.play(bounded, s, o.Fixed)
		err = cmp.Or(err, s.close())
	}
	if err != nil {
		return Result{}, l.ended(ctx, bounded, err)
	}
	return r, r.verdict()
}

// engine finds the engine that a server has, and whether the lesson is about it.
func (l *Lesson) engine(server string) (*engine, error) {
	e := &sqliteEngine
	if scratch.IsServer(server) {
		e = &postgresEngine
	}
	if !slices.Contains(l.Engines, e.name) {
		return nil, ledger.InvalidField("db", "%s is about %s: leave --db out",
			l.Name, strings.Join(l.Engines, ", "))
	}
	return e, nil
}

// ended words the error of a run: the end of ctx comes before what it caused.
func (l *Lesson) ended(ctx, bounded context.Context, err error) error {
	if _, ok := errors.AsType[*ledger.Error](err); ok {
		return err
	}
	if ctx.Err() == nil && bounded.Err() != nil {
		err = context.Cause(bounded)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the lesson was stopped before its end: %w", ctx.Err())
	}
	return fmt.Errorf("lesson %s: %w", l.Name, err)
}

// result is what is known before the lesson is played.
func (l *Lesson) result(e *engine, fixed bool) Result {
	version, command := "wrong", "jobledger lab run "+l.Name
	if fixed {
		version, command = "fixed", command+" --fixed"
	}
	if e.name == Postgres {
		command += " --db postgres://..."
	}
	description := l.Shows
	if fixed {
		description = l.Guard
	}
	return Result{
		Lesson: l.Name, Fixed: fixed, Engine: e.name, Shows: l.Shows, Guard: l.Guard, Function: l.Function,
		Timeline: timeline.Timeline{
			Title:       fmt.Sprintf("%s, %s version: %s", l.Name, version, l.Title),
			Description: description,
			Caption:     command,
			Lanes:       l.Actors,
			Unit:        timeline.Steps,
			Number:      timeline.Series{Name: l.Questions[0].Name, Want: new(l.Questions[0].Want)},
		},
	}
}

// play plays one version in a scratch database that is still empty, and asks the questions in the end.
func (l *Lesson) play(ctx context.Context, s *database, fixed bool) (Result, error) {
	script := l.Wrong
	if fixed {
		script = l.Fixed
	}
	steps, err := parse(l.Actors, script)
	if err != nil {
		return Result{}, err
	}
	if _, err := s.pool.ExecContext(ctx, l.Tables); err != nil {
		return Result{}, fmt.Errorf("make the tables: %w", err)
	}
	r := l.result(s.engine, fixed)
	if err := s.perform(ctx, &r.Timeline, l.Questions[0].Query, steps); err != nil {
		return Result{}, err
	}
	for _, q := range l.Questions {
		value, err := s.observer.number(ctx, q.Query)
		if err != nil {
			return Result{}, err
		}
		r.Numbers = append(r.Numbers, Number{q.Name, value, q.Want, value == q.Want})
	}
	return r, nil
}

// verdict is INCONSISTENT if the lesson did not show what it is for.
func (r *Result) verdict() error {
	wrong := slices.IndexFunc(r.Numbers, func(n Number) bool { return !n.OK })
	if r.Fixed == (wrong < 0) {
		return nil
	}
	message := "the wrong version ended with every number right: something here protects from the mistake"
	if r.Fixed {
		n := r.Numbers[wrong]
		message = fmt.Sprintf("the fixed version ended with %s %d, and %d is right", n.Name, n.Value, n.Want)
	}
	return &ledger.Error{Code: ledger.Inconsistent, Message: r.Timeline.Title + ": " + message}
}
