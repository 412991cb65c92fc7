package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

// show prints a command's result: with --json the value as one JSON document, else what text writes.
// Nothing is printed unless all of it could be made.
func show(c *cli.Context, value any, text func(w io.Writer)) error {
	var b strings.Builder
	if c.Bool("json") {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
	} else {
		var raw strings.Builder
		text(&raw)
		b.WriteString(harmless(raw.String()))
	}
	if _, err := io.WriteString(c.App.Writer, b.String()); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// printError is the program's one voice on stderr: one line for people, one JSON document for
// programs.
func printError(w io.Writer, asJSON bool, err error) {
	e, ok := errors.AsType[*ledger.Error](err)
	if !ok {
		e = &ledger.Error{Code: ledger.Internal, Message: err.Error()}
	}
	if asJSON {
		if document, err := json.Marshal(e); err == nil {
			fmt.Fprintf(w, "%s\n", document)
			return
		}
	}
	fmt.Fprintf(w, "%s: %s\n", programName, printable(e.Message))
}

// printable keeps text on one line and lets nothing in it steer a terminal.
func printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !unicode.IsGraphic(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

// harmless is printable for a text of lines: whatever an id or a text of the ledger has in it, no answer
// steers a terminal, or shows itself in another order than it has.
func harmless(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// newTable makes a table without lines. Columns whose name begins with # hold amounts.
func newTable(columns ...string) table.Writer {
	t := table.NewWriter()
	header := table.Row{}
	var configs []table.ColumnConfig
	for i, name := range columns {
		align := text.AlignLeft
		if amount, ok := strings.CutPrefix(name, "#"); ok {
			name, align = amount, text.AlignRight
		}
		header = append(header, strings.ToUpper(name))
		configs = append(configs, table.ColumnConfig{
			Number: i + 1, Align: align, AlignHeader: align, AlignFooter: align,
		})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	t.SetStyle(table.Style{
		Box:    table.BoxStyle{PaddingRight: "  "},
		Format: table.FormatOptions{Footer: text.FormatDefault},
	})
	t.SuppressTrailingSpaces()
	return t
}

// printTable writes a table, if it has rows.
func printTable(w io.Writer, t table.Writer) {
	if t.Length() > 0 {
		fmt.Fprintln(w, t.Render())
	}
}

// clock shows a time to the second, as RFC 3339; never is what an absent time means.
func clock(t *ledger.Time, never string) string {
	if t == nil {
		return never
	}
	return time.UnixMicro(int64(*t)).UTC().Format(time.RFC3339)
}

// standing says where an owner's credits are; buckets that are rarely in use are left out if empty.
func standing(b *ledger.Balance) string {
	s := fmt.Sprintf("available %d, held %d", b.Available, b.Held)
	for _, rare := range []struct {
		name   string
		amount int64
	}{{"used", b.Used}, {"expired", b.Expired}, {"scheduled", b.Scheduled}} {
		if rare.amount > 0 {
			s += fmt.Sprintf(", %s %d", rare.name, rare.amount)
		}
	}
	return s
}
