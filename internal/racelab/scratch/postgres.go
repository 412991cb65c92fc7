package scratch

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the standard library, pgx

	"jobledger/ledger"
)

// administerMax bounds the making of a database, and its removal.
const administerMax = 20 * time.Second

// database makes a database of a new name.
func database(ctx context.Context, server string) (Place, error) {
	config, err := pgx.ParseConfig(server)
	at, urlErr := url.Parse(server)
	if err != nil || urlErr != nil {
		return Place{}, ledger.InvalidField("db",
			"it is not a PostgreSQL URL that can be used: check its parameters")
	}
	name := Prefix + strings.ToLower(rand.Text()[:12])
	const like = " TEMPLATE template0 ENCODING 'UTF8'"
	if err := administer(ctx, config, "CREATE DATABASE "+name+like); err != nil {
		return Place{}, err
	}
	remove := func() error {
		// What ended the run must not keep its database alive.
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), administerMax)
		defer stop()
		return administer(ctx, config, "DROP DATABASE "+name+" WITH (FORCE)")
	}
	at.Path = "/" + name
	return Place{at.String(), "pgx", remove}, nil
}

// administer runs a statement outside of any transaction, and not half of it: ctx bounds how long the
// server is looked for. The server's no is INVALID.
func administer(ctx context.Context, config *pgx.ConnConfig, statement string) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		whole, stop := context.WithTimeout(context.WithoutCancel(ctx), administerMax)
		defer stop()
		defer conn.Close(whole)
		_, err = conn.Exec(whole, statement)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	reason := err.Error()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		reason = e.Message
	}
	lines := strings.Split(strings.TrimSpace(reason), "\n")
	verb, _, _ := strings.Cut(statement, " ")
	return ledger.InvalidField("db", "the server would not %s a scratch database: %s", strings.ToLower(verb),
		strings.TrimSpace(lines[len(lines)-1]))
}
