package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // pgx
	_ "modernc.org/sqlite"             // sqlite
)

// sync measures the disk alone: one page written into a file that has its size, and synced, as a commit
// does it, several times.
func (b *bench) sync() (err error) {
	if b.place.folder == "" {
		return nil
	}
	const (
		times = 40
		pages = 256
	)
	f, err := os.CreateTemp(b.place.folder, ".jobledger-sync-*")
	if err != nil {
		return fmt.Errorf("measure the disk: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	for i := range pages {
		page[0] = byte(i) // so that no file system sees a hole
		if _, err := f.WriteAt(page, int64(i*len(page))); err != nil {
			return fmt.Errorf("measure the disk: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("measure the disk: %w", err)
	}
	for i := range times {
		page[1] = byte(i)
		began := time.Now()
		_, err := f.WriteAt(page, int64(i*len(page)))
		if err = errors.Join(err, fdatasync(f)); err != nil {
			return fmt.Errorf("measure the disk: %w", err)
		}
		b.syncs = append(b.syncs, time.Since(began))
	}
	return nil
}

// meter sees how much is written to the logs of a place, through connections of its own.
type meter struct {
	pools []*sql.DB
	file  bool
}

func newMeter(p place) (m meter, err error) {
	m.file = p.folder != ""
	for _, dsn := range p.dsns {
		driver := "pgx"
		if m.file {
			path, err := filepath.Abs(dsn)
			if err != nil {
				return m, err
			}
			u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(5000)"}
			driver, dsn = "sqlite", u.String()
		}
		pool, err := sql.Open(driver, dsn)
		if err != nil {
			return m, errors.Join(fmt.Errorf("measure the log: %w", err), m.close())
		}
		m.pools = append(m.pools, pool)
	}
	return m, nil
}

func (m *meter) close() (err error) {
	for _, pool := range m.pools {
		err = errors.Join(err, pool.Close())
	}
	return err
}

// during gives what the logs grow by while do runs: pages, where there are files, and bytes.
func (m *meter) during(ctx context.Context, do func() error) (pages, bytes float64, err error) {
	if m.file { // the logs start anew; they must be long enough for all of do
		if _, _, err := m.read(ctx, "TRUNCATE"); err != nil {
			return 0, 0, err
		}
	}
	pagesBefore, bytesBefore, err := m.read(ctx, "NOOP")
	if err == nil {
		err = do()
	}
	if err != nil {
		return 0, 0, err
	}
	pages, bytes, err = m.read(ctx, "NOOP")
	return pages - pagesBefore, bytes - bytesBefore, err
}

// read gives the length of the logs. checkpoint is what SQLite does first: TRUNCATE or NOOP.
func (m *meter) read(ctx context.Context, checkpoint string) (pages, bytes float64, err error) {
	for _, pool := range m.pools {
		var n, size float64
		if m.file {
			const frameHeader = 24
			var busy, moved float64
			err = pool.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+checkpoint+")").Scan(&busy, &n, &moved)
			if err == nil {
				err = pool.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size)
			}
			pages, bytes = pages+n, bytes+n*(size+frameHeader)
		} else {
			err = pool.QueryRowContext(ctx, `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn`).Scan(&size)
			bytes += size
		}
		if err != nil {
			return 0, 0, fmt.Errorf("measure the log: %w", err)
		}
	}
	return pages, bytes, nil
}
