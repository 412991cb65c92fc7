package db

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// writer owns one connection that writes, and the statements prepared on it.
type writer struct {
	db         *DB
	conn       *sqlx.Conn
	statements map[string]*sqlx.Stmt
	refused    time.Time // when another had the lock, the last time
	turn       time.Time // when it last let others have it, or was refused
}

// attempt runs a batch in one transaction and answers its operations. It returns those that must
// run again: when the transaction itself breaks, only the operation it broke under is answered, and
// not even that if another transaction was in the way.
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
		var over bool
		errs[i], over = w.operate(o)
		switch {
		case over && w.repeats(o, errs[i]):
			return batch
		case over:
			o.done <- errs[i]
			return append(batch[:i:i], batch[i+1:]...)
		}
	}
	if err := w.commit(); err != nil {
		return w.failCommit(batch, errs, err)
	}
	answer(batch, func(i int) error { return errs[i] })
	return nil
}

// commit commits the transaction.
func (w *writer) commit() error {
	tx := w.tx()
	return tx.guard("COMMIT", func() error { return w.db.engine.commit(tx.ctx, w.conn) })
}

// failCommit answers a batch whose COMMIT failed, but for those that must run again: where the server said
// that it rolled back, what may; and in any case an operation that was refused after another had written.
// It has written nothing, and it was refused for what perhaps nobody will ever see.
func (w *writer) failCommit(batch []*operation, errs []error, err error) (again []*operation) {
	w.discard()
	rolledBack, written := w.db.engine.rolledBack(err), false
	for i, o := range batch {
		switch {
		case errs[i] != nil && written, errs[i] == nil && rolledBack && w.repeats(o, err):
			again = append(again, o)
		case errs[i] != nil:
			o.done <- errs[i]
		case rolledBack:
			o.done <- err
		default:
			o.done <- unknown(err)
		}
		written = written || errs[i] == nil
	}
	return again
}

// The pause before an operation runs again is a random part of a bound that doubles.
const (
	repeatPauseMin = 5 * time.Millisecond
	repeatPauseMax = 500 * time.Millisecond
)

// repeats reports whether an operation that was rolled back with an error runs again, and pauses
// before it does.
func (w *writer) repeats(o *operation, err error) bool {
	if o.repeats >= w.db.engine.conflict(err) || time.Since(o.began) > w.db.options.BusyWait {
		return false
	}
	time.Sleep(rand.N(min(repeatPauseMin<<o.repeats, repeatPauseMax)))
	o.repeats++
	return true
}

func answer(batch []*operation, result func(int) error) {
	for i, o := range batch {
		o.done <- result(i)
	}
}

// operate runs one operation, inside its savepoint where operations share a transaction. over means
// that the transaction is: it was rolled back, or is lost with its connection.
func (w *writer) operate(o *operation) (err error, over bool) {
	if !o.take() {
		return nil, false // its caller left, and knows that nothing was written
	}
	tx := w.tx()
	tx.now, tx.repeats = w.db.now(), o.repeats
	if w.db.engine.batchMax == 1 {
		if err = call(o.fn, tx); err != nil && tx.control("ROLLBACK") != nil {
			w.discard()
		}
		return err, err != nil
	}
	if err := tx.control("SAVEPOINT operation"); err != nil {
		w.discard()
		return err, true
	}
	err = call(o.fn, tx)
	// Some failures, such as a full disk, make SQLite roll back everything: then this fails too.
	if err != nil && tx.control("ROLLBACK TO operation") != nil {
		w.discard()
		return err, true
	}
	if release := tx.control("RELEASE operation"); release != nil {
		w.discard()
		return cmp.Or(err, release), true
	}
	return err, false
}

// take marks an operation as begun, again if it runs again. It fails if the caller withdrew it.
func (o *operation) take() bool {
	if o.state.CompareAndSwap(waiting, taken) {
		o.began = time.Now()
	}
	return o.state.Load() == taken
}

// call runs fn and turns its panic into an error. A panic inside the driver passes: what state it
// left behind is unknown, and only a restart recovers that. A conflict is one even if fn got over it.
func call(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if tx.driving {
			return
		}
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	err = fn(tx)
	return cmp.Or(tx.conflict, err) // fn has to run before its conflict is looked at
}

func (w *writer) tx() *Tx {
	return &Tx{
		ctx:       context.Background(),
		engine:    w.db.engine,
		conn:      w.conn,
		prepare:   w.prepare,
		intercept: w.db.options.Intercept,
	}
}

// begin opens the transaction, waiting for other processes, or a server that is not there, no longer
// than BusyWait and than a caller of the batch is there, and checks that the schema is still the one
// that this binary knows.
func (w *writer) begin(batch []*operation) error {
	return w.db.persist(context.Background(), func() (again bool, err error) {
		err = w.tryBegin(batch[0].begin)
		if err == nil {
			err = w.checkVersion()
		}
		busy := errors.Is(err, ErrBusy)
		if busy {
			w.refused = time.Now()
			w.turn = w.refused
		}
		waited := slices.ContainsFunc(batch, func(o *operation) bool { return o.state.Load() != withdrawn })
		return waited && busy, err
	})
}

func (w *writer) tryBegin(begin string) error {
	if err := w.connect(); err != nil {
		return err
	}
	err := w.tx().control(begin)
	if w.db.engine.refused != nil {
		err = w.db.engine.refused(err)
	}
	if errors.Is(err, ErrReadOnly) {
		err = &Error{Kind: ErrReadOnly, Reason: w.db.name + " is read-only"}
	}
	// A lock that is taken leaves a SQLite connection as it was. After any other error it may be
	// inside a transaction, and must not be used again.
	if err != nil && !w.db.engine.keeps(err) {
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
	if w.db.engine.check != nil {
		err = w.db.engine.check(context.Background(), conn, w.db.name)
	}
	if err == nil && w.db.engine.prepare != "" {
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
