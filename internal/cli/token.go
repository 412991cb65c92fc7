package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func tokenCommand() *cli.Command {
	return family("token", "jobledger token create --name app --scope write",
		"say who may use the server",
		tokenCreateCommand(),
		tokenListCommand(),
		tokenRevokeCommand(),
	)
}

func tokenCreateCommand() *cli.Command {
	return &cli.Command{
		Name:      "create",
		UsageText: "jobledger token create --name app --scope write",
		Usage:     "make a token, and show its secret once",
		Description: "Programs send the secret as Authorization: Bearer jl_.... The ledger keeps only its " +
			"SHA-256: if it is lost, revoke the token and make another. A name is used once.\n\n" +
			"read looks; write also grants, creates, submits, reports and cancels; operator also reconciles and " +
			"revokes.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Required: true, Usage: "the `NAME` of who gets it"},
			&cli.StringFlag{Name: "scope", Required: true, Usage: "`SCOPE`: read, write or operator"},
		},
		Action: runTokenCreate,
	}
}

func runTokenCreate(c *cli.Context) error {
	name, scope := c.String("name"), ledger.Scope(c.String("scope"))
	if err := checks(ledger.CheckID("name", name), oneOf("scope", scope, ledger.Scopes...)); err != nil {
		return err
	}
	t, err := with(c, func(ctx context.Context, l *ledger.Ledger) (ledger.NewToken, error) {
		return l.CreateToken(ctx, name, scope)
	})
	if err != nil {
		return err
	}
	note(c, "keep the secret: nobody can show it again")
	return show(c, t, func(w io.Writer) {
		fmt.Fprintf(w, "created token %s (%s):\n%s\n", printable(t.Name), t.Scope, t.Secret)
	})
}

func tokenListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		UsageText: "jobledger token list",
		Usage:     "list all tokens, the revoked ones too",
		Action:    runTokenList,
	}
}

func runTokenList(c *cli.Context) error {
	return listing[ledger.Token]{
		read: func(ctx context.Context, l *ledger.Ledger) ([]ledger.Token, error) {
			return l.Tokens(ctx)
		},
		none: "there is no token yet: token create makes one",
		text: func(w io.Writer, list []ledger.Token) {
			t := newTable("name", "scope", "created", "revoked")
			for i := range list {
				k := &list[i]
				t.AppendRow([]any{printable(k.Name), k.Scope, clock(&k.CreatedAt, ""), clock(k.RevokedAt, "")})
			}
			printTable(w, t)
		},
	}.show(c)
}

func tokenRevokeCommand() *cli.Command {
	return &cli.Command{
		Name:        "revoke",
		ArgsUsage:   "NAME",
		UsageText:   "jobledger token revoke app",
		Usage:       "end a token, at once and for ever",
		Description: "Running servers refuse it from then on. The same command again changes nothing.",
		Action:      runTokenRevoke,
	}
}

func runTokenRevoke(c *cli.Context) error {
	name := c.Args().First()
	if err := ledger.CheckID("name", name); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.Token, error) {
		return l.RevokeToken(ctx, name)
	}, func(w io.Writer, t *ledger.Token) {
		fmt.Fprintf(w, "token %s is revoked since %s\n", printable(t.Name), clock(t.RevokedAt, ""))
	})
}
