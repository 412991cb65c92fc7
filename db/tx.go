package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"
)

// Tx runs the statements of one operation. It belongs to the function it was given to and is not
// safe for concurrent use.
type Tx struct {
	ctx       context.Context
	engine    *engine
	now       int64
	conn      *sqlx.Conn
	prepare   func(ctx context.Context, query string) (*sqlx.Stmt, error)
	once      bool // statements are closed after their first use
	intercept func(When, string) error
	driving   bool // a driver call is under way: a panic now is the driver's

	repeats  int   // times that this operation ran before
	conflict error // what it met in a Try and has to run again for
}

// Now is the time of this operation, in microseconds UTC; it does not move while the operation runs.
func (t *Tx) Now() int64 { return t.now }

// Get scans the first row of a query into dest, a struct or a single value. found is false, and
// dest unchanged, if there is no row. Ignore dest when there is an error.
func (t *Tx) Get(dest any, query string, args ...any) (found bool, err error) {
	err = t.run(query, func(s statement) error { return s.GetContext(t.ctx, dest, args...) })
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Row scans the columns of a query's first row into dest, one by one. It is Get for the hot paths,
// without its cost per column.
func (t *Tx) Row(query string, args []any, dest ...any) (found bool, err error) {
	err = t.run(query, func(s statement) error { return s.QueryRowContext(t.ctx, args...).Scan(dest...) })
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Rows scans the columns of each row of a query into dest, one by one, and then calls next. It is
// Select for the hot paths. next must not use t.
func (t *Tx) Rows(next func(), query string, args []any, dest ...any) error {
	return t.run(query, func(s statement) error {
		rows, err := s.QueryContext(t.ctx, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(dest...); err != nil {
				return err
			}
			t.driving = false
			next()
			t.driving = true
		}
		return rows.Err()
	})
}

// Lock keeps the rows of a query from changing before the commit, and waits for those who change
// them now. What is decided by these rows, or guarded by them, must be read after it, by another
// statement: a statement sees what was there when it began, and Lock may have waited. Every
// operation locks in one order, so that no two wait for each other.
//
// There is none of the rows if it finds none: what is there by the next statement came after. Where a
// transaction has the database to itself, as in SQLite, it does nothing and reports true.
func (t *Tx) Lock(query string, args ...any) (found bool, err error) {
	if t.engine.lock == "" {
		return true, nil
	}
	rows, err := t.Exec(query+t.engine.lock, args...)
	return rows > 0, err
}

// Select scans all rows of a query into dest, a pointer to a slice. The query must bound them.
func (t *Tx) Select(dest any, query string, args ...any) error {
	return t.run(query, func(s statement) error { return s.SelectContext(t.ctx, dest, args...) })
}

// Exec runs a statement and gives the number of rows that it changed.
func (t *Tx) Exec(query string, args ...any) (rows int64, err error) {
	err = t.run(query, func(s statement) error {
		result, err := s.ExecContext(t.ctx, args...)
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	return rows, err
}

// Each calls fn with every row of a query until fn returns false or an error. fn must not use t:
// the rows are still being read.
func Each[T any](t *Tx, fn func(*T) (more bool, err error), query string, args ...any) error {
	return t.run(query, func(s statement) error {
		rows, err := s.QueryxContext(t.ctx, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var row T
			if err := rows.StructScan(&row); err != nil {
				return err
			}
			t.driving = false
			more, err := fn(&row)
			t.driving = true
			if err != nil || !more {
				return err
			}
		}
		return rows.Err()
	})
}

// Try runs part of an operation so that its error undoes that part alone.
//
// If another transaction was in the way of the part, the whole operation runs again, as long as it
// may, whatever it makes of the error.
func (t *Tx) Try(part func() error) error {
	if err := t.control("SAVEPOINT part"); err != nil {
		return err
	}
	err := part()
	if err != nil {
		if t.engine.conflict(err) > t.repeats {
			t.conflict = err
		}
		if err := t.control("ROLLBACK TO part"); err != nil {
			return err
		}
	}
	return cmp.Or(t.control("RELEASE part"), err)
}

// statement is a query on a connection, ready to run.
type statement interface {
	GetContext(ctx context.Context, dest any, args ...any) error
	SelectContext(ctx context.Context, dest any, args ...any) error
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, args ...any) (*sql.Rows, error)
	QueryxContext(ctx context.Context, args ...any) (*sqlx.Rows, error)
	QueryRowContext(ctx context.Context, args ...any) *sql.Row
}

// run prepares a query, or finds it prepared, and drives it through use.
func (t *Tx) run(query string, use func(statement) error) error {
	return t.guard(query, func() error {
		if !t.engine.prepares {
			return use(direct{t.conn, rebind(query)})
		}
		stmt, err := t.prepare(t.ctx, query)
		if err != nil {
			return err
		}
		if t.once {
			defer stmt.Close()
		}
		return use(stmt)
	})
}

// control runs a statement of the transaction itself, such as SAVEPOINT.
func (t *Tx) control(query string) error {
	_, err := t.Exec(query)
	return err
}

// guard is the one place where statements run: it calls the interceptor on both sides, notes that
// the driver is at work, and gives the error its class.
func (t *Tx) guard(query string, do func() error) error {
	if t.intercept != nil {
		if err := t.intercept(Before, query); err != nil {
			return err
		}
	}
	t.driving = true
	err := do()
	t.driving = false
	if t.intercept != nil && (err == nil || errors.Is(err, sql.ErrNoRows)) {
		err = cmp.Or(t.intercept(After, query), err)
	}
	err = t.engine.classify(err)
	if errors.Is(err, ErrBusy) && t.ctx.Err() != nil {
		return t.ctx.Err() // the caller's end is why the connection was given up
	}
	return err
}
