package server

import (
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"jobledger/ledger"
)

// metrics are the figures of a server. No label ever holds an id: there are as many series as there are
// operations and words, whatever the ledger holds.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	reports  *prometheus.CounterVec
	tries    *prometheus.CounterVec
	refused  prometheus.Counter
}

func newMetrics(l *ledger.Ledger, log *slog.Logger) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobledger_http_requests_total", Help: "Requests that were answered.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "jobledger_http_request_seconds", Help: "Time to answer a request.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route"}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobledger_reports_total", Help: "Reports of jobs' ends that this server took.",
		}, []string{"source", "verdict"}),
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jobledger_delivery_tries_total",
			Help: "Tries to deliver an event that this server made, by how the delivery stands after.",
		}, []string{"status"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "jobledger_http_refused_total", Help: "Requests refused because the server had too many.",
		}),
	}
	m.registry.MustRegister(&backlog{l, log}, m.requests, m.seconds, m.reports, m.tries,
		m.refused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observe counts a request under the pattern that it matched, never under its path.
func (m *metrics) observe(r *http.Request, status int, took time.Duration) {
	route := r.Pattern
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// report counts what became of a report.
func (m *metrics) report(source ledger.Source, verdict ledger.Verdict) {
	m.reports.WithLabelValues(string(source), string(verdict)).Inc()
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	})
}
