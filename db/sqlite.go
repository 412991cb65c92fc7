package db

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

// applicationID marks a SQLite file as ours ("JBLG"), so that no other program's file is taken for one.
const applicationID = 0x4a424c47

func sqliteEngine(o Options) *engine {
	return &engine{
		name:     "sqlite",
		prepares: true,
		begin:    "BEGIN IMMEDIATE",
		snapshot: "BEGIN IMMEDIATE",
		read:     "BEGIN",
		writers:  1,
		batchMax: BatchMax,
		// Who has waited for long must try about as often as who comes, or would wait for ever: the pause is the
		// shortest up to 62 ms of waiting, and the longest only after a second.
		pauses: pauses{
			min: 250 * time.Microsecond, max: 4 * time.Millisecond, share: 250,
			turn: 7 * time.Millisecond, yield: 350 * time.Microsecond,
		},
		// The connection was opened with a busy_timeout. From here on the waiting is ours: SQLite sleeps
		// up to 100 ms between tries, and a commit of another process takes about one.
		prepare:    "PRAGMA busy_timeout = 0",
		classify:   classifySQLite,
		check:      checkWriter(o),
		keeps:      func(err error) bool { return errors.Is(err, ErrBusy) },
		commit:     execCommit,
		conflict:   func(error) int { return 0 },
		rolledBack: never,
		checks:     sqliteChecks,
	}
}

// never: a writer that has SQLite's lock has the database to itself, and the answer to a COMMIT
// does not tell what reached the disk.
func never(error) bool { return false }

func execCommit(ctx context.Context, conn *sqlx.Conn) error {
	_, err := conn.ExecContext(ctx, "COMMIT")
	return err
}

func init() {
	// Without open file description locks, closing any other descriptor of the file in this process
	// drops SQLite's locks. Platforms that lack them go without: nothing here opens the file twice.
	_, _ = sqlite.OFDLocking(true)
	sqlite.StrictPragmas(true)
	sqlx.BindDriver("sqlite", sqlx.QUESTION)
}

type pragma struct{ name, value, readBack string }

// pragmas are what every connection must have; they are read back, because a key that the driver
// does not know is ignored without an error.
func (o Options) pragmas() []pragma {
	synchronous := pragma{"synchronous", "FULL", "2"}
	if o.RiskPowerLoss {
		synchronous = pragma{"synchronous", "NORMAL", "1"}
	}
	return []pragma{
		{"busy_timeout", "5000", "5000"}, // first: the others may have to wait
		synchronous,
		{"foreign_keys", "1", "1"},
		{"trusted_schema", "0", "0"},
		{"cell_size_check", "1", "1"},
		{"temp_store", "2", "2"},
		{"cache_size", "-32768", "-32768"}, // KiB; the pages that a busy hour touches
	}
}

// sqliteDSN escapes a path into the driver's URI form, so that %, ? and # stay part of the name.
func sqliteDSN(path string, writable bool, o Options) string {
	query := url.Values{"_dqs": {"0"}, "_defensive": {"1"}, "_error_rc": {"1"}}
	for _, p := range o.pragmas() {
		query.Add("_pragma", p.name+"("+p.value+")")
	}
	if writable {
		query.Add("mode", "rw")
		query.Add("_pragma", "journal_mode(WAL)")
		query.Add("_pragma", "journal_size_limit(67108864)")
		// A page that many commits touch is copied back once: 8000 pages are 32 MB of WAL.
		query.Add("_pragma", "wal_autocheckpoint(8000)")
	} else {
		query.Add("mode", "ro")
		query.Add("_pragma", "query_only(1)")
	}
	return fileURL(path, query.Encode())
}

func fileURL(path, query string) string {
	name := filepath.ToSlash(path)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // a Windows drive letter
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: name, RawQuery: query}).String()
}

func openPool(path string, writable bool, o Options, connections int) (*sqlx.DB, error) {
	return openURL(sqliteDSN(path, writable, o), o, connections)
}

func openURL(dsn string, o Options, connections int) (*sqlx.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, classifySQLite(err)
	}
	return newPool(c, "sqlite", o, connections), nil
}

