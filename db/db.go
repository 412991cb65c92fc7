// Package db is the engine room: it opens a database, brings its schema up to date, and runs
// transactions. It knows no word of the ledger.
//
// There are two ways in. [DB.Write] runs a function inside a transaction that is committed durably
// before Write returns; on SQLite, waiting calls share one commit. [DB.Read] runs a function on one
// consistent snapshot. Queries use ? placeholders and only SQL that every engine shares.
package db

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// BatchMax is the largest number of operations that share one commit, and the default.
const BatchMax = 64

// WritersMax is the largest number of transactions that write at once, and the default.
const WritersMax = 8

const (
	queueMax        = 256              // operations that wait for the writer before callers block
	busyWaitDefault = 10 * time.Second // how long a lock of another process is waited for
	readersMax      = 4
)

// Options adjust a database handle. The zero value is what a program wants.
type Options struct {
	// Clock gives the time of a transaction; default time.Now.
	Clock func() time.Time

	// BusyWait bounds the wait for another process's lock, and for a server that is away; default 10 s.
	// After it: [ErrBusy].
	BusyWait time.Duration

	// Writers bounds the transactions that write at once on PostgreSQL, 1 to 8; default 8. SQLite has
	// one writer.
	Writers int

	// BatchMax bounds the operations in one commit on SQLite, 1 to 64; default 64.
	BatchMax int

	// RiskPowerLoss lets a COMMIT on SQLite return before it is on the disk (synchronous=NORMAL): a loss of
	// power takes back what was acknowledged. It is there to measure what the waiting costs.
	RiskPowerLoss bool

	// Intercept, if set, is called around every statement of a Write, BEGIN and COMMIT included.
	// An error from it takes the place of the statement's own: before, the statement does not run;
	// after, it ran and its answer is lost. Tests use it to inject faults.
	Intercept func(when When, query string) error

	// Wrap, if set, is put around each connection that the driver makes, also while the database is
	// created. The lab takes guards away with it, and tests inject faults. What it gives must have the
	// methods that the connection has.
	Wrap func(driver.Conn) driver.Conn

	asFound bool // opened to be looked at: an older schema stays
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
	name    string // of the database, as it may be shown
	readers *sqlx.DB
	writers *sqlx.DB
	options Options

	mutex  sync.RWMutex // guards closed against a send on queue
	closed bool
	queue  chan *operation
	busy   sync.WaitGroup // the writers
}

// engine is all that differs between database engines.
type engine struct {
	name     string
	begin    string // opens a write transaction; for those that share one it is the same as snapshot
	snapshot string // opens a write transaction that sees one moment
	read     string // opens a snapshot that cannot write
	lock     string // suffix of a SELECT that locks its rows until the commit; empty: begin locked all
	prepare  string // run once on each new write connection; may be empty
	prepares bool   // statements are prepared here; else the driver keeps them
	batchMax int    // operations that share one commit
	writers  int    // transactions that write at once
	pauses   pauses // between tries for the lock, or for a connection

	classify   func(error) error
	check      checkFunc // a new write connection; may be nil
	commit     func(context.Context, *sqlx.Conn) error
	keeps      func(error) bool  // a BEGIN that failed so has left its connection as it was
	refused    func(error) error // words the error of a BEGIN; may be nil
	conflict   func(error) int   // how often to try again, since another transaction was in the way
	rolledBack func(error) bool  // a COMMIT that failed so has certainly written nothing
	checks     func(*DB) []Check
}

type checkFunc func(ctx context.Context, conn *sqlx.Conn, name string) error

// Engine names the database engine: "sqlite" or "postgres".
func (d *DB) Engine() string { return d.engine.name }

// SchemaVersion is the schema that this binary works with.
func SchemaVersion() int { return len(sqliteMigrations) }

// Open opens an existing database, after applying migrations that it lacks. It never creates one.
// The DSN is the path of a SQLite file, or the URL of a PostgreSQL database: postgres://...
//
// What is missing, empty, damaged or not a jobledger database gives [ErrNoLedger]; what was written
// by a newer binary gives [ErrNewer]. Neither is changed. [ErrBusy]: the server cannot be reached.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	o = o.withDefaults()
	e, open := sqliteEngine(o), openSQLite
	if isPostgres(dsn) {
		e, open = postgresEngine(o), openPostgres
	}
	name, readers, writers, err := open(ctx, dsn, o)
	if err != nil {
		return nil, err
	}
	d := &DB{
		engine:  e,
		name:    name,
		readers: readers,
		writers: writers,
		options: o,
		queue:   make(chan *operation, queueMax),
	}
	d.options.BatchMax = min(o.BatchMax, e.batchMax)
	for range min(e.writers, o.Writers) {
		d.busy.Go(d.writeLoop)
	}
	return d, nil
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.BusyWait <= 0 {
		o.BusyWait = busyWaitDefault
	}
	if o.BatchMax <= 0 || o.BatchMax > BatchMax {
		o.BatchMax = BatchMax
	}
	if o.Writers <= 0 {
		o.Writers = WritersMax
	}
	return o
}

// Create makes a new database with the current schema: a SQLite file that only its owner can read, or
// the tables in an existing, empty PostgreSQL database. If there is a jobledger database already, it
// does nothing and reports created = false.
func Create(ctx context.Context, dsn string, o Options) (created bool, err error) {
	if isPostgres(dsn) {
		return createPostgres(ctx, dsn, o.withDefaults())
	}
	return createSQLite(ctx, dsn, o.withDefaults())
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
	d.busy.Wait()
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
	tx := &Tx{ctx: ctx, engine: d.engine, now: d.now(), once: true}
	conn, err := d.beginRead(tx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer func() {
		// The caller's context may be over by now; the snapshot must end all the same.
		if _, err := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
			discard(conn)
		}
	}()
	return fn(tx)
}

// beginRead opens a snapshot for tx. It waits as a write does for a server that is not there. One that
// was restarted has left dead connections in the pool: each gives way to the next.
func (d *DB) beginRead(tx *Tx) (conn *sqlx.Conn, err error) {
	err = d.persist(tx.ctx, func() (again bool, err error) {
		conn, err = d.tryRead(tx)
		return errors.Is(err, ErrBusy), err
	})
	return conn, err
}

func (d *DB) tryRead(tx *Tx) (*sqlx.Conn, error) {
	conn, err := d.readers.Connx(tx.ctx)
	if err != nil {
		return nil, cmp.Or(tx.ctx.Err(), d.engine.classify(err))
	}
	tx.conn, tx.prepare = conn, conn.PreparexContext
	if err := tx.control(d.engine.read); err != nil {
		discard(conn)
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// now is the clock's time in microseconds UTC.
func (d *DB) now() int64 { return d.options.Clock().UnixMicro() }
