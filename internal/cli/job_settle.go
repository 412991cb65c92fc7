package cli

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func jobSettleCommand() *cli.Command {
	return &cli.Command{
		Name:      "settle",
		ArgsUsage: "ID",
		UsageText: "jobledger job settle j1",
		Usage:     "settle a job that was imported as ended and never settled",
		Description: "Only with evidence that the provider rejected it: import it with the job, or record it " +
			"with reconcile reject, which settles the job too. What the imported books had returned counts; the " +
			"rest is returned now. The same command again returns nothing more.",
		Action: runJobSettle,
	}
}

func runJobSettle(c *cli.Context) error {
	id := c.Args().First()
	if err := ledger.CheckID("id", id); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.Settlement, error) {
		return l.SettleLegacy(ctx, id)
	}, func(w io.Writer, s *ledger.Settlement) { printSettlement(w, s) })
}
