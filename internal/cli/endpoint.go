package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"jobledger/internal/httpcall"
	"jobledger/ledger"
)

func endpointCommand() *cli.Command {
	return family("endpoint", "jobledger endpoint add https://app.example/hooks --secret-file hook.secret",
		"say where events are sent",
		endpointAddCommand(),
		endpointListCommand(),
		endpointRotateCommand(),
		endpointDisableCommand(),
		endpointEnableCommand(),
	)
}

func secretFileFlag() cli.Flag {
	return &cli.StringFlag{Name: "secret-file", Required: true, Usage: "the `FILE` with its secret"}
}

func endpointAddCommand() *cli.Command {
	return &cli.Command{
		Name:      "add",
		ArgsUsage: "URL",
		UsageText: "jobledger endpoint add https://app.example/hooks --secret-file hook.secret",
		Usage:     "send events to a URL from now on",
		Description: "Each event is signed as Standard Webhooks says, with the secret in the file: whsec_ and " +
			"the base64 of 24 to 64 random bytes, as \"echo whsec_$(openssl rand -base64 32)\" makes them. " +
			"The receiver checks it with the same secret. deliver sends the " +
			"events, and so does a server.\n\n" +
			"The same command again changes nothing.",
		Flags: []cli.Flag{
			secretFileFlag(),
			&cli.StringFlag{Name: "types", Usage: "only these `TYPES`, such as job.failed,job.conflict"},
			&cli.BoolFlag{Name: "allow-http", Usage: "take a URL without TLS that is not on this machine"},
		},
		Action: runEndpointAdd,
	}
}

func runEndpointAdd(c *cli.Context) error {
	r := ledger.EndpointRequest{URL: c.Args().First()}
	if c.IsSet("types") {
		r.Types = strings.Split(c.String("types"), ",")
	}
	// Whether a private address may be reached is decided when something is sent there.
	err := httpcall.CheckURL(r.URL, httpcall.Options{AllowPrivate: true, AllowHTTP: c.Bool("allow-http")})
	if err != nil {
		return usage("url", "url: %v", err)
	}
	if r.Secret, err = readSecret(c); err != nil {
		return err
	}
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.EndpointResult, error) {
		return l.AddEndpoint(ctx, r)
	}, func(w io.Writer, added *ledger.EndpointResult) {
		fmt.Fprintf(w, "%s%s is told of %s\n", again(added.Replayed), added.Endpoint.URL, typesOf(&added.Endpoint))
	})
}

// secretFileMax is more than any secret has.
const secretFileMax = 4096

// readSecret reads the file of --secret-file. A secret stands nowhere else: a command line is shown to
// everybody.
func readSecret(c *cli.Context) (string, error) {
	file, err := os.Open(c.String("secret-file"))
	if err != nil {
		return "", usage("secret-file", "secret-file: %v", err)
	}
	defer file.Close()
	secret, err := io.ReadAll(io.LimitReader(file, secretFileMax))
	if err != nil {
		return "", usage("secret-file", "secret-file: %v", err)
	}
	return strings.TrimRight(string(secret), "\r\n"), nil
}

func typesOf(e *ledger.Endpoint) string {
	if len(e.Types) == 0 {
		return "all events"
	}
	return strings.Join(e.Types, ", ")
}

func endpointListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		UsageText: "jobledger endpoint list",
		Usage:     "list all endpoints, the disabled ones too",
		Action:    runEndpointList,
	}
}

func runEndpointList(c *cli.Context) error {
	return listing[ledger.Endpoint]{
		read: func(ctx context.Context, l *ledger.Ledger) ([]ledger.Endpoint, error) {
			return l.Endpoints(ctx)
		},
		none: "events are sent nowhere: endpoint add names a URL",
		text: func(w io.Writer, list []ledger.Endpoint) {
			t := newTable("url", "types", "state")
			t.SetColumnConfigs([]table.ColumnConfig{
				{Number: 1, WidthMax: 36, WidthMaxEnforcer: text.WrapHard},
				{Number: 2, WidthMax: 17, WidthMaxEnforcer: text.WrapSoft},
				{Number: 3, WidthMax: 22, WidthMaxEnforcer: text.WrapSoft},
			})
			for i := range list {
				t.AppendRow([]any{list[i].URL, typesOf(&list[i]), stateOf(&list[i])})
			}
			printTable(w, t)
		},
	}.show(c)
}

