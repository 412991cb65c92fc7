package db

import "context"

// Migrations lets this process know only the first migrations of each engine, until restore is called.
func Migrations(first int) (restore func()) {
	sqlite, postgres := sqliteMigrations, postgresMigrations
	sqliteMigrations, postgresMigrations = sqlite[:first], postgres[:first]
	return func() { sqliteMigrations, postgresMigrations = sqlite, postgres }
}

// MigratePostgres migrates as [Open] does with an older schema, also a database that is no older.
func MigratePostgres(ctx context.Context, dsn string, o Options) error {
	o = o.withDefaults()
	c, err := postgresConnector(dsn, o)
	if err != nil {
		return err
	}
	pool := newPool(c, "pgx", o, 1)
	defer pool.Close()
	return explainPostgres(dsn, migratePostgres(ctx, pool, o, false))
}

// LongTransactions is the check of that name, with another limit.
var LongTransactions = transactions

// AddMigration makes this program one of a newer version, until restore.
func AddMigration(text string) (restore func()) {
	known := sqliteMigrations
	next := migration{"next.sql", text, "sum of the next"}
	sqliteMigrations = append(known[:len(known):len(known)], next)
	return func() { sqliteMigrations = known }
}
