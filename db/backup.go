package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

// CopyParams says how [CopyFile] copies.
type CopyParams struct {
	// Replace lets the copy take the place of a jobledger database that nobody has open.
	Replace bool

	// Check, if set, looks at the copy, a jobledger database of this schema version, before it gets its name.
	// Its error is that of the copy, which is thrown away.
	Check func(path string, version int) error

	// Progress, if set, is told how many pages are copied; it must be quick.
	Progress func(done, total int)
}

// copyPages is how many pages are copied between two looks at the context: 1 MB.
const copyPages = 256

// CopyFile copies the SQLite database at from, as it is at one moment, into a new file at to that only its
// owner can read. from can be in use meanwhile; an older schema is copied as it is. The copy is checked and
// synced under another name, and gets its own at the end: until then, and after an error, nothing is there
// that was not there before.
//
// Errors: [ErrExists] if something is at to, or belongs to what was; [ErrNoLedger], [ErrNewer] or
// [ErrDamaged] for from; [ErrBusy] if the disk is full.
func CopyFile(ctx context.Context, from, to string, o Options, p CopyParams) error {
	o = o.withDefaults()
	if isPostgres(from) || isPostgres(to) {
		return refuse("backup and restore are for SQLite files: back PostgreSQL up with pg_dump, " +
			"or bring its ledger into a file, and a file into PostgreSQL, with copy")
	}
	source, err := sqlitePath(from)
	if err != nil {
		return err
	}
	target, err := sqlitePath(to)
	if err != nil {
		return err
	}
	if err := checkTarget(ctx, source, target, o, p.Replace); err != nil {
		return err
	}
	if err := checkFile(source); err != nil {
		return err
	}
	building, err := os.CreateTemp(filepath.Dir(target), ".jobledger-new-*") // mode 0600
	if err != nil {
		return &Error{Kind: ErrReadOnly, Reason: "cannot create " + target, Err: errors.Unwrap(err)}
	}
	defer removeDatabase(building.Name())
	if err := building.Close(); err != nil {
		return err
	}
	if err := fill(ctx, source, building.Name(), o, p); err != nil {
		return err
	}
	// It took a while: look again.
	if err := checkTarget(ctx, source, target, o, p.Replace); err != nil {
		return err
	}
	return publish(building.Name(), target, p.Replace)
}

// checkTarget refuses a place where something is, or where a new file would be taken for an old one.
func checkTarget(ctx context.Context, source, target string, o Options, replace bool) error {
	if _, err := os.Stat(filepath.Dir(target)); err != nil {
		return refuse("cannot create %s: the directory does not exist", target)
	}
	there, err := os.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for _, suffix := range []string{"-wal", "-journal"} {
			if _, err := os.Lstat(target + suffix); err == nil {
				return exists("%s was left by another database, and SQLite would write it into the new one: "+
					"move it away", target+suffix)
			}
		}
		return nil
	case err != nil:
		return refuse("cannot look at %s: %v", target, errors.Unwrap(err))
	case !replace:
		return exists("%s is there already", target)
	case !there.Mode().IsRegular():
		return exists("%s is there, and is not a regular file", target)
	}
	if origin, err := os.Stat(source); err == nil && os.SameFile(origin, there) {
		return exists("%s is the file to copy itself", target)
	}
	return checkUnused(ctx, target, o)
}

func exists(format string, args ...any) error {
	return &Error{Kind: ErrExists, Reason: fmt.Sprintf(format, args...)}
}

// checkUnused refuses all but a jobledger database that no process has open. What its readers left beside it
// is gone then.
func checkUnused(ctx context.Context, path string, o Options) error {
	if err := checkFile(path); err != nil {
		return err
	}
	readers, err := openPool(path, false, o, 1)
	if err != nil {
		return err
	}
	_, err = inspect(ctx, readers, path, o)
	if err := errors.Join(err, readers.Close()); err != nil {
		return err
	}
	alone, err := openURL(fileURL(path, "mode=rw&_error_rc=1&_pragma=locking_mode(EXCLUSIVE)"), o, 1)
	if err != nil {
		return err
	}
	if _, err = alone.ExecContext(ctx, `BEGIN EXCLUSIVE; ROLLBACK`); err == nil {
		_ = os.Remove(path + "-shm") // what was shared, by nobody now
	}
	if err = errors.Join(classifySQLite(err), alone.Close()); errors.Is(err, ErrBusy) {
		return exists("%s is in use", path)
	}
	return err
}

// fill makes an empty file a copy, and proves that it is one.
func fill(ctx context.Context, source, copied string, o Options, p CopyParams) error {
	if err := copyAll(ctx, source, copied, o, p.Progress); err != nil {
		return err
	}
	pool, err := openPool(copied, false, o, 1)
	if err != nil {
		return err
	}
	version, err := inspect(ctx, pool, copied, o)
	if err == nil {
		err = wholeFile(ctx, pool)
	}
	if err := errors.Join(err, pool.Close()); err != nil {
		return err
	}
	if p.Check != nil {
		if err := p.Check(copied, version); err != nil {
			return err
		}
	}
	return syncFile(copied)
}

func wholeFile(ctx context.Context, pool *sqlx.DB) error {
	var found string
	if err := pool.GetContext(ctx, &found, `PRAGMA integrity_check(1)`); err != nil {
		return classifySQLite(err)
	}
	if found != "ok" {
		return &Error{Kind: ErrDamaged, Reason: "the database is damaged: " + found}
	}
	return nil
}

// copyAll copies page by page. The snapshot that it holds keeps the writers' changes out, and the copy
// from beginning anew with each of them.
func copyAll(ctx context.Context, source, copied string, o Options, tell func(done, total int)) error {
	pool, err := openPool(source, false, o, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := inspect(ctx, pool, source, o); err != nil {
		return err
	}
	conn, err := pool.Connx(ctx)
	if err != nil {
		return classifySQLite(err)
	}
	defer conn.Close()
	var one int
	_, err = conn.ExecContext(ctx, `BEGIN`)
	if err == nil {
		err = conn.GetContext(ctx, &one, `SELECT 1 FROM schema_migrations`)
	}
	if err == nil {
		err = conn.Raw(func(driverConn any) error { return copySteps(ctx, driverConn, copied, tell) })
	}
	discard(conn) // and with it the snapshot
	return classifySQLite(err)
}

// copySteps drives SQLite's own copying.
func copySteps(ctx context.Context, driverConn any, copied string, tell func(done, total int)) error {
	source, ok := driverConn.(interface {
		NewBackup(to string) (*sqlite.Backup, error)
	})
	if !ok {
		return fmt.Errorf("a connection of type %T cannot copy", driverConn)
	}
	backup, err := source.NewBackup(fileURL(copied, "mode=rw&_error_rc=1&_pragma=synchronous(FULL)"))
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = backup.Step(copyPages); err == nil {
			err = ctx.Err()
		}
		if tell != nil {
			tell(backup.PageCount()-backup.Remaining(), backup.PageCount())
		}
	}
	return errors.Join(err, backup.Finish())
}

// publish gives a finished copy its name, durably.
func publish(building, target string, replace bool) error {
	give := os.Link // which never replaces
	if replace {
		give = os.Rename
	}
	if err := give(building, target); errors.Is(err, fs.ErrExist) {
		return exists("%s is there already", target)
	} else if err != nil {
		return fmt.Errorf("create %s: %w", target, err)
	}
	return syncDirectory(filepath.Dir(target))
}

func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
