package books

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the stage is a temporary database; books may be one

	"jobledger/ledger"
)

// stage sorts rows on disk. SQLite deletes a database without a name when its connection closes, or the
// process ends however it does.
type stage struct {
	ctx  context.Context
	pool *sql.DB
	conn *sql.Conn // the database is the connection's own
	stmt struct{ insert, first, taint, number, owners, figures, jobs *sql.Stmt }
}

const stageSchema = `
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16384;
PRAGMA temp_store = 1;
CREATE TABLE rows (
  id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, job TEXT NOT NULL,
  at INTEGER NOT NULL, part TEXT NOT NULL, line INTEGER NOT NULL, content TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX rows_key ON rows (kind, key);
CREATE TABLE tainted (owner TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE numbers (prefix TEXT NOT NULL PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;
BEGIN`

// The kinds are indexes in kinds: 0 balance, 1 lot, 2 job, 3 refund.
const stageIndexes = `
CREATE INDEX rows_owner ON rows (owner, kind, at, id) WHERE kind < 3;
CREATE INDEX rows_job ON rows (job, id) WHERE kind = 3;
COMMIT`

func newStage(ctx context.Context) (s *stage, err error) {
	s = &stage{ctx: ctx}
	if s.pool, err = sql.Open("sqlite", ""); err != nil {
		return nil, fmt.Errorf("sort the rows: %w", err)
	}
	if s.conn, err = s.pool.Conn(ctx); err == nil {
		_, err = s.conn.ExecContext(ctx, stageSchema)
	}
	for _, p := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&s.stmt.insert, `
			INSERT INTO rows (kind, key, owner, job, at, part, line, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`},
		{&s.stmt.first, `SELECT part, line, content FROM rows WHERE kind = ? AND key = ?`},
		{&s.stmt.taint, `INSERT INTO tainted VALUES (?) ON CONFLICT DO NOTHING`},
		{&s.stmt.number, `INSERT INTO numbers VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1 RETURNING n`},
	} {
		if err == nil {
			*p.into, err = s.conn.PrepareContext(ctx, p.query)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sort the rows: %w", err), s.close())
	}
	return s, nil
}

func (s *stage) close() (err error) {
	if s.conn != nil {
		err = s.conn.Close()
	}
	return errors.Join(err, s.pool.Close())
}

// add keeps a row. known tells that an earlier one says the same; one that says something else under
// the same key is an error of the row.
func (s *stage) add(r *staged) (known bool, err error) {
	content, err := json.Marshal(r.content)
	if err != nil {
		return false, fmt.Errorf("sort the rows: %w", err)
	}
	result, err := s.stmt.insert.ExecContext(s.ctx,
		r.kind, r.key, r.owner, r.job, r.at, r.Table, r.Line, string(content))
	if err != nil {
		return false, fmt.Errorf("sort the rows: %w", err)
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 1 {
		return false, err
	}
	var first ledger.Place
	var there string
	err = s.stmt.first.QueryRowContext(s.ctx, r.kind, r.key).Scan(&first.Table, &first.Line, &there)
	if err != nil {
		return false, fmt.Errorf("sort the rows: %w", err)
	}
	if there != string(content) {
		return false, ledger.InvalidField(kinds[r.kind], "%.40q contradicts %s", r.key, first)
	}
	return true, nil
}

// taint notes an owner of whom a row is refused: what the other rows say together is no longer known.
func (s *stage) taint(owner string) error {
	_, err := s.stmt.taint.ExecContext(s.ctx, owner)
	return err
}

// number counts the rows whose refs begin with a prefix, from 1.
func (s *stage) number(prefix string) (n int64, err error) {
	if err = s.stmt.number.QueryRowContext(s.ctx, prefix).Scan(&n); err != nil {
		err = fmt.Errorf("sort the rows: %w", err)
	}
	return n, err
}

// finish sorts what was added.
func (s *stage) finish() (err error) {
	_, err = s.conn.ExecContext(s.ctx, stageIndexes)
	for _, p := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&s.stmt.owners, `
			SELECT owner FROM rows
			WHERE kind < 3 AND owner > ? AND owner NOT IN (SELECT owner FROM tainted)
			GROUP BY owner ORDER BY owner LIMIT ?`},
		{&s.stmt.figures, `
			SELECT kind, part, line, content FROM rows WHERE kind < 3 AND owner = ? AND kind < 2
			ORDER BY kind, at, id`},
		{&s.stmt.jobs, `
			SELECT j.part, j.line, j.content, r.part, r.line, r.content
			FROM rows j LEFT JOIN rows r ON r.kind = 3 AND r.job = j.key
			WHERE j.kind < 3 AND j.owner = ? AND j.kind = 2
			ORDER BY j.at, j.id, r.id`},
	} {
		if err == nil {
			*p.into, err = s.conn.PrepareContext(s.ctx, p.query)
		}
	}
	if err != nil {
		return stopped(fmt.Errorf("sort the rows: %w", err))
	}
	return nil
}

// ownersMax is how many owners are read at a time.
const ownersMax = 1000
