// Package cli is the command line: it reads arguments, calls the ledger and prints what it said.
//
// Each family of commands has a file, with one function per command that returns its place in the
// tree; [Run] is the only way in. What is wrong with the arguments is found before the database is
// opened.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

// Program is what the command line gets from the process that it runs in.
type Program struct {
	Args   []string // the program's name first
	Stdout io.Writer
	Stderr io.Writer
	Schema string // what the command schema prints
}

// Run executes one command and gives the exit status: 0, that of the error's code, or 128 plus the
// signal that ended the command. Data goes to Stdout, everything else to Stderr.
func Run(ctx context.Context, p Program) (exit int) {
	app := newApp(p)
	err := run(ctx, app, p)
	if err == nil {
		return 0
	}
	printError(p.Stderr, wantsJSON(p.Args), err)
	return exitOf(ctx, err)
}

func run(ctx context.Context, app *cli.App, p Program) error {
	line, err := parseArgs(app, p.Args[1:])
	if err != nil {
		return err
	}
	if line.help {
		_, err := io.WriteString(p.Stdout, helpText(app, line.path))
		return err
	}
	return app.RunContext(ctx, line.argv())
}

func exitOf(ctx context.Context, err error) int {
	var signaled Signaled
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(ctx), &signaled) {
		return signaled.Exit()
	}
	return ledger.CodeOf(err).Info().Exit
}

// Signaled is the cause of a context that a signal canceled.
type Signaled struct{ Signal os.Signal }

// Error names the signal.
func (s Signaled) Error() string { return "signal: " + s.Signal.String() }

// Is makes the signal the end of a context: what reports a context's cause reports its end.
func (s Signaled) Is(target error) bool { return target == context.Canceled }

// Exit is the exit status of a command that the signal ended: 130 for SIGINT, 143 for SIGTERM.
func (s Signaled) Exit() int {
	if number, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ledger.Internal.Info().Exit
}

const (
	programName = "jobledger"
	dbVariable  = "JOBLEDGER_DB"
	dbDefault   = "jobledger.db"
)

// commands is the one list of all commands, in the order in which the help shows them.
func commands(p Program) []*cli.Command {
	return []*cli.Command{
		initCommand(),
		grantCommand(),
		balanceCommand(),
		entriesCommand(),
		jobCommand(),
		notifyCommand(),
		reconcileCommand(),
		callbackCommand(),
		sweepCommand(),
		revokeCommand(),
		auditCommand(),
		doctorCommand(),
		backupCommand(),
		restoreCommand(),
		importCommand(),
		exportCommand(),
		copyCommand(),
		serveCommand(),
		tokenCommand(),
		endpointCommand(),
		eventsCommand(),
		deliverCommand(),
		demoCommand(),
		raceCommand(),
		raceChildCommand(),
		labCommand(),
		benchCommand(),
		benchChildCommand(),
		schemaCommand(p.Schema),
		versionCommand(),
		helpCommand(),
	}
}

func newApp(p Program) *cli.App {
	app := &cli.App{
		Name:  programName,
		Usage: "a credit ledger for asynchronous generation jobs, in one SQLite file or a PostgreSQL database",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name:  "db",
				Usage: "the `DATABASE`, a file or postgres://...; without it $" + dbVariable + ", then " + dbDefault,
			},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON document instead of text; errors too"},
		},
		Commands:                  commands(p),
		Writer:                    p.Stdout,
		ErrWriter:                 p.Stderr,
		ExitErrHandler:            func(*cli.Context, error) {}, // the exit status is Run's business
		OnUsageError:              usageError,
		HideHelp:                  true, // parseArgs finds it, helpText writes it
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
	}
	prepare(app.Commands)
	return app
}

// prepare gives every command what the library does not let it inherit.
func prepare(list []*cli.Command) {
	for _, c := range list {
		c.OnUsageError = usageError
		c.HideHelp = true
		prepare(c.Subcommands)
	}
}

// usageError gives a mistake that the library found in the arguments its code.
func usageError(_ *cli.Context, err error, _ bool) error { return usage("", "%v", err) }

// dbName is the database that a command works on. An empty name counts as none.
func dbName(c *cli.Context) string {
	for _, name := range []string{c.String("db"), os.Getenv(dbVariable)} {
		if name != "" {
			return name
		}
	}
	return dbDefault
}

// with opens the command's ledger, does one piece of work on it, and closes it.
func with[T any](c *cli.Context, work func(context.Context, *ledger.Ledger) (T, error)) (T, error) {
	var nothing T
	l, err := ledger.Open(c.Context, dbName(c), ledger.Options{})
	if err != nil {
		return nothing, err
	}
	result, err := work(c.Context, l)
	if err := errors.Join(err, l.Close()); err != nil {
		return nothing, err
	}
	return result, nil
}
