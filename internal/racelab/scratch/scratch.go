// Package scratch makes places for the lab's databases. Each is of one run, says of itself what it is,
// and is removed afterwards; a database that is there already is never used.
package scratch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"jobledger/ledger"
)

// Prefix is how the names of scratch databases begin on a server; directories have hyphens for it.
const Prefix = "jobledger_lab_"

// Mark is SQL that says in a scratch database what it is, for whoever finds one.
const Mark = `
CREATE TABLE lab_scratch (note TEXT NOT NULL);
INSERT INTO lab_scratch VALUES
  ('A scratch database of jobledger''s lab, for one run: its numbers are wrong on purpose.');
`

// Place is where one database can be made: a file that is not there yet, or an empty database.
type Place struct {
	DSN    string // for the ledger
	Driver string // of the standard library, for others
	remove func() error
}

// Remove removes the place and what was made there.
func (p Place) Remove() error { return p.remove() }

// Make makes a place for a SQLite file, or, if server is not empty, on the PostgreSQL server that its
// URL names; the database in the URL is only connected to.
//
// Errors: INVALID, of the field db, for a server that is none or will not.
func Make(ctx context.Context, server string) (Place, error) {
	switch {
	case server == "":
		return file()
	case IsServer(server):
		return database(ctx, server)
	}
	return Place{}, ledger.InvalidField("db",
		"the lab uses no database that exists: it takes a PostgreSQL server, "+
			"postgres://..., and makes a scratch database there; or leave --db out")
}

// IsServer reports whether a DSN can name a server for scratch databases.
func IsServer(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

func file() (Place, error) {
	dir, err := os.MkdirTemp("", strings.ReplaceAll(Prefix, "_", "-"))
	if err != nil {
		return Place{}, fmt.Errorf("scratch directory: %w", err)
	}
	return Place{filepath.Join(dir, "scratch.db"), "sqlite", func() error { return os.RemoveAll(dir) }}, nil
}
