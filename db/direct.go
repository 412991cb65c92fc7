package db

import (
	"context"
	"database/sql"
	"sync"

	"github.com/jmoiron/sqlx"
)

// direct is a statement of an engine whose driver prepares what it runs, and keeps it prepared, by
// itself. That saves the round trips of PREPARE, and lets the DSN choose another way for a pooler.
type direct struct {
	conn  *sqlx.Conn
	query string
}

// GetContext is that of sqlx.Stmt.
func (d direct) GetContext(ctx context.Context, dest any, args ...any) error {
	return d.conn.GetContext(ctx, dest, d.query, args...)
}

// SelectContext is that of sqlx.Stmt.
func (d direct) SelectContext(ctx context.Context, dest any, args ...any) error {
	return d.conn.SelectContext(ctx, dest, d.query, args...)
}

// ExecContext is that of sqlx.Stmt.
func (d direct) ExecContext(ctx context.Context, args ...any) (sql.Result, error) {
	return d.conn.ExecContext(ctx, d.query, args...)
}

// QueryContext is that of sqlx.Stmt.
func (d direct) QueryContext(ctx context.Context, args ...any) (*sql.Rows, error) {
	return d.conn.QueryContext(ctx, d.query, args...)
}

// QueryxContext is that of sqlx.Stmt.
func (d direct) QueryxContext(ctx context.Context, args ...any) (*sqlx.Rows, error) {
	return d.conn.QueryxContext(ctx, d.query, args...)
}

// QueryRowContext is that of sqlx.Stmt.
func (d direct) QueryRowContext(ctx context.Context, args ...any) *sql.Row {
	return d.conn.QueryRowContext(ctx, d.query, args...)
}

var rebound sync.Map // queries with ?, and what they are with $1, $2 ...

// rebind numbers the placeholders of a query. No query has a ? that is not one.
func rebind(query string) string {
	if known, ok := rebound.Load(query); ok {
		return known.(string)
	}
	numbered := sqlx.Rebind(sqlx.DOLLAR, query)
	rebound.Store(query, numbered)
	return numbered
}
