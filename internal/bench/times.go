package bench

import (
	"math"
	"slices"
	"time"
)

// Operation is how long one kind of operation took.
type Operation struct {
	Name      string  `json:"name"` // create, settle, completed, failed, duplicate or balance
	Count     int     `json:"count"`
	PerSecond float64 `json:"per_second"` // 0 for completed and failed, which are parts of settle
	P50       int64   `json:"p50_micros"`
	P99       int64   `json:"p99_micros"`
	P999      int64   `json:"p999_micros"`
	Max       int64   `json:"max_micros"`

	took []int64 // nanoseconds, rising
}

// note adds an operation to a run. took is in nanoseconds, in any order; span is what all of them took
// together, 0 if that is not known.
func (r *Run) note(name string, took []int64, span int64) *Operation {
	slices.Sort(took)
	o := Operation{
		Name: name, Count: len(took), took: took,
		P50: quantile(took, .5) / 1000, P99: quantile(took, .99) / 1000, P999: quantile(took, .999) / 1000,
		Max: quantile(took, 1) / 1000,
	}
	if span > 0 {
		o.PerSecond = float64(len(took)) / time.Duration(span).Seconds()
	}
	r.Operations = append(r.Operations, o)
	return &r.Operations[len(r.Operations)-1]
}

// quantile is the smallest of rising values that is at least as high as a part q of them; 0 if there
// are none.
func quantile(rising []int64, q float64) int64 {
	if len(rising) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(rising)))) - 1
	return rising[max(0, i)]
}

// median is the middle of a list; 0 if it is empty.
func median(list []time.Duration) time.Duration {
	rising := make([]int64, len(list))
	for i, d := range list {
		rising[i] = int64(d)
	}
	slices.Sort(rising)
	return time.Duration(quantile(rising, .5))
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
