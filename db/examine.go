package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Level says what a finding asks for.
type Level string

// The levels. What has a warning works, but is weaker than it should be or waits for somebody. With a
// problem nothing can be written, or the data is damaged or a crash may damage it.
const (
	Fine    Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Finding is one thing that was looked at, and how it stands.
type Finding struct {
	Name    string `json:"name"`
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Advice  string `json:"advice"` // what to do; empty if there is nothing to do
}

// Check looks at one thing. Look needs to give no name.
type Check struct {
	Name string
	Look func(*Tx) (Finding, error)
}

// Examine looks at a database and at what it stands on, and changes nothing: an older schema is not
// migrated. It gives one finding per check, first those of the engine. The caller's own checks run on the
// same snapshot, if its schema is the one that this binary knows.
//
// Errors: as of [Open], and of what a check could not look at.
func Examine(ctx context.Context, dsn string, o Options, checks ...Check) (findings []Finding, err error) {
	o.asFound = true
	d, err := Open(ctx, dsn, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	err = d.Read(ctx, func(tx *Tx) error {
		var version int
		if _, err := tx.Get(&version, `SELECT MAX(version) FROM schema_migrations`); err != nil {
			return err
		}
		all := append([]Check{{"schema", func(*Tx) (Finding, error) { return judgeSchema(version), nil }}},
			d.engine.checks(d)...)
		if version == SchemaVersion() {
			all = append(all, checks...)
		}
		findings, err = look(tx, all)
		return err
	})
	return findings, err
}

// look runs checks. What is damaged is found, and no error.
func look(tx *Tx, checks []Check) (findings []Finding, err error) {
	for _, c := range checks {
		f, err := c.Look(tx)
		if errors.Is(err, ErrDamaged) {
			f, err = damaged(err.Error()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("examine %s: %w", c.Name, err)
		}
		f.Name = c.Name
		findings = append(findings, f)
	}
	return findings, nil
}

// Good is a finding with nothing to do.
func Good(format string, args ...any) Finding {
	return Finding{Level: Fine, Message: fmt.Sprintf(format, args...)}
}

// Warn is a finding that somebody should do something about.
func Warn(advice, format string, args ...any) Finding {
	return Finding{Level: Warning, Message: fmt.Sprintf(format, args...), Advice: advice}
}

// Bad is a finding that somebody has to do something about.
func Bad(advice, format string, args ...any) Finding {
	return Finding{Level: Problem, Message: fmt.Sprintf(format, args...), Advice: advice}
}

func damaged(what string) Finding {
	return Bad("copy the database away as it is, then restore a backup", "%s", what)
}

// Engine names the database engine.
func (t *Tx) Engine() string { return t.engine.name }

// Within runs fn for no longer than limit, with a Tx of its own. ended says that the limit ended it; on
// PostgreSQL that ends the transaction, too.
func (t *Tx) Within(limit time.Duration, fn func(*Tx) error) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	bounded := *t
	bounded.ctx = ctx
	err = fn(&bounded)
	if ctx.Err() != nil && t.ctx.Err() == nil && err != nil {
		return true, nil
	}
	return false, err
}

func judgeSchema(version int) Finding {
	if version < SchemaVersion() {
		return Warn("make a backup: the next command that opens it migrates it",
			"version %d, and this program works with %d", version, SchemaVersion())
	}
	return Good("version %d, the one that this program works with", version)
}
