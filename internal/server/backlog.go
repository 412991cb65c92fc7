package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jobledger/ledger"
)

// backlog tells what waits in the ledger, each time that the figures are asked for.
type backlog struct {
	ledger *ledger.Ledger
	log    *slog.Logger
}

// backlogTime bounds the look at the ledger.
const backlogTime = 5 * time.Second

var (
	jobsDesc = prometheus.NewDesc("jobledger_jobs_open", "Jobs that have not ended.", nil, nil)

	unresolvedDesc = prometheus.NewDesc("jobledger_jobs_unresolved",
		"Jobs that wait for somebody to ask their provider.", nil, nil)

	pollsDesc = prometheus.NewDesc("jobledger_polls", "Open jobs whose provider is asked.", nil, nil)

	deliveriesDesc = prometheus.NewDesc("jobledger_deliveries",
		"Deliveries of events that were not made, by status.", []string{"status"}, nil)

	lagDesc = prometheus.NewDesc("jobledger_delivery_lag_seconds",
		"Age of the oldest event that an enabled endpoint was not told of yet.", nil, nil)
)

// Describe names the figures.
func (b *backlog) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsDesc, unresolvedDesc, pollsDesc, deliveriesDesc, lagDesc} {
		to <- d
	}
}

// Collect looks at the ledger. If that does not answer, its figures are absent and the others are there.
func (b *backlog) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogTime)
	defer cancel()
	found, err := b.ledger.Backlog(ctx)
	if err != nil {
		b.log.Warn("the backlog is not known", "cause", err.Error())
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(jobsDesc, float64(found.Open))
	gauge(unresolvedDesc, float64(found.Reconcile))
	gauge(pollsDesc, float64(found.Polls))
	gauge(deliveriesDesc, float64(found.Pending), string(ledger.DeliveryPending))
	gauge(deliveriesDesc, float64(found.Dead), string(ledger.DeliveryDead))
	lag := 0.0
	if found.OldestPending != nil {
		lag = max(time.Since(time.UnixMicro(int64(*found.OldestPending))).Seconds(), 0)
	}
	gauge(lagDesc, lag)
}
