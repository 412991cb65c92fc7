package racelab

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"jobledger/internal/racelab/timeline"
	"jobledger/ledger"
)

const (
	lanesMax = 16   // workers in a picture
	barsMin  = 48   // bars that are side by side in a lane and are still seen apart
	stepsMax = 1000 // changes of the number, as many as there are pixels
)

// worker is who fired, as the observers name it.
type worker struct{ process, number int }

// Title says in a few words what is raced.
func (o *Options) Title() string {
	paid := map[ledger.Mode]string{
		ledger.ModeCharge: "charged at creation",
		ledger.ModeHold:   "held at creation",
	}
	return fmt.Sprintf("%s race for %s of %d credits, %s", things(o.Jobs*o.Notifications, "notification"),
		things(o.Jobs, "job"), o.Cost, paid[o.Mode])
}

func things(n int, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", n, name)
}

// Timeline is the race as it was measured: a bar for each notification, from its call to its answer, in
// microseconds since the first call. The number is what the owner had available, by the journal, from
// the time on at which the commit was answered.
//
// Of more than 16 workers it shows those who won first, and the caption says how many are missing.
// Notifications of a worker that are too short to be seen apart are drawn as one.
func (r *Result) Timeline(title, caption string) *timeline.Timeline {
	t := &timeline.Timeline{
		Title: title,
		Description: "Each bar is a notification, from its call to its answer. The first to settle a job wins; " +
			"all others lose, and are told how the job had ended.",
		Caption: caption,
		Unit:    timeline.Micros,
		Number:  timeline.Series{Name: "available", Want: new(r.want)},
	}
	fired := r.byWorker()
	drawn := chosen(fired)
	if missing := len(fired) - len(drawn); missing > 0 {
		t.Caption += fmt.Sprintf(" (%d of %d workers, the first winners among them; %d are not shown)",
			len(drawn), len(fired), missing)
	}
	first, last := r.span()
	for lane, w := range drawn {
		t.Lanes = append(t.Lanes, w.name(fired))
		for _, g := range groups(fired[w], (last-first)/barsMin) {
			t.Events = append(t.Events, g.events(lane, first)...)
		}
	}
	t.Number.Points = r.points(first, (last-first)/stepsMax)
	return t
}

// name tells a worker from all that fired.
func (w worker) name(fired map[worker][]shot) string {
	for other := range fired {
		if other.process != w.process {
			return fmt.Sprintf("process %d, worker %d", w.process, w.number)
		}
	}
	return fmt.Sprintf("worker %d", w.number)
}

// span is when the first notification began and when the last was answered.
func (r *Result) span() (first, last int64) {
	first = math.MaxInt64
	for i := range r.shots {
		first, last = min(first, r.shots[i].Began), max(last, r.shots[i].end())
	}
	return first, last
}

// byWorker gives each worker's notifications, one after the other.
func (r *Result) byWorker() map[worker][]shot {
	fired := make(map[worker][]shot)
	for _, s := range r.shots {
		w := worker{s.Process, s.Worker}
		fired[w] = append(fired[w], s)
	}
	for _, list := range fired {
		slices.SortStableFunc(list, func(a, b shot) int { return cmp.Compare(a.Began, b.Began) })
		for i := 1; i < len(list); i++ {
			// The clock of the machine may have been set meanwhile.
			list[i].Began = max(list[i].Began, list[i-1].end())
		}
	}
	return fired
}

// chosen picks the workers to draw, those who won first, and gives them in the order of their numbers.
func chosen(fired map[worker][]shot) (list []worker) {
	won := make(map[worker]int64)
	for w, shots := range fired {
		list = append(list, w)
		won[w] = math.MaxInt64
		if i := slices.IndexFunc(shots, func(s shot) bool { return s.Won }); i >= 0 {
			won[w] = shots[i].end()
		}
	}
	number := func(a, b worker) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.number, b.number))
	}
	slices.SortFunc(list, func(a, b worker) int { return cmp.Or(cmp.Compare(won[a], won[b]), number(a, b)) })
	list = list[:min(len(list), lanesMax)]
	slices.SortFunc(list, number)
	return list
}

// points is what the owner had available after each commit that settled a job, in the order of the
// journal. Commits whose answers came within a short time, maybe in another order, are one change.
func (r *Result) points(first, short int64) []timeline.Point {
	answered := make(map[string]int64)
	for i := range r.shots {
		if s := &r.shots[i]; s.Won {
			answered[s.Job] = s.end() - first
		}
	}
	list := []timeline.Point{{At: 0, Value: r.Before.Available}}
	for _, m := range r.moves {
		at, last := answered[m.job], len(list)-1
		if last > 0 && at-list[last].At <= short {
			list[last].Value = m.available
		} else {
			list = append(list, timeline.Point{At: at, Value: m.available})
		}
	}
	return list
}

// group is notifications of a worker that follow each other, drawn as one bar.
type group []shot

// groups puts together what lasts no longer than short together.
func groups(shots []shot, short int64) (list []group) {
	for _, s := range shots {
		if n := len(list); n > 0 && s.end()-list[n-1][0].Began <= short {
			list[n-1] = append(list[n-1], s)
		} else {
			list = append(list, group{s})
		}
	}
	return list
}

// events draws a group: a bar, and in it a mark for each retry and one where the last win was answered.
func (g group) events(lane int, first int64) []timeline.Event {
	won, lost, told := g.story()
	bar := timeline.Event{Lane: lane, Start: g[0].Began - first, Kind: timeline.Call, Label: lost, Detail: told}
	bar.End = max(bar.Start+1, g[len(g)-1].end()-first)
	bar.Detail += fmt.Sprintf(", until %d.%03d ms", bar.End/1000, bar.End%1000)
	list := []timeline.Event{bar}
	mark := func(at int64, kind timeline.Kind, label, detail string) {
		at -= first
		e := timeline.Event{Lane: lane, Start: at, End: at, Kind: kind, Label: label, Detail: detail}
		list = append(list, e)
	}
	last := g.lastWin()
	for i := range g {
		for _, after := range g[i].Busy {
			mark(g[i].Began+after, timeline.Retry, "BUSY", "the answer was BUSY; tried again")
		}
		if i == last {
			mark(g[i].end(), timeline.Commit, won, "job "+g[i].Job+", its answer: "+g[i].answer())
		}
	}
	return list
}

// lastWin is the place of the last winner, or less than 0.
func (g group) lastWin() int {
	for i := len(g) - 1; i >= 0; i-- {
		if g[i].Won {
			return i
		}
	}
	return -1
}

// story tells what became of a group: the labels of its winners and of its losers, and in full.
func (g group) story() (won, lost, told string) {
	wins := 0
	for i := range g {
		if g[i].Won {
			wins++
		}
	}
	if len(g) == 1 {
		told = g[0].story()
	} else {
		told = fmt.Sprintf("%d notifications, one after the other: %d won, %d lost", len(g), wins, len(g)-wins)
	}
	return counted(wins, "won"), counted(len(g)-wins, "lost"), told
}

// counted is a word with the number of what it is said of, if there are several; nothing if there is none.
func counted(n int, word string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return word
	}
	return fmt.Sprintf("%d %s", n, word)
}

// story tells what a notification said and what it was told.
func (s *shot) story() string {
	return fmt.Sprintf("job %s, said %s: %s", s.Job, s.Reported, s.answer())
}

// answer tells what a notification was told.
func (s *shot) answer() string {
	if s.Won {
		return fmt.Sprintf("won, returned %d, consumed %d", s.Returned, s.Consumed)
	}
	return "lost, the job had ended " + string(s.Outcome)
}
