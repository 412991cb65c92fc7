package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// writer owns the one connection that writes, and the statements prepared on it.
type writer struct {
	db         *DB
	conn       *sqlx.Conn
	statements map[string]*sqlx.Stmt
}

// attempt runs a batch in one transaction and answers its operations. It returns those that must
// run again: when the transaction itself breaks, only the operation it broke under is answered.
//
// The statements run under the writer's own context, not a caller's: a caller who leaves must not
// undo the work of its neighbours.
func (w *writer) attempt(batch []*operation) (again []*operation) {
	if err := w.begin(batch); err != nil {
		answer(batch, func(int) error { return err })
		return nil
	}
	errs := make([]error, len(batch))
	for i, o := range batch {
		var broken bool
		errs[i], broken = w.operate(o)
		if broken {
			w.discard()
			o.done <- errs[i]
			return append(batch[:i:i], batch[i+1:]...)
		}
	}
	if err := w.tx().control("COMMIT"); err != nil {
		w.discard()
		err = unknown(err)
		answer(batch, func(i int) error { return either(errs[i], err) })
		return nil
	}
	answer(batch, func(i int) error { return errs[i] })
	return nil
}

func answer(batch []*operation, result func(int) error) {
	for i, o := range batch {
		o.done <- result(i)
	}
}

// either keeps an operation's own error: it was rolled back before the commit, so it is certain.
func either(own, commit error) error {
	if own != nil {
		return own
	}
	return commit
}

// operate runs one operation inside its savepoint. broken means that the whole transaction is lost.
func (w *writer) operate(o *operation) (err error, broken bool) {
	if !o.take() {
		return nil, false // its caller left, and knows that nothing was written
	}
	tx := w.tx()
	tx.now = w.db.now()
	if err := tx.control("SAVEPOINT operation"); err != nil {
		return err, true
	}
	if err := call(o.fn, tx); err != nil {
		// Some failures, such as a full disk, make SQLite roll back everything: then this fails too.
		if tx.control("ROLLBACK TO operation") != nil || tx.control("RELEASE operation") != nil {
			return err, true
		}
		return err, false
	}
	if err := tx.control("RELEASE operation"); err != nil {
		return err, true
	}
	return nil, false
}

// take marks an operation as begun, again if it runs again. It fails if the caller withdrew it.
func (o *operation) take() bool {
	return o.state.CompareAndSwap(waiting, taken) || o.state.Load() == taken
}

// call runs fn and turns its panic into an error. A panic inside the driver passes: what state it
// left behind is unknown, and only a restart recovers that.
func call(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if tx.driving {
			return
		}
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return fn(tx)
}

func (w *writer) tx() *Tx {
	return &Tx{
		ctx:       context.Background(),
		engine:    w.db.engine,
		prepare:   w.prepare,
		intercept: w.db.options.Intercept,
	}
}

// The pauses between tries for the lock: the first is short, because another process's commit
// takes about a millisecond, and each is jittered so that waiters do not march in step.
const (
	pauseMin = 100 * time.Microsecond
	pauseMax = 4 * time.Millisecond
)

// begin opens the transaction, waiting for other processes no longer than BusyWait and than a caller
// of the batch is there, and checks that the schema is still the one that this binary knows.
func (w *writer) begin(batch []*operation) error {
	deadline := time.Now().Add(w.db.options.BusyWait)
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		err := w.tryBegin()
		if err == nil {
			return w.checkVersion()
		}
		deserted := !slices.ContainsFunc(batch, func(o *operation) bool { return o.state.Load() != withdrawn })
		if !errors.Is(err, ErrBusy) || deserted || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause/2 + rand.N(pause))
	}
}

func (w *writer) tryBegin() error {
	if err := w.connect(); err != nil {
		return err
	}
	err := w.tx().control(w.db.engine.begin)
	if errors.Is(err, ErrReadOnly) {
		err = &Error{Kind: ErrReadOnly, Reason: w.db.name + " is read-only"}
	}
	// A lock that is taken leaves the connection as it was. After any other error it may be inside
	// a transaction, and must not be used again.
	if err != nil && !errors.Is(err, ErrBusy) {
		w.discard()
	}
	return err
}

// checkVersion refuses to write once another process has migrated the database.
func (w *writer) checkVersion() error {
	var version int
	_, err := w.tx().Get(&version, `SELECT MAX(version) FROM schema_migrations`)
	if err == nil && version != SchemaVersion() {
		err = newer(version)
	}
	if err != nil {
		w.discard()
	}
	return err
}

func (w *writer) connect() error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.db.writers.Connx(context.Background())
	if err != nil {
		return w.db.engine.classify(err)
	}
	w.conn = conn
	w.statements = make(map[string]*sqlx.Stmt)
	err = w.db.engine.check(context.Background(), conn, w.db.name)
	if err == nil {
		err = w.tx().control(w.db.engine.prepare)
	}
	if err != nil {
		w.discard()
	}
	return err
}

func (w *writer) prepare(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if stmt := w.statements[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := w.conn.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	w.statements[query] = stmt
	return stmt, nil
}

// discard throws the connection away, and with it the transaction that it may still be inside.
func (w *writer) discard() {
	if w.conn != nil {
		w.finalize()
		discard(w.conn)
		w.conn.Close()
		w.conn, w.statements = nil, nil
	}
}

func (w *writer) close() {
	if w.conn != nil {
		w.finalize()
		w.conn.Close()
	}
}

// finalize closes the prepared statements. SQLite keeps a connection alive, with its transaction and
// its lock, for as long as one statement of it is open.
func (w *writer) finalize() {
	for _, s := range w.statements {
		_ = s.Close()
	}
}

// discard keeps a connection from going back to its pool.
func discard(conn *sqlx.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
