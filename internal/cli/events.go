package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

func eventsCommand() *cli.Command {
	return family("events", "jobledger events list --job j1",
		"look at what other systems are told, and send it again",
		eventsListCommand(),
		eventsDeliveriesCommand(),
		eventsReplayCommand(),
	)
}

func eventsListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		UsageText: "jobledger events list\njobledger events list --job j1 --json",
		Usage:     "list events in the order of their times",
		Description: "The pages are for reading what is there, not for following what comes: an event can be " +
			"committed after a later one. An endpoint misses none.",
		Flags: pageFlags("event with this `ID`",
			&cli.StringFlag{Name: "job", Usage: "only the `JOB`'s"},
			&cli.StringFlag{Name: "type", Usage: "only of this `TYPE`, such as job.failed"},
		),
		Action: runEventsList,
	}
}

func runEventsList(c *cli.Context) error {
	f := ledger.EventFilter{Job: c.String("job"), Type: c.String("type"), After: c.String("after")}
	var err error
	f.Limit, err = limit(c)
	if c.IsSet("type") {
		err = checks(err, oneOf("type", f.Type, ledger.EventTypes...))
	}
	if err := checks(givenID(c, "job"), err); err != nil {
		return err
	}
	return listing[ledger.Event]{
		read: func(ctx context.Context, l *ledger.Ledger) ([]ledger.Event, error) {
			return l.Events(ctx, f)
		},
		most: f.Limit, after: func(e *ledger.Event) string { return e.ID },
		text: func(w io.Writer, list []ledger.Event) {
			t := newTable("time", "event", "type", "owner")
			for i := range list {
				e := &list[i]
				t.AppendRow([]any{clock(&e.CreatedAt, ""), e.ID, e.Type, e.Owner})
			}
			printTable(w, t)
		},
	}.show(c)
}

func eventsDeliveriesCommand() *cli.Command {
	return &cli.Command{
		Name:      "deliveries",
		UsageText: "jobledger events deliveries --status dead",
		Usage:     "list the ways of events to endpoints",
		Description: "A delivery is pending until the endpoint answers with a 2xx status. After its last try it " +
			"is dead, and only a replay sends it again.",
		Flags: pageFlags("delivery with this `KEY`",
			&cli.StringFlag{Name: "event", Usage: "only of the event with this `ID`"},
			&cli.StringFlag{Name: "endpoint", Usage: "only to this `URL`"},
			&cli.StringFlag{Name: "status", Usage: "only with this `STATUS`: pending, delivered or dead"},
		),
		Action: runEventsDeliveries,
	}
}

func runEventsDeliveries(c *cli.Context) error {
	f := ledger.DeliveryFilter{
		Event: c.String("event"), Status: ledger.DeliveryStatus(c.String("status")), After: c.String("after"),
	}
	var err error
	if f.Limit, err = limit(c); err != nil {
		return err
	}
	return listing[ledger.Delivery]{
		read: func(ctx context.Context, l *ledger.Ledger) (list []ledger.Delivery, err error) {
			if f.Endpoint, err = endpointID(ctx, l, c.String("endpoint")); err != nil {
				return nil, err
			}
			return l.Deliveries(ctx, f)
		},
		most: f.Limit, after: (*ledger.Delivery).Key,
		text: printDeliveries,
	}.show(c)
}

func printDeliveries(w io.Writer, list []ledger.Delivery) {
	t := newTable("event", "url", "status", "#tries", "last answer")
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 1, WidthMax: 20, WidthMaxEnforcer: text.WrapHard},
		{Number: 2, WidthMax: 24, WidthMaxEnforcer: text.WrapHard},
		{Number: 4, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 5, WidthMax: 14, WidthMaxEnforcer: text.WrapSoft},
	})
	for i := range list {
		d := &list[i]
		last := printable(d.LastError)
		if d.LastStatus != nil && last == "" {
			last = fmt.Sprintf("HTTP %d", *d.LastStatus)
		}
		t.AppendRow([]any{d.Event, d.URL, d.Status, d.Tries, last})
	}
	printTable(w, t)
}

func eventsReplayCommand() *cli.Command {
	return &cli.Command{
		Name:      "replay",
		ArgsUsage: "[EVENT]",
		UsageText: "jobledger events replay settled:j1\n" +
			"jobledger events replay --dead --endpoint https://app.example/hooks",
		Usage: "send an event again, or all that were given up",
		Description: "The event goes to each endpoint that it was for, and to each that takes its type now; with " +
			"--endpoint to that one, whatever it takes. Receivers know it by its id, which stays the same.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "endpoint", Usage: "only to this `URL`"},
			&cli.BoolFlag{Name: "dead", Usage: "all deliveries that were given up"},
		},
		Action: runEventsReplay,
	}
}

func runEventsReplay(c *cli.Context) error {
	event := c.Args().First()
	if (event == "") != c.Bool("dead") {
		return usage("event", "event: name one event, or all that were given up with --dead")
	}
	list, err := with(c, func(ctx context.Context, l *ledger.Ledger) ([]ledger.Delivery, error) {
		endpoint, err := endpointID(ctx, l, c.String("endpoint"))
		switch {
		case err != nil:
			return nil, err
		case c.Bool("dead"):
			return replayDead(ctx, l, endpoint)
		}
		return l.ReplayEvent(ctx, event, endpoint)
	})
	if err != nil {
		return err
	}
	return show(c, items(list), func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "nothing is sent again")
			return
		}
		printDeliveries(w, list)
		fmt.Fprintf(w, "on the way again: %d\n", len(list))
	})
}

// replayDead sends again what was given up. Each replay takes its delivery out of the list: the first page
// is always the next.
func replayDead(ctx context.Context, l *ledger.Ledger, endpoint string) ([]ledger.Delivery, error) {
	all := []ledger.Delivery{}
	for {
		f := ledger.DeliveryFilter{Endpoint: endpoint, Status: ledger.DeliveryDead, Limit: ledger.PageMax}
		dead, err := l.Deliveries(ctx, f)
		if err != nil || len(dead) == 0 {
			return all, err
		}
		for i := range dead {
			again, err := l.ReplayEvent(ctx, dead[i].Event, dead[i].Endpoint)
			if err != nil {
				return all, err
			}
			all = append(all, again...)
		}
	}
}
