package cli

import (
	"context"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

// family is a command that does nothing but hold others.
func family(name, example, usage string, members ...*cli.Command) *cli.Command {
	return &cli.Command{Name: name, UsageText: example, Usage: usage, Subcommands: members}
}

// answer does one piece of work on the command's ledger and shows what came of it.
func answer[T any](
	c *cli.Context, work func(context.Context, *ledger.Ledger) (T, error), text func(w io.Writer, result *T),
) error {
	result, err := with(c, work)
	if err != nil {
		return err
	}
	return show(c, result, func(w io.Writer) { text(w, &result) })
}

// list is the JSON form of every list.
type list[T any] struct {
	Items []T `json:"items"`
}

func items[T any](of []T) list[T] { return list[T]{of} }

// listing is a list that a command shows, all of it or a page.
type listing[T any] struct {
	read func(context.Context, *ledger.Ledger) ([]T, error)
	text func(io.Writer, []T)

	most  int             // on a page; 0: all are read
	after func(*T) string // what --after takes for the next page

	none string // what a person is told where there are none
}

// show reads the list and shows it. A full page may be followed by an empty one.
func (l listing[T]) show(c *cli.Context) error {
	found, err := with(c, l.read)
	if err != nil {
		return err
	}
	switch {
	case len(found) == 0 && l.none != "":
		note(c, "%s", l.none)
	case len(found) > 0 && len(found) == l.most:
		note(c, "there may be more: --after %s", l.after(&found[l.most-1]))
	}
	return show(c, items(found), func(w io.Writer) { l.text(w, found) })
}

// pageFlags are the flags of a list that is shown by the page: what is on it, its size, and where it begins.
func pageFlags(after string, filters ...cli.Flag) []cli.Flag {
	return slices.Concat(filters, []cli.Flag{
		&cli.StringFlag{Name: "limit", Value: "100", Usage: "at most `N`, up to 1000"},
		&cli.StringFlag{Name: "after", Usage: "start after the " + after},
	})
}
