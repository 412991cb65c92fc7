package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
)

// createSQLite builds a whole database under a temporary name and links it into place. A crash
// leaves nothing under the final name, and of several processes exactly one creates it.
func createSQLite(ctx context.Context, dsn string, o Options) (created bool, err error) {
	path, err := sqlitePath(dsn)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(path); err == nil {
		return false, existing(ctx, path, o)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return false, missing(path)
	}
	building, err := os.CreateTemp(filepath.Dir(path), ".jobledger-new-*") // mode 0600
	if err != nil {
		return false, &Error{Kind: ErrReadOnly, Reason: "cannot create " + path, Err: errors.Unwrap(err)}
	}
	defer removeDatabase(building.Name())
	if err := errors.Join(building.Close(), build(ctx, building.Name(), o)); err != nil {
		return false, err
	}
	if err := os.Link(building.Name(), path); errors.Is(err, os.ErrExist) {
		return false, existing(ctx, path, o)
	} else if err != nil {
		return false, fmt.Errorf("create %s: %w", path, err)
	}
	return true, syncDirectory(filepath.Dir(path))
}

// existing accepts a jobledger database that is there already, and refuses anything else.
func existing(ctx context.Context, path string, o Options) error {
	d, err := Open(ctx, path, o)
	if err != nil {
		return err
	}
	return d.Close()
}

// build makes an empty file a database with the current schema.
func build(ctx context.Context, path string, o Options) error {
	pool, err := openPool(path, true, o, 1)
	if err != nil {
		return err
	}
	err = stamp(ctx, pool)
	if err == nil {
		err = migrateSQLite(ctx, pool, o.Clock().UnixMicro())
	}
	if err == nil {
		err = flush(ctx, pool)
	}
	return classifySQLite(errors.Join(err, pool.Close()))
}

// flush moves the whole of a new database into its main file, the only one that gets the final name.
func flush(ctx context.Context, pool *sqlx.DB) error {
	var busy, frames, copied int
	row := pool.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	if err := row.Scan(&busy, &frames, &copied); err != nil {
		return err
	}
	if busy != 0 || frames != copied {
		return fmt.Errorf("checkpoint: %d of %d pages", copied, frames)
	}
	return nil
}

func stamp(ctx context.Context, pool *sqlx.DB) error {
	if _, err := pool.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return err
	}
	_, err := pool.ExecContext(ctx, createMigrations)
	return err
}

func removeDatabase(path string) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(path + suffix)
	}
}

// syncDirectory makes a new name durable. Some systems cannot sync a directory; they need not.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = dir.Sync()
	return dir.Close()
}
