package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/ledger"
)

// inCommand runs check as the action of a command that takes one flag.
func inCommand(t *testing.T, flag, value string, check func(c *cli.Context)) {
	t.Helper()
	app := &cli.App{
		Flags:  []cli.Flag{&cli.StringFlag{Name: flag}},
		Action: func(c *cli.Context) error { check(c); return nil },
	}
	if err := app.Run([]string{"program", "--" + flag + "=" + value}); err != nil {
		t.Fatal(err)
	}
}

func TestWhen(t *testing.T) {
	moment := time.Date(2026, 12, 31, 22, 30, 0, 500000, time.UTC)
	for text, want := range map[string]ledger.When{
		"2026-12-31T22:30:00.0005Z":      ledger.OnTime(moment),
		"2026-12-31T23:30:00.0005+01:00": ledger.OnTime(moment),
		"30d":                            ledger.After(30 * 24 * time.Hour),
		"-1h":                            ledger.After(-time.Hour),
	} {
		inCommand(t, "at", text, func(c *cli.Context) {
			if got, err := when(c, "at"); err != nil || got != want {
				t.Errorf("%q: got %+v, %v", text, got, err)
			}
		})
	}
	for _, text := range []string{"", "2026-12-31", "2026-12-31 22:30:00", "2026-13-01T00:00:00Z", "5", "1e9"} {
		inCommand(t, "at", text, func(c *cli.Context) {
			_, err := when(c, "at")
			if e, ok := err.(*ledger.Error); !ok || e.Code != ledger.Invalid || e.Field != "at" {
				t.Errorf("%q: got %v", text, err)
			}
		})
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "10": 10, "7": 7} {
		inCommand(t, "limit", text, func(c *cli.Context) {
			if got, err := count(c, "limit", 1, 10); err != nil || got != want {
				t.Errorf("%q: got %d, %v", text, got, err)
			}
		})
	}
	for _, text := range strings.Split(",0,11,-1,010,0x5,1e0,5.0,+5, 5,99999999999999999999,five", ",") {
		inCommand(t, "limit", text, func(c *cli.Context) {
			if got, err := count(c, "limit", 1, 10); ledger.CodeOf(err) != ledger.Invalid {
				t.Errorf("%q: got %d, %v", text, got, err)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain text, été, 点数": "plain text, été, 点数",
		"a\nb\x1b[31m":        `a\nb\x1b[31m`,
		"a\xffb":              `a\xffb`,
		"a\u202eb":            `a\u202eb`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for _, info := range ledger.Codes {
		err := fmt.Errorf("wrapped: %w", &ledger.Error{Code: info.Code})
		if got := exitOf(t.Context(), err); got != info.Exit {
			t.Errorf("%s: got %d, want %d", info.Code, got, info.Exit)
		}
	}
	if got := exitOf(t.Context(), errors.New("of no code")); got != 1 {
		t.Errorf("an error of no code: got %d", got)
	}
	for signal, want := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(Signaled{Signal: signal})
		if got := exitOf(ctx, fmt.Errorf("stopped: %w", ctx.Err())); got != want {
			t.Errorf("%v: got %d", signal, got)
		}
		if got := exitOf(ctx, &ledger.Error{Code: ledger.NotFound}); got != 3 {
			t.Errorf("an error of its own after %v: got %d", signal, got)
		}
	}
}
