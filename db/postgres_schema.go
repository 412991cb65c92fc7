package db

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// beginInspection sees with each statement what is committed by then. The catalog always shows that: one
// snapshot for all would show a table that was made since it was taken, and none of its rows.
const beginInspection = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"

// inspectPostgres gives the schema version of a database, 0 if it has no table of migrations. It refuses
// one that cannot be ours.
func inspectPostgres(ctx context.Context, pool *sqlx.DB) (version int, err error) {
	conn, err := pool.Connx(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_, err = conn.ExecContext(ctx, beginInspection)
	if err == nil {
		version, err = versionPostgres(ctx, conn)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "ROLLBACK")
	}
	if err != nil {
		discard(conn) // and with it the transaction
	}
	return version, err
}

func versionPostgres(ctx context.Context, conn *sqlx.Conn) (version int, err error) {
	var about struct {
		Schema          *string
		Role, Encoding  string
		Found, Readable bool
	}
	// The catalog has every table, also one that the role may not read.
	if err := conn.GetContext(ctx, &about, `
		SELECT schema, role, encoding, migrations IS NOT NULL AS found,
		       COALESCE(has_table_privilege(migrations, 'SELECT'), FALSE) AS readable
		FROM (SELECT current_schema() AS schema, current_user AS role,
		             pg_encoding_to_char(encoding) AS encoding,
		             to_regclass(quote_ident(current_schema()) || '.schema_migrations') AS migrations
		      FROM pg_database
		      WHERE datname = current_database()) here`); err != nil {
		return 0, err
	}
	switch {
	case about.Schema == nil:
		return 0, refuse("no schema of its search_path exists for the role %s", about.Role)
	case about.Encoding != "UTF8":
		return 0, refuse("its encoding is %s and must be UTF8", about.Encoding)
	case !about.Found:
		return 0, nil
	case !about.Readable:
		return 0, &Error{Kind: ErrReadOnly, Reason: fmt.Sprintf("the role %s may not read schema_migrations: "+
			"GRANT it SELECT, INSERT and UPDATE on all tables of the ledger, and DELETE on polls", about.Role)}
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
	c, err := postgresConnector(dsn, o)
	if err != nil {
		return false, err
	}
	pool := newPool(c, "pgx", o, 1)
	defer pool.Close()
	for range repeatsMax + 1 {
		var version int
		version, err = inspectPostgres(ctx, pool)
		created = version == 0
		if err == nil && version < SchemaVersion() {
			err = migratePostgres(ctx, pool, o, created)
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
// of migrations first; what this fails with if another process made it meanwhile is a conflict. To migrate
// it is to keep everybody from that table, which each write reads first: those that are under way end
// before, and the next ones find the new version.
func migratePostgres(ctx context.Context, pool *sqlx.DB, o Options, create bool) error {
	conn, err := pool.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	first := `LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE`
	if create {
		first = createPostgresMigrations
	}
	if _, err = conn.ExecContext(ctx, postgresEngine(o).begin); err != nil {
		err = refusedPostgres(err)
	} else if _, err = conn.ExecContext(ctx, first); create && sqlState(err) == duplicateTable {
		err = Changed(err)
	}
	if err == nil {
		err = foreign(migrate(ctx, conn, postgresMigrations, o.Clock().UnixMicro()))
	}
	if err == nil {
		err = commitPostgres(ctx, conn)
		if err != nil && !rolledBackPostgres(err) {
			err = unknown(err)
		}
	}
	if err != nil {
		discard(conn) // and with it the transaction
	}
	return err
}
