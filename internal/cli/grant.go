package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func grantCommand() *cli.Command {
	return &cli.Command{
		Name:      "grant",
		ArgsUsage: "OWNER AMOUNT",
		UsageText: "jobledger grant alice 100 --key invoice-7 --expires 30d",
		Usage:     "give an owner credits, as one new lot",
		Description: "The key names this grant for ever: the same command again grants nothing more " +
			"and gives the first answer again; the same key with other content is refused.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "key", Required: true, Usage: "the `KEY` of this grant"},
			&cli.StringFlag{Name: "priority", Value: "0", Usage: "lots with a lower `N` are spent first"},
			&cli.StringFlag{Name: "expires", Usage: "spendable before this `TIME` (RFC 3339, or 30d from now)"},
			&cli.StringFlag{Name: "effective", Usage: "spendable from this `TIME` on"},
			&cli.StringFlag{Name: "reason", Usage: "a `TEXT` for the journal"},
			&cli.StringFlag{Name: "metadata", Usage: "a `JSON` object for the journal"},
		},
		Action: runGrant,
	}
}

func runGrant(c *cli.Context) error {
	p := ledger.GrantParams{
		Owner:  c.Args().Get(0),
		Key:    c.String("key"),
		Reason: c.String("reason"),
	}
	var err [5]error
	p.Amount, err[0] = ledger.ParseAmount("amount", c.Args().Get(1))
	p.Priority, err[1] = count(c, "priority", 0, ledger.AmountMax)
	p.Effective, err[2] = when(c, "effective")
	p.Expires, err[3] = when(c, "expires")
	p.Metadata, err[4] = metadata(c)
	if err := checks(ledger.CheckID("owner", p.Owner), err[0], ledger.CheckID("key", p.Key),
		err[1], err[2], err[3], err[4]); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.GrantResult, error) {
		return l.Grant(ctx, p)
	}, func(w io.Writer, r *ledger.GrantResult) {
		fmt.Fprintf(w, "%sgranted %d to %s: %s\n", again(r.Replayed), p.Amount, p.Owner, standing(&r.Balance))
	})
}

// again introduces the sentence of a write that had been done before.
func again(replayed bool) string {
	if replayed {
		return "already done, nothing changed: "
	}
	return ""
}

func revokeCommand() *cli.Command {
	return &cli.Command{
		Name:      "revoke",
		ArgsUsage: "OWNER AMOUNT",
		UsageText: "jobledger revoke alice 20 --key chargeback-7 --reason 'charged back'",
		Usage:     "take unspent credits back, as expired",
		Description: "Takes never more than the owner has available; held and used credits stay. " +
			"The key names this revocation for ever.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "key", Required: true, Usage: "the `KEY` of this revocation"},
			&cli.StringFlag{Name: "reason", Required: true, Usage: "a `TEXT` for the journal"},
			&cli.StringFlag{Name: "lot", Usage: "only from the lot with this `ID`"},
		},
		Action: runRevoke,
	}
}

func runRevoke(c *cli.Context) error {
	p := ledger.RevokeParams{
		Owner:  c.Args().Get(0),
		Key:    c.String("key"),
		Reason: c.String("reason"),
		Lot:    c.String("lot"),
	}
	var err error
	p.Amount, err = ledger.ParseAmount("amount", c.Args().Get(1))
	if err := checks(ledger.CheckID("owner", p.Owner), err, ledger.CheckID("key", p.Key),
		givenID(c, "lot")); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.RevokeResult, error) {
		return l.Revoke(ctx, p)
	}, func(w io.Writer, r *ledger.RevokeResult) {
		fmt.Fprintf(w, "%srevoked %d from %s: %s\n", again(r.Replayed), p.Amount, p.Owner, standing(&r.Balance))
	})
}
