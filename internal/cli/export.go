package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		UsageText: "jobledger export --db ledger.db",
		Usage:     "write all that is needed to rebuild the ledger",
		Description: "One JSON object per line, in an order that depends on nothing but the content: two exports " +
			"of the same ledger are the same bytes. The last line has the counts and a SHA-256 of the rest; " +
			"import refuses an export that was cut short or changed.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "jsonl", Usage: "the `FORMAT`: jsonl"},
		},
		Action: runExport,
	}
}

func runExport(c *cli.Context) error {
	if err := oneOf("format", c.String("format"), "jsonl"); err != nil {
		return err
	}
	_, err := with(c, func(ctx context.Context, l *ledger.Ledger) (struct{}, error) {
		return struct{}{}, l.Export(ctx, c.App.Writer)
	})
	return err
}
