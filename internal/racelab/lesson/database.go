package lesson

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"jobledger/internal/racelab/scratch"
)

// engine is all that differs between database engines.
type engine struct {
	name  string
	begin string // opens a transaction that writes

	// open opens a scratch database, as this engine's programs do.
	open func(place scratch.Place) (*sqlx.DB, error)

	// attempt runs a statement, or goes on with the one that waits, up to its answer or to where it
	// waits for another session's lock.
	attempt func(ctx context.Context, s *session, q query) (a answer, waits bool)

	// gone returns when the database has seen the end of a dropped session.
	gone func(ctx context.Context, s *session) error

	// refusal gives the words for an error that is the database's considered answer, or "".
	refusal func(err error) string
}

// database is the scratch database of one run.
type database struct {
	engine   *engine
	place    scratch.Place
	pool     *sqlx.DB
	observer *session // sees what is committed, and who waits
}

// makeDatabase makes a database that has nothing in it but its mark.
func makeDatabase(ctx context.Context, e *engine, server string) (*database, error) {
	place, err := scratch.Make(ctx, server)
	if err != nil {
		return nil, err
	}
	pool, err := e.open(place)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the scratch database: %w", err), place.Remove())
	}
	s := &database{engine: e, place: place, pool: pool}
	if s.observer, err = s.connect(ctx); err == nil {
		_, err = s.observer.conn.ExecContext(ctx, scratch.Mark)
	}
	if err != nil {
		return nil, cmp.Or(fmt.Errorf("mark the scratch database: %w", err), s.close())
	}
	return s, nil
}

func (s *database) close() error {
	if s.observer != nil {
		s.observer.drop()
	}
	return cmp.Or(s.pool.Close(), s.place.Remove())
}

// connect opens a session of its own.
func (s *database) connect(ctx context.Context) (*session, error) {
	conn, err := s.pool.Connx(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the scratch database: %w", err)
	}
	return &session{database: s, conn: conn}, nil
}

// session is one actor's connection.
type session struct {
	database *database
	conn     *sqlx.Conn
	open     bool        // inside a transaction
	pid      uint32      // PostgreSQL: of the server's process
	pending  chan answer // PostgreSQL: what a statement that has not answered yet will answer
}

// query is a statement with its values.
type query struct {
	verb verb
	text string
	args []any
}

// answer is what the database says to a query.
type answer struct {
	row  []int64 // of a read; nil: there was none
	rows int64   // how many a write changed
	err  error
}

// ask runs a query to its end.
func (s *session) ask(ctx context.Context, q query) (a answer) {
	text := s.conn.Rebind(q.text)
	if q.verb == reads {
		a.row, a.err = s.read(ctx, text, q.args)
		return a
	}
	result, err := s.conn.ExecContext(ctx, text, q.args...)
	if err == nil {
		a.rows, err = result.RowsAffected()
	}
	a.err = err
	return a
}

// read gives the first row of a query of numbers.
func (s *session) read(ctx context.Context, text string, args []any) (row []int64, err error) {
	rows, err := s.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		return nil, errors.Join(err, rows.Err())
	}
	row = make([]int64, len(columns))
	into := make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	return row, rows.Close()
}

// number asks a question with a one-number answer.
func (s *session) number(ctx context.Context, text string) (int64, error) {
	a := s.ask(ctx, query{verb: reads, text: text})
	if a.err != nil {
		return 0, fmt.Errorf("%s: %w", strings.TrimSpace(text), a.err)
	}
	if len(a.row) != 1 {
		return 0, fmt.Errorf("%s: gave %d numbers, not one", strings.TrimSpace(text), len(a.row))
	}
	return a.row[0], nil
}

// drop ends the connection as the end of its process would: what it had open is rolled back.
func (s *session) drop() {
	s.open = false
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // makes the pool close it, and says so
}
