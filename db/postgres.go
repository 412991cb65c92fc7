package db

import (
	"context"
	"database/sql/driver"
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

// postgresEngine is the engine as the options bound it.
func postgresEngine(o Options) *engine {
	return &engine{
		name: "postgres",
		// Whatever the server's default: every operation locks what it decides by, so that nothing has to
		// be serialized, and rolled back, by the server.
		begin: beginText("READ COMMITTED READ WRITE", o, idleMax),
		// A snapshot that is older than the lock would not show the migration that the lock waited for.
		snapshot: beginText("REPEATABLE READ READ WRITE", o, 0) +
			"; LOCK TABLE schema_migrations IN ACCESS SHARE MODE",
		read: beginText("REPEATABLE READ READ ONLY", o, 0),
		lock: " FOR NO KEY UPDATE",
		// One transaction per operation, on several connections: the server lets their commits share a
		// sync. Batches in which operations wait for each other's rows were no faster beside others, on
		// one owner or a thousand, and two of them could each have locked what the other needs.
		batchMax:   1,
		writers:    WritersMax,
		pauses:     pauses{min: 100 * time.Microsecond, max: 100 * time.Millisecond, share: 1},
		classify:   classifyPostgres,
		commit:     commitPostgres,
		keeps:      never,
		refused:    refusedPostgres,
		conflict:   conflictPostgres,
		rolledBack: rolledBackPostgres,
		checks:     postgresChecks,
	}
}

// idleMax bounds the time between two statements of a write, which does nothing else meanwhile: a client
// that is gone keeps its locks no longer. A snapshot has no such bound, since it may have to wait for who
// reads what it says, or for what it is to write.
const idleMax = time.Minute

// beginText opens a transaction, in one round trip. The bounds are of the transaction and not of the
// session, which it may share with others by way of a pooler. Whatever the server's default, a COMMIT has
// to tell what it did not wait for: that is a warning.
func beginText(mode string, o Options, idle time.Duration) string {
	return fmt.Sprintf("BEGIN ISOLATION LEVEL %s; SET LOCAL lock_timeout = %d; "+
		"SET LOCAL idle_in_transaction_session_timeout = %d; SET LOCAL client_min_messages = warning",
		mode, o.BusyWait.Milliseconds()+1, idle.Milliseconds())
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

// postgresConnector connects to nothing yet: connections are made when they are asked for.
func postgresConnector(dsn string, o Options) (driver.Connector, error) {
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
	config.DialFunc = dialer(config.ConnectTimeout).DialContext
	config.OnNotice = noteWarning
	return stdlib.GetConnector(*config), nil
}

// openPostgres looks at a database without writing to it, and migrates it if it is an older one.
func openPostgres(
	ctx context.Context, dsn string, o Options,
) (name string, readers, writers *sqlx.DB, err error) {
	name = Name(dsn)
	c, err := postgresConnector(dsn, o)
	if err != nil {
		return name, nil, nil, err
	}
	readers, writers = newPool(c, "pgx", o, readersMax), newPool(c, "pgx", o, WritersMax)
	version, err := inspectPostgres(ctx, readers)
	if err == nil && version == 0 {
		err = refuse("create one with init")
	}
	if err == nil && version < SchemaVersion() && !o.asFound {
		err = migratePostgres(ctx, writers, o, false)
	}
	if err != nil {
		readers.Close()
		writers.Close()
		return name, nil, nil, explainPostgres(dsn, err)
	}
	return name, readers, writers, nil
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
