package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		UsageText: "jobledger init --db ledger.db",
		Usage:     "create the database",
		Description: "Creates an empty ledger that only you can read, or its tables in an existing PostgreSQL " +
			"database. If there is one already, it is left as it is. No other command ever creates a database.",
		Action: runInit,
	}
}

func runInit(c *cli.Context) error {
	created, err := ledger.Create(c.Context, dbName(c), ledger.Options{})
	if err != nil {
		return err
	}
	engine, err := with(c, func(_ context.Context, l *ledger.Ledger) (string, error) {
		return l.Engine(), nil
	})
	if err != nil {
		return err
	}
	name := ledger.Name(dbName(c))
	answer := struct {
		DB            string `json:"db"`
		Engine        string `json:"engine"`
		SchemaVersion int    `json:"schema_version"`
		Created       bool   `json:"created"`
	}{name, engine, ledger.SchemaVersion(), created}
	return show(c, answer, func(w io.Writer) {
		if created {
			fmt.Fprintf(w, "created %s, schema version %d\n", printable(name), answer.SchemaVersion)
		} else {
			fmt.Fprintf(w, "%s is a jobledger database already: nothing changed\n", printable(name))
		}
	})
}
