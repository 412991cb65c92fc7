package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/urfave/cli/v2"

	"jobledger/internal/outbox"
	"jobledger/ledger"
)

func deliverCommand() *cli.Command {
	return &cli.Command{
		Name:      "deliver",
		UsageText: "jobledger deliver\njobledger deliver --once",
		Usage:     "send events to their endpoints, until Ctrl-C",
		Description: "Each event is sent at least once, those of one job in their order. What is not answered " +
			"with a 2xx status is sent again after 5 seconds, 5 and 30 minutes, 2, 5, 10, 14, 20 and 24 hours, and " +
			"then given up: events deliveries --status dead lists that. Several can run at a time, also beside a " +
			"server.\n\n" +
			"A receiver knows an event that it has by the header webhook-id, the hexadecimal SHA-256 of the event's " +
			"id. It checks the signature as Standard Webhooks says. 410 disables the endpoint; Retry-After is heeded.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "once", Usage: "send what is due, and end"},
		}, sendingFlags()...),
		Action: runDeliver,
	}
}

// sendingFlags say which endpoints may be called.
func sendingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "allow-private", Usage: "let calls go to this machine and to private networks"},
		&cli.BoolFlag{Name: "allow-http", Usage: "let calls to endpoints elsewhere go without TLS"},
	}
}

func newSender(c *cli.Context, l *ledger.Ledger) *outbox.Sender {
	return outbox.New(l, outbox.Options{
		AllowPrivate: c.Bool("allow-private"),
		AllowHTTP:    c.Bool("allow-http"),
		Log:          slog.New(slog.NewJSONHandler(c.App.ErrWriter, nil)),
	})
}

func runDeliver(c *cli.Context) error {
	return answer(c, func(ctx context.Context, l *ledger.Ledger) (outbox.Sent, error) {
		s := newSender(c, l)
		defer s.Close()
		if c.Bool("once") {
			return s.Once(ctx)
		}
		note(c, "sending events until Ctrl-C")
		return s.Run(ctx), nil
	}, func(w io.Writer, sent *outbox.Sent) {
		fmt.Fprintf(w, "delivered: %d, failed and tried again later: %d, given up: %d\n",
			sent.Delivered, sent.Retried, sent.Dead)
	})
}