func stateOf(e *ledger.Endpoint) string {
	switch {
	case e.DisabledAt != nil:
		return "disabled: " + printable(e.DisabledReason)
	case e.PausedUntil != nil:
		return "enabled, asked to wait until " + clock(e.PausedUntil, "")
	}
	return "enabled"
}

func endpointRotateCommand() *cli.Command {
	return &cli.Command{
		Name:      "rotate",
		ArgsUsage: "URL",
		UsageText: "jobledger endpoint rotate https://app.example/hooks --secret-file new.secret",
		Usage:     "sign with a new secret, and with the one before too",
		Description: "Events carry a signature of each of the two, so that the receiver can change over at any " +
			"time. The next rotation ends the older one. The same command again changes nothing.",
		Flags: []cli.Flag{secretFileFlag()},
		Action: func(c *cli.Context) error {
			secret, err := readSecret(c)
			if err != nil {
				return err
			}
			return changeEndpoint(c, "signs with the new secret, and with the one before",
				func(ctx context.Context, l *ledger.Ledger, id string) (ledger.Endpoint, error) {
					return l.RotateEndpoint(ctx, id, secret)
				})
		},
	}
}

func endpointDisableCommand() *cli.Command {
	return &cli.Command{
		Name:      "disable",
		ArgsUsage: "URL",
		UsageText: "jobledger endpoint disable https://app.example/hooks --reason 'moved'",
		Usage:     "send nothing to a URL until it is enabled again",
		Description: "What is on its way waits. What happens meanwhile is not for it: events replay sends that " +
			"later. The same command again changes nothing.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "reason", Required: true, Usage: "a `TEXT` for the list"}},
		Action: func(c *cli.Context) error {
			return changeEndpoint(c, "is disabled",
				func(ctx context.Context, l *ledger.Ledger, id string) (ledger.Endpoint, error) {
					return l.DisableEndpoint(ctx, id, c.String("reason"))
				})
		},
	}
}

func endpointEnableCommand() *cli.Command {
	return &cli.Command{
		Name:      "enable",
		ArgsUsage: "URL",
		UsageText: "jobledger endpoint enable https://app.example/hooks",
		Usage:     "send events to a URL again, at once",
		Action: func(c *cli.Context) error {
			return changeEndpoint(c, "is enabled", func(
				ctx context.Context, l *ledger.Ledger, id string,
			) (ledger.Endpoint, error) {
				return l.EnableEndpoint(ctx, id)
			})
		},
	}
}

// changeEndpoint changes the endpoint that the argument names, and says what it does now.
func changeEndpoint(
	c *cli.Context, does string, change func(context.Context, *ledger.Ledger, string) (ledger.Endpoint, error),
) error {
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (ledger.Endpoint, error) {
		id, err := endpointID(ctx, l, c.Args().First())
		if err != nil {
			return ledger.Endpoint{}, err
		}
		return change(ctx, l, id)
	}, func(w io.Writer, e *ledger.Endpoint) { fmt.Fprintf(w, "%s %s\n", e.URL, does) })
}

// endpointID gives the id of the endpoint that a URL, or an id, names.
func endpointID(ctx context.Context, l *ledger.Ledger, name string) (string, error) {
	if !strings.Contains(name, "://") {
		return name, nil
	}
	list, err := l.Endpoints(ctx)
	if err != nil {
		return "", err
	}
	for i := range list {
		if list[i].URL == name {
			return list[i].ID, nil
		}
	}
	return "", &ledger.Error{Code: ledger.NotFound, Message: fmt.Sprintf("there is no endpoint %q", name)}
}