// openSQLite checks the file without writing to it, and only then opens it for writing.
func openSQLite(
	ctx context.Context, dsn string, o Options,
) (path string, readers, writers *sqlx.DB, err error) {
	if path, err = sqlitePath(dsn); err != nil {
		return path, nil, nil, err
	}
	if err := checkFile(path); err != nil {
		return path, nil, nil, err
	}
	if readers, err = openPool(path, false, o, readersMax); err != nil {
		return path, nil, nil, err
	}
	defer func(opened *sqlx.DB) {
		if err != nil {
			opened.Close()
		}
	}(readers)
	version, err := inspect(ctx, readers, path, o)
	if err != nil {
		return path, nil, nil, err
	}
	if writers, err = openPool(path, true, o, 1); err != nil {
		return path, nil, nil, err
	}
	if version < SchemaVersion() && !o.asFound {
		if err = migrateSQLite(ctx, writers, o.Clock().UnixMicro()); err != nil {
			writers.Close()
			return path, nil, nil, err
		}
	}
	return path, readers, writers, nil
}

// The longest names that SQLite opens, with room for the files that it keeps beside the database.
const (
	pathMax = 500
	nameMax = 255 - len("-wal")
)

// keywordDSN is the other form of a PostgreSQL DSN. It may have a password.
var keywordDSN = regexp.MustCompile(`^\s*(\w+\s*=.*\s)?(host|hostaddr|user|password|sslpassword|dbname)\s*=`)

// sqlitePath makes a path absolute. Names with a meaning to SQLite itself are refused, and names that
// are too long for it.
func sqlitePath(dsn string) (string, error) {
	if dsn == "" || dsn == ":memory:" || strings.ContainsRune(dsn, 0) {
		return "", refuse("%q is not the name of a file", dsn)
	}
	if keywordDSN.MatchString(dsn) {
		return "", refuse("key=value pairs are not a DSN that this binary knows, and they are not repeated here: " +
			"name a postgres:// URL, or a file as ./NAME")
	}
	if scheme, _, found := strings.Cut(dsn, "://"); found {
		return "", refuse("%s:// is not a kind of database that this binary knows: "+
			"name a file or a postgres:// URL", scheme)
	}
	path, err := filepath.Abs(dsn)
	if err != nil {
		return "", refuse("%s: %v", dsn, err)
	}
	if len(path) > pathMax || len(filepath.Base(path)) > nameMax {
		return "", refuse("%s is too long a name: it takes up to %d bytes, %d with its directory",
			path, nameMax, pathMax)
	}
	return path, nil
}

// checkFile looks at a file without opening it. (Opening and closing it would drop SQLite's locks.)
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return missing(path)
	case err != nil:
		return refuse("cannot look at %s: %v", path, errors.Unwrap(err))
	case info.IsDir():
		return refuse("%s is a directory", path)
	case !info.Mode().IsRegular():
		return refuse("%s is not a regular file", path)
	case info.Size() == 0:
		return refuse("%s is empty, not a jobledger database", path)
	}
	return nil
}

func missing(path string) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return refuse("no ledger at %s: the directory does not exist", path)
	}
	return refuse("no ledger at %s: create one with init", path)
}

// inspect reads what a file is, its schema version, and whether the connection is set as asked.
func inspect(ctx context.Context, pool *sqlx.DB, path string, o Options) (version int, err error) {
	conn, err := pool.Connx(ctx)
	if err != nil {
		return 0, explainOpen(path, err)
	}
	defer conn.Close()
	var id int64
	if err := conn.GetContext(ctx, &id, `PRAGMA application_id`); err != nil {
		return 0, explainOpen(path, err)
	}
	if id != applicationID {
		return 0, refuse("%s is another program's database (application_id %d)", path, id)
	}
	if err := conn.GetContext(ctx, &version, `PRAGMA user_version`); err != nil {
		return 0, explainOpen(path, err)
	}
	if version > SchemaVersion() {
		return 0, locate(path, newer(version))
	}
	if err := checkConnection(ctx, conn, path, o); err != nil {
		return 0, err
	}
	return version, locate(path, checkMigrations(ctx, conn, version))
}

// locate puts the path before the reason of a refusal.
func locate(path string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	return &Error{Kind: e.Kind, Reason: path + ": " + e.text(), Err: e.Err}
}

