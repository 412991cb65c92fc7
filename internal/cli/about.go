package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func schemaCommand(schema string) *cli.Command {
	return &cli.Command{
		Name:      "schema",
		UsageText: "jobledger schema",
		Usage:     "print the SQL of the tables",
		Action: func(c *cli.Context) error {
			answer := struct {
				SchemaVersion int    `json:"schema_version"`
				SQL           string `json:"sql"`
			}{ledger.SchemaVersion(), schema}
			return show(c, answer, func(w io.Writer) { fmt.Fprint(w, schema) })
		},
	}
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:      "version",
		UsageText: "jobledger version",
		Usage:     "print the versions of the program and its parts",
		Action:    runVersion,
	}
}

// versions is what the program is made of.
type versions struct {
	Version       string `json:"version"`
	Go            string `json:"go"`
	Platform      string `json:"platform"`
	SQLite        string `json:"sqlite"` // of the driver modernc.org/sqlite
	SchemaVersion int    `json:"schema_version"`
}

func runVersion(c *cli.Context) error {
	v := versions{
		Version:       "unknown",
		Go:            runtime.Version(),
		Platform:      runtime.GOOS + "/" + runtime.GOARCH,
		SQLite:        "unknown",
		SchemaVersion: ledger.SchemaVersion(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = info.Main.Version
		for _, module := range info.Deps {
			if module.Path == "modernc.org/sqlite" {
				v.SQLite = module.Version
			}
		}
	}
	return show(c, v, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s\n%s %s\nmodernc.org/sqlite %s, schema version %d\n",
			programName, v.Version, v.Go, v.Platform, v.SQLite, v.SchemaVersion)
	})
}
