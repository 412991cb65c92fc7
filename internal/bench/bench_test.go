package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/internal/racelab/scratch"
	"jobledger/ledger"
)

// TestMain lets this binary be the processes of a measurement.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "bench-child" {
		os.Exit(m.Run())
	}
	if err := Child(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are those of a short measurement.
func options(change func(*Options)) Options {
	o := Options{Workers: []int{4}, Jobs: 40, Mode: ledger.ModeHold, Processes: 1, Lots: 1, Shards: 1}
	change(&o)
	return o
}

func measure(t *testing.T, change func(*Options)) Report {
	t.Helper()
	r, err := Measure(t.Context(), options(change))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkRun proves that a run did all that it had to do, and that its figures can be true.
func checkRun(t *testing.T, r *Run, jobs int) {
	t.Helper()
	var names []string
	for _, o := range r.Operations {
		names = append(names, o.Name)
		want := jobs
		if o.Name == "completed" || o.Name == "failed" {
			want = jobs / 2
		}
		if o.Count != want || o.P50 > o.P99 || o.P99 > o.P999 || o.P999 > o.Max || o.Max < 1 {
			t.Errorf("%+v, want %d of them", o, want)
		}
		if (o.PerSecond > 0) != (o.Name != "completed" && o.Name != "failed") {
			t.Errorf("%s: %g per second", o.Name, o.PerSecond)
		}
	}
	if !slices.Equal(names, []string{"create", "settle", "completed", "failed", "duplicate", "balance"}) {
		t.Errorf("operations %q", names)
	}
	s := r.Operations[1]
	if r.Jobs != jobs || r.PerSecond != s.PerSecond || r.P50 != s.P50 || r.P999 != s.P999 || r.Max != s.Max {
		t.Errorf("%+v is not what its settlements are, %+v", r, s)
	}
}

func TestMeasure(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		done, total := 0, 0
		r := measure(t, func(o *Options) {
			o.DSN, o.Mode, o.Workers, o.Owners, o.Lots = dsn, ledger.ModeCharge, []int{1, 8}, 3, 2
			o.Progress = func(d, all int) { done, total = max(done, d), all }
		})
		if len(r.Runs) != 2 || r.Owners != 3 || r.Lots != 2 || r.Mode != ledger.ModeCharge || r.Audit <= 0 {
			t.Fatalf("%+v", r)
		}
		for i := range r.Runs {
			checkRun(t, &r.Runs[i], 40)
		}
		one := r.Runs[0].Settlement
		if one.Syncs != 1 || one.Statements < 5 || one.Statements > 40 || one.WAL < 500 || one.WAL > 200_000 {
			t.Errorf("a settlement alone: %+v", one)
		}
		file, ratio := r.Engine == "sqlite", r.Runs[0].Ratio
		if (r.Fdatasync > 0) != file || (one.Pages > 1 && one.Pages < 60) != file || (ratio > 0) != file {
			t.Errorf("%s: fdatasync %g, %g pages, ratio %g", r.Engine, r.Fdatasync, one.Pages, ratio)
		}
		if want := 2 * (4*40 + 2*meteredJobs); total != want || done < want/2 || done > want {
			t.Errorf("progress up to %d of %d, want %d", done, total, want)
		}
	})
}

// Callers who wait at the same time share commits, and so syncs and pages.
func TestSharingIsSeen(t *testing.T) {
	r := measure(t, func(o *Options) { o.Workers, o.Jobs = []int{1, 16}, 64 })
	alone, shared := r.Runs[0].Settlement, r.Runs[1].Settlement
	if shared.Syncs >= alone.Syncs || shared.Pages >= alone.Pages || shared.WAL >= alone.WAL {
		t.Errorf("alone %+v, shared %+v", alone, shared)
	}
	if pages := alone.WAL / (4096 + 24); pages < alone.Pages-.01 || pages > alone.Pages+.01 {
		t.Errorf("%g bytes are not %g pages", alone.WAL, alone.Pages)
	}
}

