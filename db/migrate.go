package db

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"

	"github.com/jmoiron/sqlx"
)

//go:embed sqlite/*.sql postgres/*.sql
var migrationFiles embed.FS

// migration is one file of a folder of migrations. Its version is its place in the folder.
type migration struct {
	name, text, checksum string
}

// The migrations of the engines: the same versions and file names, each in its engine's SQL.
var (
	sqliteMigrations   = mustLoad("sqlite")
	postgresMigrations = mustLoad("postgres")
)

func mustLoad(folder string) []migration {
	files, err := fs.ReadDir(migrationFiles, folder)
	if err != nil {
		panic(err)
	}
	var list []migration
	for i, f := range files {
		text, err := migrationFiles.ReadFile(path.Join(folder, f.Name()))
		if err != nil {
			panic(err)
		}
		var number int
		if _, err := fmt.Sscanf(f.Name(), "%04d_", &number); err != nil || number != i+1 {
			panic("db: migrations must be numbered 0001, 0002, ... without a gap: " + f.Name())
		}
		sum := sha256.Sum256(text)
		list = append(list, migration{f.Name(), string(text), hex.EncodeToString(sum[:])})
	}
	return list
}

const createMigrations = `
CREATE TABLE schema_migrations (
  version    INTEGER NOT NULL PRIMARY KEY,
  name       TEXT    NOT NULL,
  checksum   TEXT    NOT NULL,
  applied_at INTEGER NOT NULL
)`

// migrate applies the migrations that a database lacks, inside the caller's transaction. It refuses
// a database that is newer than this binary, or whose applied migrations are not this binary's.
func migrate(ctx context.Context, conn *sqlx.Conn, list []migration, now int64) error {
	var applied []struct {
		Version        int
		Name, Checksum string
	}
	const query = `SELECT version, name, checksum FROM schema_migrations ORDER BY version`
	if err := conn.SelectContext(ctx, &applied, query); err != nil {
		return err
	}
	if len(applied) > len(list) {
		return newer(len(applied))
	}
	for i, a := range applied {
		if a.Version != i+1 || a.Checksum != list[i].checksum {
			return refuse("schema version %d (%s) is not the one that this binary knows", a.Version, a.Name)
		}
	}
	for i := len(applied); i < len(list); i++ {
		if _, err := conn.ExecContext(ctx, list[i].text); err != nil {
			return fmt.Errorf("migration %s: %w", list[i].name, err)
		}
		insert := conn.Rebind(`
			INSERT INTO schema_migrations (version, name, checksum, applied_at)
			VALUES (?, ?, ?, ?)`)
		if _, err := conn.ExecContext(ctx, insert, i+1, list[i].name, list[i].checksum, now); err != nil {
			return fmt.Errorf("migration %s: %w", list[i].name, err)
		}
	}
	return nil
}

func newer(version int) error {
	return &Error{Kind: ErrNewer, Reason: fmt.Sprintf(
		"the database has schema version %d and this binary knows up to %d: "+
			"use a newer jobledger; the data is intact",
		version, SchemaVersion())}
}
