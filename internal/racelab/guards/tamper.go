package guards

import (
	"context"
	"database/sql/driver"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// change is what it takes to remove a guard.
type change struct {
	texts   []text // in what is sent to the database
	rows    bool   // an UPDATE that changed nothing says that it changed a row
	swallow bool   // a COMMIT that fails says nothing of it
}

// text replaces what a pattern finds. A pattern that finds nothing removes nothing: see [tampering.idle].
type text struct {
	pattern *regexp.Regexp
	with    string
	schema  bool // in the schema, and in what every program does by it; else in the scene's programs alone
}

// tampering stands between the program and the driver, and removes guards from what passes.
type tampering struct {
	change
	spoil atomic.Bool // makes the next COMMIT fail

	// After a query with this text two programs wait for each other, a moment at most.
	meetAfter string
	met       chan struct{}

	mutex sync.Mutex
	found map[string]bool // the patterns that found something
}

func newTampering(changes ...change) *tampering {
	t := &tampering{found: make(map[string]bool), met: make(chan struct{})}
	for _, c := range changes {
		t.texts = append(t.texts, c.texts...)
		t.rows = t.rows || c.rows
		t.swallow = t.swallow || c.swallow
	}
	return t
}

// idle gives the patterns that found nothing: the guard is not where it was thought to be.
func (t *tampering) idle() (patterns []string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, x := range t.texts {
		if p := x.pattern.String(); !t.found[p] {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// rewrite gives a statement of a program without the guards. The programs before and after a scene know
// only what is gone from the schema.
func (c *conn) rewrite(query string) string {
	t := c.t
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, x := range t.texts {
		if (c.playing || x.schema) && x.pattern.MatchString(query) {
			t.found[x.pattern.String()] = true
			query = x.pattern.ReplaceAllString(query, x.with)
		}
	}
	return query
}

// meetMax is how long a program waits for another one to come as far. If the guards work, none can.
const meetMax = 20 * time.Millisecond

// meet lets two programs go on together, if this query is where they meet.
func (c *conn) meet(query string) {
	if !c.playing || c.t.meetAfter == "" || !strings.Contains(query, c.t.meetAfter) {
		return
	}
	select {
	case c.t.met <- struct{}{}:
	case <-c.t.met:
	case <-time.After(meetMax):
	}
}

// around wraps the connections of a program of the scene, or of those before and after it.
func (t *tampering) around(playing bool) func(driver.Conn) driver.Conn {
	return func(c driver.Conn) driver.Conn { return &conn{c, t, playing} }
}

// conn is a connection whose statements are tampered with. The connections of both drivers have the
// methods that it asks them for.
type conn struct {
	inner   driver.Conn
	t       *tampering
	playing bool
}

// Prepare is there for the interface: a pool asks for the method with a context.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// Begin begins a transaction.
func (c *conn) Begin() (driver.Tx, error) { return c.inner.Begin() }

// Close closes the connection.
func (c *conn) Close() error { return c.inner.Close() }

// PrepareContext prepares a statement, tampered with.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.inner.(driver.ConnPrepareContext).PrepareContext(ctx, c.rewrite(query))
	if err != nil {
		return nil, err
	}
	return &stmt{s, c, query}, nil
}

// ExecContext runs a statement, tampered with.
func (c *conn) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Result, error) {
	if query == "COMMIT" {
		return c.commit(ctx)
	}
	r, err := c.exec(ctx, c.rewrite(query), args)
	return changed(r, c.adds(query)), err
}

// QueryContext runs a query, tampered with.
func (c *conn) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Rows, error) {
	rows, err := c.inner.(driver.QueryerContext).QueryContext(ctx, c.rewrite(query), args)
	c.meet(query)
	return rows, err
}

func (c *conn) exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.inner.(driver.ExecerContext).ExecContext(ctx, query, args)
}

// commit commits; or, on SQLite, fails to, as the database does if a row refers to none.
func (c *conn) commit(ctx context.Context) (driver.Result, error) {
	if c.playing && c.t.spoil.Swap(false) {
		for _, statement := range []string{
			"PRAGMA defer_foreign_keys = ON",
			"INSERT INTO postings (entry_id, lot_id, amount) VALUES ('none', 'none', 1)",
		} {
			if _, err := c.exec(ctx, statement, nil); err != nil {
				return nil, err
			}
		}
	}
	r, err := c.exec(ctx, "COMMIT", nil)
	if err != nil && c.playing && c.t.swallow {
		return c.exec(ctx, "ROLLBACK", nil)
	}
	return r, err
}

// ResetSession passes on.
func (c *conn) ResetSession(ctx context.Context) error {
	return c.inner.(driver.SessionResetter).ResetSession(ctx)
}

// CheckNamedValue passes on what a driver takes that the standard library would not.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.inner.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// Conn gives PostgreSQL's own connection.
func (c *conn) Conn() *pgx.Conn { return c.inner.(interface{ Conn() *pgx.Conn }).Conn() }

// stmt is a statement that was tampered with.
type stmt struct {
	driver.Stmt
	conn  *conn
	query string // as the program said it
}

// ExecContext runs it.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	return changed(r, s.conn.adds(s.query)), err
}

// QueryContext runs it.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	s.conn.meet(s.query)
	return rows, err
}

// adds is how many rows a statement says it changed, whatever it did.
func (c *conn) adds(query string) int64 {
	if c.playing && c.t.rows && strings.HasPrefix(strings.TrimSpace(query), "UPDATE ") {
		return 1
	}
	return 0
}

// result is one that says it changed some rows at least.
type result struct {
	driver.Result
	least int64
}

func changed(r driver.Result, least int64) driver.Result {
	if r == nil || least == 0 {
		return r
	}
	return result{r, least}
}

// RowsAffected says so.
func (r result) RowsAffected() (int64, error) {
	n, err := r.Result.RowsAffected()
	return max(n, r.least), err
}