// checkConnection proves that the connection is to the file that was asked for, with every pragma.
func checkConnection(ctx context.Context, conn *sqlx.Conn, path string, o Options) error {
	var opened string
	const query = `SELECT file FROM pragma_database_list WHERE name = 'main'`
	if err := conn.GetContext(ctx, &opened, query); err != nil {
		return explainOpen(path, err)
	}
	wanted, err := os.Stat(path)
	if err != nil {
		return missing(path)
	}
	if got, err := os.Stat(opened); err != nil || !os.SameFile(wanted, got) {
		return refuse("%s was asked for and %s was opened", path, opened)
	}
	for _, p := range o.pragmas() {
		var value string
		if err := conn.GetContext(ctx, &value, `PRAGMA `+p.name); err != nil {
			return explainOpen(path, err)
		}
		if value != p.readBack {
			return fmt.Errorf("pragma %s is %s, want %s", p.name, value, p.readBack)
		}
	}
	return nil
}

// checkWriter proves of a connection that writes, too, that it is to the right file and as durable as
// was asked for.
func checkWriter(o Options) checkFunc {
	return func(ctx context.Context, conn *sqlx.Conn, path string) error {
		var mode string
		if err := conn.GetContext(ctx, &mode, `PRAGMA journal_mode`); err != nil {
			return classifySQLite(err)
		}
		if mode != "wal" {
			return fmt.Errorf("pragma journal_mode is %s, want wal", mode)
		}
		return checkConnection(ctx, conn, path, o)
	}
}

// checkMigrations compares the migrations applied to a current database with this binary's.
func checkMigrations(ctx context.Context, conn *sqlx.Conn, version int) error {
	if version < SchemaVersion() {
		return nil // migrateSQLite checks them
	}
	err := classifySQLite(migrate(ctx, conn, sqliteMigrations, 0))
	if _, known := errors.AsType[*Error](err); !known && !plain(err) {
		err = refuse("its schema cannot be read: %v", err)
	}
	return err
}

// migrateSQLite brings the schema up to date in one transaction. Of several processes that try,
// one does it and the others find it done.
func migrateSQLite(ctx context.Context, pool *sqlx.DB, now int64) (err error) {
	conn, err := pool.Connx(ctx)
	if err != nil {
		return classifySQLite(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		discard(conn)
		return classifySQLite(err)
	}
	err = migrate(ctx, conn, sqliteMigrations, now)
	if err == nil {
		_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", SchemaVersion()))
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		discard(conn) // and with it the transaction
	}
	return classifySQLite(err)
}

// classifySQLite gives a driver error its kind, by code and never by text.
func classifySQLite(err error) error {
	if err == nil {
		return nil // what follows allocates, and every statement comes by
	}
	var e *sqlite.Error
	if _, known := errors.AsType[*Error](err); known || plain(err) || !errors.As(err, &e) {
		return err
	}
	kind := map[int]error{
		5:  ErrBusy,       // SQLITE_BUSY
		6:  ErrBusy,       // SQLITE_LOCKED
		8:  ErrReadOnly,   // SQLITE_READONLY
		10: ErrIO,         // SQLITE_IOERR
		11: ErrDamaged,    // SQLITE_CORRUPT
		13: ErrBusy,       // SQLITE_FULL
		14: ErrNoLedger,   // SQLITE_CANTOPEN
		19: ErrConstraint, // SQLITE_CONSTRAINT
		26: ErrNoLedger,   // SQLITE_NOTADB
	}[e.Code()&0xff]
	if kind == nil {
		return err
	}
	reason := ""
	if e.Code()&0xff == 13 {
		reason = "the disk is full"
	}
	return &Error{Kind: kind, Reason: reason, Err: err}
}

// explainOpen words the errors of a first look at a file for the person who named it.
func explainOpen(path string, err error) error {
	err = classifySQLite(err)
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case 8:
		return &Error{Kind: ErrReadOnly, Reason: fmt.Sprintf(
			"cannot read %s: its directory is read-only, and SQLite must make -wal and -shm files there", path)}
	case 14:
		return refuse("cannot open %s: check the permissions of the file and of its directory", path)
	case 26:
		return refuse("%s is not a database", path)
	case 11:
		return refuse("%s is damaged: restore a backup", path)
	}
	return err
}
