package server

import (
	"context"
	"log/slog"
	"time"

	"jobledger/ledger"
)

// Sweep sweeps the ledger now and once in every period, until ctx ends. What goes wrong is logged, and tried
// again when it is time.
func (s *Server) Sweep(ctx context.Context, every time.Duration) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		s.sweepOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func (s *Server) sweepOnce(ctx context.Context) {
	swept, err := ledger.SweepAll(ctx, s.ledger)
	for range swept.TimedOut {
		s.metrics.report(ledger.Sweeper, ledger.Won)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		s.options.Log.LogAttrs(ctx, slog.LevelWarn, "sweep", slog.String("code", string(ledger.CodeOf(err))),
			slog.String("cause", err.Error()))
	case swept.ExpiredLots > 0 || swept.TimedOut > 0:
		s.options.Log.LogAttrs(ctx, slog.LevelInfo, "sweep", slog.Int64("expired_lots", swept.ExpiredLots),
			slog.Int64("timed_out", swept.TimedOut))
	}
	for _, what := range swept.Inconsistent {
		s.options.Log.LogAttrs(ctx, slog.LevelError, "sweep", slog.String("inconsistent", what))
	}
}