func TestProcessesAndShards(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.db")
	r := measure(t, func(o *Options) {
		o.DSN, o.Processes, o.Workers, o.Jobs, o.Shards = file, 3, []int{2}, 50, 4
	})
	checkRun(t, &r.Runs[0], 50)
	if r.Processes != 3 || r.Shards != 4 || r.Runs[0].Settlement.Syncs <= 0 || r.Runs[0].Settlement.Pages <= 0 {
		t.Errorf("%+v", r)
	}
	owners := 0
	for _, name := range []string{"", ".2", ".3", ".4"} {
		l, err := ledger.Open(t.Context(), file+name, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := l.Balances(t.Context(), "", ledger.PageMax)
		if err != nil || len(list) == 0 {
			t.Errorf("shard %q has %d owners, %v", name, len(list), err)
		}
		owners += len(list)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if owners != 100 {
		t.Errorf("%d owners in all shards", owners)
	}
	_, err := Measure(t.Context(), options(func(o *Options) { o.Processes, o.Child = 2, []string{"/no/such"} }))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that does not exist: %v", err)
	}
}

// A ledger of its own is used again, with what was preloaded there, and everybody else's is left alone.
func TestOnlyInItsOwnLedger(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		rounds := 2
		if scratch.IsServer(dsn) {
			rounds = 1 // which takes longer
		}
		for range rounds {
			r := measure(t, func(o *Options) {
				o.DSN, o.Preload, o.Jobs, o.Workers = dsn, []int{50, 150}[2-rounds:], 20, []int{16}
			})
			last := rounds - 1
			if len(r.Runs) != rounds || r.Runs[0].Preloaded < 50 || r.Runs[last].Preloaded != 150 || r.Owners != 2 {
				t.Fatalf("%d runs of %d owners", len(r.Runs), r.Owners)
			}
			if len(r.Loads) != rounds || r.Loads[last].Jobs != 200 || r.Loads[last].Audit <= 0 {
				t.Errorf("loads %+v", r.Loads)
			}
			checkRun(t, &r.Runs[last], 20)
		}
		l, err := ledger.Open(t.Context(), dsn, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, owner := range []string{"zoe", "alice"} { // behind its own, and before them
			grant := ledger.GrantParams{Owner: owner, Amount: 1, Key: owner}
			if _, err := l.Grant(t.Context(), grant); err != nil {
				t.Fatal(err)
			}
			before := entries(t, l)
			_, err := Measure(t.Context(), options(func(o *Options) { o.DSN = dsn }))
			if ledger.CodeOf(err) != ledger.Invalid || !strings.Contains(err.Error(), `"`+owner+`"`) {
				t.Errorf("with %s: %v", owner, err)
			}
			if after := entries(t, l); after != before {
				t.Errorf("%d entries were written", after-before)
			}
		}
	})
}

func entries(t *testing.T, l *ledger.Ledger) (n int) {
	t.Helper()
	for after := ""; ; {
		list, err := l.Entries(t.Context(), ledger.EntryFilter{After: after, Limit: ledger.PageMax})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return n
		}
		n, after = n+len(list), list[len(list)-1].ID
	}
}

func TestRefuses(t *testing.T) {
	for field, change := range map[string]func(*Options){
		"workers":    func(o *Options) { o.Workers = nil },
		"processes":  func(o *Options) { o.Processes = 0 },
		"jobs":       func(o *Options) { o.Jobs = JobsMax + 1 },
		"mode":       func(o *Options) { o.Mode = "gift" },
		"owners":     func(o *Options) { o.Owners = -1 },
		"lots":       func(o *Options) { o.Lots = 0 },
		"preload":    func(o *Options) { o.Preload = []int{5, 5} },
		"shards":     func(o *Options) { o.DSN, o.Shards = "postgres://127.0.0.1:1/x", 2 },
		"durability": func(o *Options) { o.DSN, o.RiskPowerLoss = "postgres://127.0.0.1:1/x", true },
		"db":         func(o *Options) { o.DSN = "mysql://x" },
	} {
		_, err := Measure(t.Context(), options(change))
		if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.Invalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	many := options(func(o *Options) { o.Processes, o.Workers = 8, []int{129} })
	if _, err := Measure(t.Context(), many); ledger.CodeOf(err) != ledger.Invalid {
		t.Errorf("more callers than %d: %v", CallersMax, err)
	}
	for _, text := range []string{"", "{}", `{"Phase":"settle","Callers":1}`, `{"Phase":"steal","Owners":1}`} {
		if err := Child(t.Context(), strings.NewReader(text), io.Discard); ledger.CodeOf(err) != ledger.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The JSON form is a contract, also where nothing is preloaded.
func TestJSON(t *testing.T) {
	r := measure(t, func(o *Options) { o.RiskPowerLoss = true })
	if syncs := r.Runs[0].Settlement.Syncs; syncs != 0 {
		t.Errorf("%g syncs, where nothing waits for the disk", syncs)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	var runs []map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, &all), json.Unmarshal(all["runs"], &runs)); err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]map[string]json.RawMessage{
		"fdatasync_micros engine durability mode processes shards owners lots loads audit_seconds": all,
		"preloaded workers jobs settles_per_second p50_micros p99_micros p999_micros max_micros":   runs[0],
		"p50_per_fdatasync operations per_settlement rss_bytes":                                    runs[0],
	} {
		for _, field := range strings.Fields(name) {
			if len(has[field]) == 0 || string(has[field]) == "null" {
				t.Errorf("%s is %q", field, has[field])
			}
		}
	}
	if string(all["durability"]) != `"normal"` || string(all["loads"]) != "[]" {
		t.Errorf("durability %s, loads %s", all["durability"], all["loads"])
	}
}
