package poll

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// lookBeside warns of accepted jobs at providers that the set does not name, once of each: a name that is
// misspelled, or was taken out of the file, would else leave its jobs open without a word. Another poller may
// ask for them, which this one cannot know.
func (p *Poller) lookBeside(ctx context.Context) {
	said := slices.Clone(p.named)
	for ctx.Err() == nil {
		found, err := p.ledger.PollsBeside(ctx, said)
		if err != nil && ctx.Err() == nil {
			p.options.Log.Warn("jobs that nobody asks for are not looked for", slog.String("cause", line(err)))
		}
		for _, f := range found {
			said = append(said, f.Provider)
			p.options.Log.Warn("the file does not name the provider of accepted jobs: nothing here asks for them",
				slog.String("provider", f.Provider), slog.Int64("jobs", f.Jobs))
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.options.Look):
		}
	}
}
