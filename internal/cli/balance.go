package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func balanceCommand() *cli.Command {
	return &cli.Command{
		Name:      "balance",
		ArgsUsage: "[OWNER]",
		UsageText: "jobledger balance\njobledger balance alice --lots\njobledger balance alice --at -24h",
		Usage:     "show where an owner's credits are, or everyone's",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "at", Usage: "as of this `TIME` (RFC 3339, or a span such as -1h)"},
			&cli.BoolFlag{Name: "lots", Usage: "with the owner's lots, in the order in which they are spent"},
		},
		Action: runBalance,
	}
}

func runBalance(c *cli.Context) error {
	at, err := when(c, "at")
	if err != nil {
		return err
	}
	if c.NArg() == 0 {
		return runBalances(c)
	}
	p := ledger.BalanceParams{Owner: c.Args().First(), At: at, Lots: c.Bool("lots")}
	if p.Lots && c.String("at") != "" {
		return usage("lots", "--lots shows the lots as they are now: leave out --at")
	}
	if err := ledger.CheckID("owner", p.Owner); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.Balance, error) {
		return l.Balance(ctx, p)
	}, func(w io.Writer, b *ledger.Balance) {
		printBalances(w, []ledger.Balance{*b})
		if p.Lots {
			fmt.Fprintln(w)
			printLots(w, b.Lots)
		}
	})
}

// runBalances reads the balances of all owners, page by page.
func runBalances(c *cli.Context) error {
	for _, flag := range []string{"at", "lots"} {
		if c.IsSet(flag) {
			return usage(flag, "--%s needs an OWNER", flag)
		}
	}
	all, err := with(c, func(ctx context.Context, l *ledger.Ledger) ([]ledger.Balance, error) {
		all, after := []ledger.Balance{}, ""
		for {
			page, err := l.Balances(ctx, after, ledger.PageMax)
			all = append(all, page...)
			if err != nil || len(page) < ledger.PageMax {
				return all, err
			}
			after = page[len(page)-1].Owner
		}
	})
	if err != nil {
		return err
	}
	return show(c, items(all), func(w io.Writer) { printBalances(w, all) })
}

// printBalances writes one row per owner and, if there are several, their sum.
func printBalances(w io.Writer, all []ledger.Balance) {
	var sum ledger.Balance
	for _, b := range all {
		sum.Available += b.Available
		sum.Held += b.Held
		sum.Used += b.Used
		sum.Expired += b.Expired
		sum.Scheduled += b.Scheduled
	}
	columns := []string{"owner", "#available", "#held", "#used", "#expired", "#granted"}
	if sum.Scheduled > 0 {
		columns = append(columns, "#scheduled")
	}
	row := func(name string, b ledger.Balance) []any {
		cells := []any{name, b.Available, b.Held, b.Used, b.Expired, b.Granted(), b.Scheduled}
		return cells[:len(columns)]
	}
	t := newTable(columns...)
	for _, b := range all {
		t.AppendRow(row(b.Owner, b))
	}
	if len(all) > 1 {
		t.AppendFooter(row("total", sum))
	}
	printTable(w, t)
}

// printLots writes lots in the order given. When a lot may be spent stands under its id.
func printLots(w io.Writer, lots []ledger.Lot) {
	t := newTable("lot", "#priority", "#available", "#held", "#used", "#expired")
	for i := range lots {
		l := &lots[i]
		id := l.ID
		if l.EffectiveAt != nil {
			id += "\n  from " + clock(l.EffectiveAt, "")
		}
		if l.ExpiresAt != nil {
			id += "\n  expires " + clock(l.ExpiresAt, "")
		}
		t.AppendRow([]any{id, l.Priority, l.Available, l.Held, l.Used, l.Expired})
	}
	if len(lots) > 1 {
		var sum ledger.Lot
		for i := range lots {
			sum.Available += lots[i].Available
			sum.Held += lots[i].Held
			sum.Used += lots[i].Used
			sum.Expired += lots[i].Expired
		}
		t.AppendFooter([]any{"total", "", sum.Available, sum.Held, sum.Used, sum.Expired})
	}
	printTable(w, t)
}
