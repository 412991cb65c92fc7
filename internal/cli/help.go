package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

const exitCodesTopic = "exit-codes"

func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		ArgsUsage: "[TOPIC]",
		UsageText: "jobledger help grant\njobledger help " + exitCodesTopic,
		Usage:     "explain a command, or the exit codes",
		// Every other topic is a command's --help; see parseArgs.
		Action: func(c *cli.Context) error { return show(c, items(exitStatuses()), printExitCodes) },
	}
}

// exitStatus is one way in which a command can end.
type exitStatus struct {
	Exit    int         `json:"exit"`
	Code    ledger.Code `json:"code,omitempty"`
	Meaning string      `json:"meaning"`
}

// exitStatuses lists all of them, in the order of their numbers.
func exitStatuses() []exitStatus {
	list := []exitStatus{
		{0, "", "done; also for a report that came too late to move anything"},
		{Signaled{syscall.SIGINT}.Exit(), "", "ended by SIGINT"},
		{Signaled{syscall.SIGTERM}.Exit(), "", "ended by SIGTERM"},
	}
	for _, info := range ledger.Codes {
		list = append(list, exitStatus{info.Exit, info.Code, info.Meaning})
	}
	slices.SortStableFunc(list, func(a, b exitStatus) int { return a.Exit - b.Exit })
	return list
}

func printExitCodes(w io.Writer) {
	t := newTable("#exit", "meaning")
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: 72, WidthMaxEnforcer: text.WrapSoft}})
	for _, s := range exitStatuses() {
		if s.Code != "" {
			s.Meaning += " (" + string(s.Code) + ")"
		}
		t.AppendRow([]any{s.Exit, s.Meaning})
	}
	printTable(w, t)
}

// helpText explains a command, or the whole program if path is empty. It opens with an example.
func helpText(app *cli.App, path []*cli.Command) string {
	var b strings.Builder
	name := programName
	example, args, about, list, flags := appExample, "COMMAND", app.Usage, app.Commands, app.Flags
	for _, c := range path {
		name += " " + c.Name
		example, args, about = c.UsageText, c.ArgsUsage, c.Usage
		list, flags = c.Subcommands, c.Flags
		if len(list) > 0 {
			args = "COMMAND"
		}
		about = strings.TrimSpace(about + "\n\n" + c.Description)
	}
	fmt.Fprintf(&b, "Example:\n%s\n\n", indent(example))
	fmt.Fprintf(&b, "Usage: %s\n\n%s\n", strings.TrimSpace(name+" "+args), wrap(about))
	section(&b, "Commands", func(add func(name, about string)) {
		for _, c := range list {
			if !c.Hidden {
				add(strings.TrimSpace(c.Name+" "+c.ArgsUsage), c.Usage)
			}
		}
	})
	section(&b, "Flags", func(add func(name, about string)) {
		for _, f := range flags {
			add(flagHelp(f))
		}
	})
	if len(path) > 0 {
		b.WriteString("\nFlags of every command: --db DATABASE, --json\n")
	}
	fmt.Fprintf(&b, "\nExit codes: %s help %s\n", programName, exitCodesTopic)
	return b.String()
}

// wrap breaks paragraphs into lines that fit every terminal.
func wrap(s string) string {
	paragraphs := strings.Split(s, "\n\n")
	for i, p := range paragraphs {
		lines := strings.Split(text.WrapSoft(strings.ReplaceAll(p, "\n", " "), 78), "\n")
		for k, line := range lines {
			lines[k] = strings.TrimRight(line, " ")
		}
		paragraphs[i] = strings.Join(lines, "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}

const appExample = `jobledger init
jobledger grant alice 100 --key welcome
jobledger job create j1 --owner alice --cost 7
jobledger notify j1 failed
jobledger balance alice`

// section writes a heading and aligned lines under it, if there are any.
func section(w io.Writer, heading string, fill func(add func(name, about string))) {
	t := newTable("", "")
	t.ResetHeaders()
	longest := 0
	fill(func(name, about string) {
		longest = max(longest, len(name))
		t.AppendRow([]any{"  " + name, about})
	})
	about := table.ColumnConfig{Number: 2, WidthMax: 76 - longest, WidthMaxEnforcer: text.WrapSoft}
	t.SetColumnConfigs([]table.ColumnConfig{about})
	if t.Length() > 0 {
		fmt.Fprintf(w, "\n%s:\n%s\n", heading, t.Render())
	}
}

// flagHelp gives "--name VALUE" and what it is for. The value's name stands in ` in the usage.
func flagHelp(f cli.Flag) (name, text string) {
	name = "--" + f.Names()[0]
	g, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return name, ""
	}
	text = g.GetUsage()
	if parts := strings.SplitN(text, "`", 3); len(parts) == 3 {
		name += " " + parts[1]
		text = parts[0] + parts[1] + parts[2]
	}
	if r, ok := f.(cli.RequiredFlag); ok && r.IsRequired() {
		text += " (required)"
	} else if value := g.GetValue(); g.TakesValue() && value != "" {
		text += " (default " + value + ")"
	}
	return name, text
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
