package bench

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
)

// sample is a report whose figures are made up: settlements by several numbers of callers, each at sizes.
func sample(callers, sizes []int) Report {
	r := Report{Engine: "sqlite", Durability: "full", Mode: ledger.ModeHold, Processes: 1, Fdatasync: 900}
	for _, size := range sizes {
		if size > 0 {
			r.Loads = append(r.Loads, Load{Jobs: size})
		}
		for _, n := range callers {
			run := Run{Workers: n, Preloaded: size}
			for k, name := range []string{"create", "settle", "balance"} {
				var took []int64
				for i := range 1000 {
					took = append(took, int64(n*(i+100)*1000/(k+1)))
				}
				run.note(name, took, int64(time.Second))
			}
			run.P50, run.P99, run.Max = run.Operations[1].P50, run.Operations[1].P99, run.Operations[1].Max
			r.Runs = append(r.Runs, run)
		}
	}
	return r
}

func TestPicture(t *testing.T) {
	for _, c := range []struct {
		callers, sizes []int
		want           []string
		charts, lines  int
	}{
		{[]int{1}, []int{0}, []string{">1 caller<", "half within 0.30 ms, 99 of 100 within 0.54 ms"}, 1, 1},
		{[]int{1, 16, 64}, []int{0}, []string{">64 callers<", ">99.9 %<", ">1 ms<", "synchronous=FULL"}, 1, 3},
		{[]int{1, 64}, []int{10_000, 1_000_000},
			[]string{">1M<", ">10k<", ">settle, 64<", ">64 callers, 1M jobs<"}, 2, 10},
	} {
		r := sample(c.callers, c.sizes)
		svg := r.SVG()
		if again := sample(c.callers, c.sizes); svg != again.SVG() {
			t.Error("the same figures give two pictures")
		}
		for _, want := range append(c.want, "prefers-color-scheme:dark", `role="img"`, "<desc") {
			if !strings.Contains(svg, want) {
				t.Errorf("%v callers: no %s", c.callers, want)
			}
		}
		if n := strings.Count(svg, `class="title"`); n != c.charts {
			t.Errorf("%d charts, want %d", n, c.charts)
		}
		// Each line is there twice: itself, and beside its name.
		if n := strings.Count(svg, `class="line `); n != 2*c.lines {
			t.Errorf("%v callers: %d lines, want %d", c.callers, n, 2*c.lines)
		}
		checkPlaces(t, svg)
	}
}

var places = regexp.MustCompile(`<(?:text|path)[^>]* (?:x|d)="([^"]*)"(?: y="(\d+)")?`)

// checkPlaces proves that a picture is well-formed, and that nothing stands outside of it.
func checkPlaces(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	var width, height int
	_, box, _ := strings.Cut(svg, `viewBox="0 0 `)
	if _, err := fmt.Sscanf(box, "%d %d", &width, &height); err != nil {
		t.Fatal(err)
	}
	found := places.FindAllStringSubmatch(svg, -1)
	for _, m := range found {
		for _, part := range regexp.MustCompile(`-?\d+`).FindAllString(m[1]+" "+m[2], -1) {
			if n, err := strconv.Atoi(part); err != nil || n < 0 || n > max(width, height) {
				t.Errorf("%s is outside of the picture: %s", part, m[0])
			}
		}
	}
	if len(found) < 20 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("%d things are drawn", len(found))
	}
}

// Names that would stand on each other are moved apart.
func TestNamesStandApart(t *testing.T) {
	var c chart
	for i := range 5 {
		c.lines = append(c.lines, line{fmt.Sprint(i), []point{{0, float64(i % 2)}}})
	}
	var last int
	for _, i := range []int{0, 2, 4, 1, 3} {
		at := c.names(func(v float64) int { return 100 + 3*int(v) })[i]
		if at < last+16 && last > 0 {
			t.Errorf("line %d stands at %d, another at %d", i, at, last)
		}
		last = at
	}
}

func TestQuantile(t *testing.T) {
	rising := make([]int64, 1000)
	for i := range rising {
		rising[i] = int64(i + 1)
	}
	for _, c := range []struct {
		n    int
		q    float64
		want int64
	}{
		{1000, 0, 1}, {1000, .5, 500}, {1000, .99, 990}, {1000, .999, 999}, {1000, 1, 1000},
		{1, .5, 1}, {1, .999, 1}, {2, .5, 1}, {2, .51, 2}, {3, .5, 2}, {100, .99, 99}, {100, .999, 100}, {0, .5, 0},
	} {
		if got := quantile(rising[:c.n], c.q); got != c.want {
			t.Errorf("%g of %d: %d, want %d", c.q, c.n, got, c.want)
		}
	}
	if got := median([]time.Duration{9, 1, 5}); got != 5 || median(nil) != 0 {
		t.Errorf("median %d, %d", got, median(nil))
	}
}

// The names of owners and jobs: those of a preloaded ledger are at even distances.
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		owners, size, jobs int
		loaded             bool
		want, stride       int
	}{
		{0, 0, 10, false, 100, 0}, {7, 0, 10, false, 7, 0}, {0, 1_000_000, 2000, true, 2000, 5},
		{1, 1_000_000, 2000, true, 1, 10_000}, {500, 1000, 50, true, 10, 1}, {0, 50, 10, true, 1, 1},
	} {
		var p plan
		p.spread(c.owners, c.size, c.jobs)
		if p.Loaded != c.loaded || p.Owners != c.want || p.Stride != c.stride {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	p := plan{Session: "s", Loaded: true, Owners: 2000, Stride: 5}
	if got := p.job(2001); got != "bench-load-0000005-s-2001" {
		t.Error(got)
	}
}

func TestWordsOfAPicture(t *testing.T) {
	for n, want := range map[int]string{
		1: "1", 999: "999", 1000: "1k", 1500: "1500", 10_000: "10k", 1_000_000: "1M", 10_000_000: "10M",
		1_500_000: "1500k",
	} {
		if got := short(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for power, want := range map[float64]string{
		0: "1 us", 2: "100 us", 3: "1 ms", 5: "100 ms", 6: "1 s", 7: "10 s",
	} {
		if got := powerName(power); got != want {
			t.Errorf("10^%g is %q, want %q", power, got, want)
		}
	}
	for _, c := range []struct {
		at, low, high float64
		want          int
	}{{5, 0, 10, 50}, {0, 0, 10, 0}, {10, 0, 10, 100}, {3, 3, 3, 50}} {
		if got := scaled(c.at, c.low, c.high, 100); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	c := chart{sync: 950, lines: []line{{"", []point{{0, 20}, {0, 30_000}}}}}
	if low, high := c.powers(); low != 1 || high != 5 {
		t.Errorf("powers %g to %g", low, high)
	}
	flat := chart{lines: []line{{"", []point{{0, 100}}}}}
	if low, high := flat.powers(); low != 1 || high != 2 {
		t.Errorf("powers of one value %g to %g", low, high)
	}
}
