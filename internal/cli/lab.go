package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/internal/racelab/lesson"
)

// labWidth is how wide the lab prints: what fits every terminal, and a projector.
const labWidth = 80

func labCommand() *cli.Command {
	return &cli.Command{
		Name:      "lab",
		UsageText: "jobledger lab list\njobledger lab run lost-update\njobledger lab run lost-update --fixed",
		Usage:     "see how credits are lost, and what stops it",
		Description: "Every lesson plays a mistake step by step on a real database, the same way every time, and " +
			"then the smallest change that stops it. The databases are the lab's own, marked as such, and deleted.",
		Subcommands: []*cli.Command{labListCommand(), labRunCommand(), labGuardsCommand(), labCheckCommand()},
	}
}

func labListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		UsageText: "jobledger lab list",
		Usage:     "list the lessons",
		Action: func(c *cli.Context) error {
			return show(c, items(listedLessons()), printLessons)
		},
	}
}

func labRunCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		ArgsUsage: "LESSON",
		UsageText: "jobledger lab run lost-update\njobledger lab run lost-update --fixed --svg lost-update.svg",
		Usage:     "play a lesson: the mistake, or with --fixed what stops it",
		Description: "A mistake that goes wrong as it should ends with 0. A lesson that does not show what it is " +
			"for, because something here protects from the mistake, ends with 8.\n\n" +
			"It is played in a scratch file of SQLite. --db postgres://... names a PostgreSQL server instead, on " +
			"which a scratch database is made and dropped; the database in the URL is left alone, and $" + dbVariable +
			" is not looked at.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "fixed", Usage: "play the version with the guard"},
		}, pictureFlags()...),
		Action: runLesson,
	}
}

// listedLesson is a lesson as lab list shows it.
type listedLesson struct {
	Lesson   string   `json:"lesson"`
	Engines  []string `json:"engines"`
	Title    string   `json:"title"`
	Shows    string   `json:"shows"`
	Guard    string   `json:"guard"`
	Function string   `json:"function"`
}

func listedLessons() (list []listedLesson) {
	for _, l := range lesson.All() {
		list = append(list, listedLesson{l.Name, l.Engines, l.Title, l.Shows, l.Guard, l.Function})
	}
	return list
}

func printLessons(w io.Writer) {
	t := newTable("lesson", "engines", "what it shows")
	for _, l := range listedLessons() {
		t.AppendRow([]any{l.Lesson, strings.Join(l.Engines, ", "), l.Title})
	}
	printTable(w, t)
	fmt.Fprintf(w, "\nPlay one: %s lab run LESSON, and then with --fixed.\n", programName)
}

func runLesson(c *cli.Context) error {
	name := c.Args().First()
	l, found := lesson.Find(name)
	if !found {
		hint := didYouMean(name, lesson.Names())
		if hint == "" {
			hint = ": see " + programName + " lab list"
		}
		return usage("lesson", "there is no lesson %q%s", name, hint)
	}
	if err := checkPictures(c); err != nil {
		return err
	}
	r, played := l.Run(c.Context, lesson.Options{Fixed: c.Bool("fixed"), Server: c.String("db")})
	if len(r.Numbers) == 0 {
		return played
	}
	var text bytes.Buffer
	if err := checks(r.WriteText(&text, labWidth), draw(c, &r.Timeline)); err != nil {
		return err
	}
	return checks(show(c, r, func(w io.Writer) { fmt.Fprint(w, &text) }), played)
}
