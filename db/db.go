// Package db is the engine room: it opens a database, brings its schema up to date, and runs
// transactions. It knows no word of the ledger.
//
// There are two ways in. [DB.Write] runs a function inside a transaction that is committed durably
// before Write returns; waiting calls share one commit. [DB.Read] runs a function on one consistent
// snapshot. Queries use ? placeholders and only SQL that every engine shares.
package db

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// BatchMax is the largest number of operations that share one commit, and the default.
const BatchMax = 64

const (
	queueMax        = 256              // operations that wait for the writer before callers block
	busyWaitDefault = 10 * time.Second // how long a lock of another process is waited for
	readersMax      = 4
)

// Options adjust a database handle. The zero value is what a program wants.
type Options struct {
	// Clock gives the time of a transaction; default time.Now.
	Clock func() time.Time

	// BusyWait bounds the wait for another process's lock; default 10 s. After it: [ErrBusy].
	BusyWait time.Duration

	// BatchMax bounds the operations in one commit, 1 to 64; default 64.
	BatchMax int

	// Intercept, if set, is called around every statement of a Write, BEGIN and COMMIT included.
	// An error from it takes the place of the statement's own: before, the statement does not run;
	// after, it ran and its answer is lost. Tests use it to inject faults.
	Intercept func(when When, query string) error
}

// When says on which side of a statement an [Options.Intercept] call stands.
type When int

// The two sides of a statement.
const (
	Before When = iota
	After
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine  *engine
	name    string // the file
	readers *sqlx.DB
	writers *sqlx.DB
	options Options

	mutex  sync.RWMutex // guards closed against a send on queue
	closed bool
	queue  chan *operation
	idle   chan struct{} // closed when the writer has ended
}

// engine is all that differs between database engines.
type engine struct {
	name     string
	begin    string // opens a write transaction
	lock     string // suffix of a SELECT that locks its rows until the commit
	prepare  string // run once on each new write connection
	classify func(error) error
	check    func(ctx context.Context, conn *sqlx.Conn, name string) error // a new write connection
}

// Engine names the database engine: "sqlite".
func (d *DB) Engine() string { return d.engine.name }

// SchemaVersion is the schema that this binary works with.
func SchemaVersion() int { return len(sqliteMigrations) }

// Open opens an existing database, after applying migrations that it lacks. It never creates one.
//
// A file that is missing, empty, damaged or not a jobledger database gives [ErrNoLedger]; one
// written by a newer binary gives [ErrNewer]. Neither is changed.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.BusyWait <= 0 {
		o.BusyWait = busyWaitDefault
	}
	if o.BatchMax <= 0 || o.BatchMax > BatchMax {
		o.BatchMax = BatchMax
	}
	name, readers, writers, err := openSQLite(ctx, dsn, o)
	if err != nil {
		return nil, err
	}
	d := &DB{
		engine:  &sqliteEngine,
		name:    name,
		readers: readers,
		writers: writers,
		options: o,
		queue:   make(chan *operation, queueMax),
		idle:    make(chan struct{}),
	}
	go d.writeLoop()
	return d, nil
}

// Create makes a new database, readable by its owner only, with the current schema. If there is a
// jobledger database already, it does nothing and reports created = false.
func Create(ctx context.Context, dsn string, o Options) (created bool, err error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return createSQLite(ctx, dsn, o)
}

// Close finishes the writes already accepted, refuses new ones and closes the database.
func (d *DB) Close() error {
	d.mutex.Lock()
	if d.closed {
		d.mutex.Unlock()
		return nil
	}
	d.closed = true
	close(d.queue)
	d.mutex.Unlock()
	<-d.idle
	return errors.Join(d.readers.Close(), d.writers.Close())
}

// Read runs fn on one consistent snapshot. fn cannot write.
func (d *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	d.mutex.RLock()
	closed := d.closed
	d.mutex.RUnlock()
	if closed {
		return ErrClosed
	}
	conn, err := d.readers.Connx(ctx)
	if err != nil {
		return d.engine.classify(err)
	}
	defer conn.Close()
	tx := &Tx{ctx: ctx, engine: d.engine, now: d.now(), prepare: conn.PreparexContext, once: true}
	if err := tx.control("BEGIN"); err != nil {
		discard(conn)
		return err
	}
	defer func() {
		// The caller's context may be over by now; the snapshot must end all the same.
		if _, err := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
			discard(conn)
		}
	}()
	return fn(tx)
}

// now is the clock's time in microseconds UTC.
func (d *DB) now() int64 { return d.options.Clock().UnixMicro() }
