// Command jobledger keeps a credit ledger for asynchronous generation jobs in one SQLite file.
package main

import (
	"context"
	_ "embed"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"jobledger/internal/cli"
)

//go:embed schema.sql
var schema string

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // the heap is small, most memory is SQLite's own: a tenth less work in all
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		cancel(cli.Signaled{Signal: <-signals})
		os.Exit(cli.Signaled{Signal: <-signals}.Exit()) // the second signal does not wait
	}()
	os.Exit(cli.Run(ctx, cli.Program{
		Args:   os.Args,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Schema: schema,
	}))
}
