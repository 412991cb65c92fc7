package lesson

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"jobledger/internal/racelab/scratch"
)

var postgresEngine = engine{
	name:    Postgres,
	begin:   "BEGIN",
	open:    openPostgres,
	attempt: attemptPostgres,
	gone:    gonePostgres,
	refusal: refusalPostgres,
}

// lookPause is the time between two looks at whether a session waits, or is gone.
const lookPause = time.Millisecond

// sessionSettings are the product's, whatever the server's defaults are.
var sessionSettings = map[string]string{
	"application_name":              "jobledger lab",
	"default_transaction_isolation": "read committed",
	"lock_timeout":                  "0",
	"statement_timeout":             "0",
}

// openPostgres opens a database with the product's settings.
func openPostgres(place scratch.Place) (*sqlx.DB, error) {
	config, err := pgx.ParseConfig(place.DSN)
	if err != nil {
		return nil, err
	}
	for parameter, value := range sessionSettings {
		config.RuntimeParams[parameter] = value
	}
	return sqlx.NewDb(stdlib.OpenDB(*config), place.Driver), nil
}

// attemptPostgres lets the statement run on its own until it has answered, or the server says that
// it waits for a lock that another session holds.
func attemptPostgres(ctx context.Context, s *session, q query) (a answer, waits bool) {
	if s.pending == nil {
		if err := s.identify(); err != nil {
			return answer{err: err}, false
		}
		pending := make(chan answer, 1)
		s.pending = pending
		go func() { pending <- s.ask(ctx, q) }()
	}
	blocked := fmt.Sprintf(`SELECT CARDINALITY(pg_blocking_pids(%d))`, s.pid)
	for {
		select {
		case a := <-s.pending:
			s.pending = nil
			return a, false
		case <-time.After(lookPause):
		}
		blockers, err := s.database.observer.number(ctx, blocked)
		if err != nil || blockers > 0 {
			return answer{err: err}, err == nil
		}
	}
}

// identify notes the server's process, which cannot be asked for while a statement runs.
func (s *session) identify() error {
	return s.conn.Raw(func(c any) error {
		s.pid = c.(*stdlib.Conn).Conn().PgConn().PID()
		return nil
	})
}

// gonePostgres waits for the server to roll back and end the process of a session.
func gonePostgres(ctx context.Context, s *session) error {
	alive := fmt.Sprintf(`SELECT COUNT(*) FROM pg_stat_activity WHERE pid = %d`, s.pid)
	for {
		n, err := s.database.observer.number(ctx, alive)
		if err != nil || n == 0 {
			return err
		}
		time.Sleep(lookPause)
	}
}

func refusalPostgres(err error) string {
	const integrityConstraintViolation = "23"
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code[:2] == integrityConstraintViolation {
		return constraintBroken
	}
	return ""
}
