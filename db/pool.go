package db

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jmoiron/sqlx"
)

// newPool keeps up to a number of a driver's connections.
func newPool(c driver.Connector, driverName string, o Options, connections int) *sqlx.DB {
	if o.Wrap != nil {
		c = wrapper{c, o.Wrap}
	}
	pool := sqlx.NewDb(sql.OpenDB(c), driverName)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return pool
}

// wrapper connects as its connector does, and puts [Options.Wrap] around what comes of it.
type wrapper struct {
	driver.Connector
	wrap func(driver.Conn) driver.Conn
}

// Connect makes a connection.
func (w wrapper) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return w.wrap(conn), nil
}
