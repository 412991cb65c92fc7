package db

import "context"

// MigratePostgres migrates as [Open] does with an older schema; there is none yet.
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
