package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

const (
	callers    = 64
	perCaller  = 20
	throughput = 0.5 // of the package's, over HTTP: the promise
	slack      = 0.1 // for a machine that does much else
)

// TestThroughput: 64 clients over HTTP settle at least half as many jobs per second as 64 callers of the
// package in the same process, side by side in each round. The median counts; more rounds are made while it
// is less.
func TestThroughput(t *testing.T) {
	s := start(t, dbtest.SQLite(t), server.Options{Log: slog.New(slog.NewJSONHandler(io.Discard, nil))})
	s.grant("alice", "k1", "1000000")
	var ratios []float64
	median := func() float64 { return slices.Sorted(slices.Values(ratios))[len(ratios)/2] }
	for round := 0; round < 5 || median() < throughput && round < 15; round++ {
		direct := s.rate(fmt.Sprintf("direct%d", round), func(id string) error {
			_, err := s.ledger.Settle(t.Context(), ledger.Report{
				Job: id, Outcome: ledger.Completed, Source: ledger.Callback,
			})
			return err
		})
		http := s.rate(fmt.Sprintf("http%d", round), s.settle)
		ratios = append(ratios, http/direct)
		t.Logf("64 callers of the package settle %.0f jobs/s, 64 clients over HTTP %.0f: %.2f of it",
			direct, http, http/direct)
	}
	if t.Logf("median: %.2f", median()); median() < throughput-slack {
		t.Errorf("over HTTP only %.2f of what the package settles", median())
	}
}

// settle reports a job completed, over HTTP.
func (s *site) settle(id string) error {
	r, err := http.NewRequest("POST", s.url+"/v1/jobs/"+id+"/reports",
		strings.NewReader(`{"outcome":"completed","source":"callback"}`))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != 200 {
		err = fmt.Errorf("%s: %d %s", id, response.StatusCode, text)
	}
	return err
}

// rate settles many new jobs at once and gives how many per second.
func (s *site) rate(prefix string, settle func(id string) error) float64 {
	s.t.Helper()
	each := func(do func(id string) error) {
		var group sync.WaitGroup
		for caller := range callers {
			group.Go(func() {
				for n := range perCaller {
					if err := do(fmt.Sprintf("%s-%d-%d", prefix, caller, n)); err != nil {
						s.t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
	}
	each(func(id string) error {
		_, err := s.ledger.CreateJob(s.t.Context(), ledger.JobParams{ID: id, Owner: "alice", Cost: 7})
		return err
	})
	began := time.Now()
	each(settle)
	return callers * perCaller / time.Since(began).Seconds()
}
