package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/internal/racelab/guards"
)

func labGuardsCommand() *cli.Command {
	return &cli.Command{
		Name:      "guards",
		UsageText: "jobledger lab guards\njobledger lab guards --guard status-predicate",
		Usage:     "take one guard at a time away from the product, and see what breaks",
		Description: "The product settles jobs as it always does, but for a layer before the driver that takes a " +
			"guard away. Where another guard stops the same mistake, it is taken away too: first it is shown " +
			"that the guard holds alone, then what breaks without it. With all guards in place the same scenes " +
			"break nothing. If a guard does not hold, or nothing breaks without it, the exit status is 8.\n\n" +
			"It works in scratch files of SQLite. --db postgres://... names a PostgreSQL server instead, on which " +
			"scratch databases are made and dropped; the database in the URL is left alone.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "guard", Usage: "show this `GUARD` alone, with all that was seen"},
		},
		Action: runGuards,
	}
}

func runGuards(c *cli.Context) error {
	o := guards.Options{Guard: c.String("guard"), Server: c.String("db")}
	if c.IsSet("guard") && o.Guard == "" {
		return usage("guard", "guard: is one of %s", strings.Join(guards.Names(), ", "))
	}
	var clear func()
	o.Progress, clear = progress(c.App.ErrWriter, "playing")
	r, played := guards.Run(c.Context, o)
	clear()
	if len(r.Guards) == 0 {
		return played
	}
	return checks(show(c, r, func(w io.Writer) {
		if o.Guard == "" {
			printGuards(w, &r)
		} else {
			printGuard(w, &r.Guards[0])
		}
		printComplete(w, &r)
	}), played)
}

// printGuards writes a line for each guard.
func printGuards(w io.Writer, r *guards.Result) {
	t := newTable("guard", "broken by", "invariant")
	for _, g := range r.Guards {
		broken := g.Invariant
		switch {
		case !g.Held:
			broken = "ALONE IT HOLDS NOTHING"
		case !g.Caught:
			broken = "NOTHING BROKE WITHOUT IT"
		}
		t.AppendRow([]any{g.Guard, g.BrokenBy, broken})
	}
	printTable(w, t)
	fmt.Fprintf(w, "\nOthers that stop the same mistake are away as well: --guard NAME names them.\n")
}

// printGuard tells all that is known of one guard.
func printGuard(w io.Writer, g *guards.Removal) {
	fmt.Fprintf(w, "%s: %s\nIn the product: %s\n\n", g.Guard, g.Does, g.Where)
	fmt.Fprintf(w, "Played: %s.\n", g.BrokenBy)
	if len(g.Others) > 0 {
		fmt.Fprintf(w, "Away as well, because each of them stops the same mistake: %s.\n",
			strings.Join(g.Others, ", "))
	}
	switch {
	case !g.Held:
		fmt.Fprint(w, "\nIt does NOT hold:\n")
	case !g.Caught:
		fmt.Fprint(w, "\nIt holds, and without it NOTHING breaks:\n")
	default:
		fmt.Fprint(w, "\nAlone it holds: the credits are right.\n")
		for _, line := range g.Answers {
			fmt.Fprintf(w, "  %s\n", printable(line))
		}
		fmt.Fprintf(w, "\nWithout it this invariant breaks: %s.\n", g.Invariant)
	}
	for _, line := range g.Detail {
		fmt.Fprintf(w, "  %s\n", printable(line))
	}
}

// printComplete says what the complete version did.
func printComplete(w io.Writer, r *guards.Result) {
	for _, line := range r.Complete.Detail {
		fmt.Fprintf(w, "\nBROKEN with all guards in place: %s\n", printable(line))
	}
	if r.Complete.OK {
		fmt.Fprintf(w, "\nWith all guards in place: %s played, nothing breaks.\n",
			plural(r.Complete.Scenes, "scene"))
	}
}
