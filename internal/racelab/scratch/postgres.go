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

const (
	administerMax = 20 * time.Second // to make a database, or to remove it
	checkMax      = 5 * time.Second  // to look at a server
)

// Check says whether the server that a URL names can be had and lets its user make databases. It makes none.
// Errors: INVALID, of the field, if not; that of ctx, if that ended.
func Check(ctx context.Context, field, server string) error {
	if !IsServer(server) {
		return ledger.InvalidField(field, "the lab takes a PostgreSQL server, postgres://...")
	}
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return ledger.InvalidField(field, "%s", malformed)
	}
	looking, stop := context.WithTimeout(ctx, checkMax)
	defer stop()
	var may bool
	conn, err := pgx.ConnectConfig(looking, config)
	if err == nil {
		defer conn.Close(looking)
		const right = `SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user`
		err = conn.QueryRow(looking, right).Scan(&may)
	}
	switch {
	case ctx.Err() != nil:
		return err
	case looking.Err() != nil:
		return ledger.InvalidField(field, "the server does not answer within %v", checkMax)
	case err != nil:
		return ledger.InvalidField(field, "the server cannot be used: %s", reason(err))
	case !may:
		return ledger.InvalidField(field, "the server lets %q make no scratch databases: it takes CREATEDB",
			config.User)
	}
	return nil
}

// malformed is all that is said of a URL that cannot be read: it may hold a password.
const malformed = "it is not a PostgreSQL URL that can be used: check its parameters"

// database makes a database of a new name.
func database(ctx context.Context, server string) (Place, error) {
	config, err := pgx.ParseConfig(server)
	at, urlErr := url.Parse(server)
	if err != nil || urlErr != nil {
		return Place{}, ledger.InvalidField("db", "%s", malformed)
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
	verb, _, _ := strings.Cut(statement, " ")
	return ledger.InvalidField("db", "the server would not %s a scratch database: %s", strings.ToLower(verb),
		reason(err))
}

// reason is in one line what the server, or the way to it, has against it.
func reason(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		text = e.Message
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
