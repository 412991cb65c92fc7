package db

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
)

var postgresEngine = engine{
	name: "postgres",
	// Whatever the server's default: every operation locks what it decides by, so that nothing has to
	// be serialized, and rolled back, by the server.
	begin:    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
	snapshot: "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
	read:     "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
	lock:     " FOR NO KEY UPDATE",
	// One transaction per operation, on several connections: the server lets their commits share a
	// sync. Batches in which operations wait for each other's rows were no faster beside others, on one
	// owner or a thousand, and two of them could each have locked what the other needs.
	batchMax:   1,
	writers:    WritersMax,
	pauseMax:   100 * time.Millisecond,
	classify:   classifyPostgres,
	commit:     commitPostgres,
	keeps:      never,
	refused:    refusedPostgres,
	conflict:   conflictPostgres,
	rolledBack: rolledBackPostgres,
	checks:     postgresChecks,
}

func isPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// Name is a DSN as it may be shown: without a password, and without parameters, which can hold one.
func Name(dsn string) string {
	if !isPostgres(dsn) {
		return dsn
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "the PostgreSQL URL"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}

// postgresPool opens nothing yet: connections are made when they are asked for.
func postgresPool(dsn string, o Options, connections int) (*sqlx.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The text of the error repeats the DSN.
		return nil, refuse("%s is not a PostgreSQL URL that can be used: check its parameters", Name(dsn))
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "jobledger"
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = o.BusyWait
	}
	config.OnNotice = noteWarning
	bounds := fmt.Sprintf("SET lock_timeout = %d; SET idle_in_transaction_session_timeout = 60000",
		o.BusyWait.Milliseconds()+1)
	c := stdlib.GetConnector(*config, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, bounds)
		return err
	}))
	return newPool(c, "pgx", o, connections), nil
}

// openPostgres looks at a database without writing to it, and migrates it if it is an older one.
func openPostgres(
	ctx context.Context, dsn string, o Options,
) (name string, readers, writers *sqlx.DB, err error) {
	name = Name(dsn)
	if readers, err = postgresPool(dsn, o, readersMax); err != nil {
		return name, nil, nil, err
	}
	if writers, err = postgresPool(dsn, o, WritersMax); err != nil {
		return name, nil, nil, err
	}
	version, err := inspectPostgres(ctx, readers)
	if err == nil && version == 0 {
		err = refuse("create one with init")
	}
	if err == nil && version < SchemaVersion() && !o.asFound {
		err = migratePostgres(ctx, writers, o.Clock().UnixMicro(), false)
	}
	if err != nil {
		readers.Close()
		writers.Close()
		return name, nil, nil, explainPostgres(dsn, err)
	}
	return name, readers, writers, nil
}

// inspectPostgres gives the schema version of a database, 0 if it has no table of migrations. It refuses
// one that cannot be ours.
func inspectPostgres(ctx context.Context, pool *sqlx.DB) (version int, err error) {
	conn, err := pool.Connx(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var about struct {
		Schema   *string
		Encoding string
		Found    bool
	}
	if err := conn.GetContext(ctx, &about, `
		SELECT current_schema() AS schema, pg_encoding_to_char(encoding) AS encoding,
		       EXISTS (SELECT 1 FROM information_schema.tables
		               WHERE table_schema = current_schema() AND table_name = 'schema_migrations') AS found
		FROM pg_database
		WHERE datname = current_database()`); err != nil {
		return 0, err
	}
	switch {
	case about.Schema == nil:
		return 0, refuse("no schema of its search_path exists")
	case about.Encoding != "UTF8":
		return 0, refuse("its encoding is %s and must be UTF8", about.Encoding)
	case !about.Found:
		return 0, nil
	}
	if err := conn.GetContext(ctx, &version, `SELECT COUNT(*) FROM schema_migrations`); err != nil {
		return 0, err
	}
	if version == 0 {
		return 0, refuse("its schema_migrations is another program's")
	}
	if version < SchemaVersion() {
		return version, nil // migratePostgres checks them
	}
	return version, foreign(migrate(ctx, conn, postgresMigrations, 0))
}

// foreign refuses a table of migrations that is not like ours.
func foreign(err error) error {
	if sqlState(err) == "42703" { // undefined_column
		return refuse("its schema_migrations is another program's")
	}
	return err
}

// createPostgres makes the tables in one transaction. Of several processes that try, one makes them:
// the others wait for its schema_migrations, which can be there once, and then find it.
func createPostgres(ctx context.Context, dsn string, o Options) (created bool, err error) {
	pool, err := postgresPool(dsn, o, 1)
	if err != nil {
		return false, err
	}
	defer pool.Close()
	for range repeatsMax + 1 {
		var version int
		version, err = inspectPostgres(ctx, pool)
		created = version == 0
		if err == nil && version < SchemaVersion() {
			err = migratePostgres(ctx, pool, o.Clock().UnixMicro(), created)
		}
		if err == nil || conflictPostgres(err) == 0 {
			break
		}
	}
	return created && err == nil, explainPostgres(dsn, err)
}

const createPostgresMigrations = `
CREATE TABLE schema_migrations (
  version    BIGINT NOT NULL PRIMARY KEY,
  name       TEXT   NOT NULL,
  checksum   TEXT   NOT NULL,
  applied_at BIGINT NOT NULL
)`

// migratePostgres brings the schema up to date in one transaction. To create it is to make the table
// of migrations first; what this fails with if another process made it meanwhile is a conflict.
func migratePostgres(ctx context.Context, pool *sqlx.DB, now int64, create bool) error {
	conn, err := pool.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	first := `SELECT version FROM schema_migrations ORDER BY version` + postgresEngine.lock
	if create {
		first = createPostgresMigrations
	}
	for _, statement := range []string{postgresEngine.begin, first} {
		if err == nil {
			_, err = conn.ExecContext(ctx, statement)
		}
	}
	if create && sqlState(err) == duplicateTable {
		err = Changed(err)
	}
	if err == nil {
		err = foreign(migrate(ctx, conn, postgresMigrations, now))
	}
	if err == nil {
		err = commitPostgres(ctx, conn)
	}
	if err != nil {
		discard(conn) // and with it the transaction
	}
	return err
}

// commitPostgres commits. Two answers of the server are no errors to the driver: ROLLBACK, if a statement
// of the transaction had failed; and a warning, if somebody has told it to wait no longer for a standby,
// which may not have the transaction and may soon be the primary.
func commitPostgres(ctx context.Context, conn *sqlx.Conn) error {
	return conn.Raw(func(c any) error {
		server := c.(interface{ Conn() *pgx.Conn }).Conn()
		delete(server.PgConn().CustomData(), warning)
		tag, err := server.Exec(ctx, "COMMIT")
		warned := server.PgConn().CustomData()[warning]
		switch {
		case err != nil:
			return err
		case tag.String() != "COMMIT":
			return errRolledBack
		case warned != nil:
			return fmt.Errorf("the server warned: %v", warned)
		}
		return nil
	})
}

var errRolledBack = errors.New("a statement of the operation had failed: it was rolled back")

// warning is where a connection keeps the last warning of its server.
const warning = "warning"

func noteWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warning] = n.Message
	}
}
