// Package ledger holds the rules: owners' credits in lots, jobs that hold or use them, and the one
// terminal transition of each job with the credits, the journal and the event that belong to it.
//
// Start with [Open] and [Ledger.Grant], [Ledger.CreateJob] and [Ledger.Settle]. Every exported
// method of [Ledger] is exactly one transaction, and every write can be repeated safely: the same
// key with the same content gives the first answer again, marked as replayed.
//
// Every error is an [*Error] with one of the [Codes].
package ledger

import (
	"context"

	"github.com/google/uuid"

	"jobledger/db"
)

// Options adjust a ledger. The zero value is what a program wants.
type Options = db.Options

// Ledger is an open ledger. It is safe for concurrent use.
type Ledger struct {
	db *db.DB
}

// Create makes a new, empty ledger. If there is one already it is left alone and created is false.
// Errors: INVALID for a place that cannot be a ledger.
func Create(ctx context.Context, dsn string, o Options) (created bool, err error) {
	created, err = db.Create(ctx, dsn, o)
	return created, wrap(err)
}

// Open opens an existing ledger: a SQLite file by its path, or the tables in a PostgreSQL database by its
// URL. Errors: INVALID for a file that is not one, or is newer than this
// program; BUSY.
func Open(ctx context.Context, dsn string, o Options) (*Ledger, error) {
	d, err := db.Open(ctx, dsn, o)
	if err != nil {
		return nil, wrap(err)
	}
	return New(d), nil
}

// New makes a ledger of an open database.
func New(d *db.DB) *Ledger {
	if d == nil {
		panic("ledger: New needs a database")
	}
	return &Ledger{db: d}
}

// Close finishes what was begun and closes the database.
func (l *Ledger) Close() error { return wrap(l.db.Close()) }

// Engine names the database engine.
func (l *Ledger) Engine() string { return l.db.Engine() }

// Name is a DSN as it may be shown, without its password.
func Name(dsn string) string { return db.Name(dsn) }

// SchemaVersion is the version of the tables that this program works with.
func SchemaVersion() int { return db.SchemaVersion() }

// write runs one operation in a write transaction, which on SQLite begins with BEGIN IMMEDIATE, and gives
// its result, or a coded error and nothing.
func write[T any](ctx context.Context, l *Ledger, operation func(*db.Tx) (T, error)) (T, error) {
	var result T
	err := l.db.Write(ctx, func(tx *db.Tx) (err error) {
		result, err = operation(tx)
		return err
	})
	if err != nil {
		// result may still be written to by the writer: it must not be touched here.
		var nothing T
		return nothing, wrap(err)
	}
	return result, nil
}

// read runs one query on a snapshot and gives its result.
func read[T any](ctx context.Context, l *Ledger, query func(*db.Tx) (T, error)) (T, error) {
	var result T
	err := l.db.Read(ctx, func(tx *db.Tx) (err error) {
		result, err = query(tx)
		return err
	})
	if err != nil {
		var nothing T
		return nothing, wrap(err)
	}
	return result, nil
}

// now is the time of a transaction.
func now(tx *db.Tx) Time { return Time(tx.Now()) }

// newID makes an id that sorts by the time it was made.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
