package ledger_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// world is a small world: a few lots, and one job that is paid from them and settled. Hours are counted from
// the world's beginning.
type world struct {
	lots    []worldLot
	cost    int64
	created int // the hour in which the job is made
	settled int // the hour in which it ends, later
	actual  int64
}

type worldLot struct {
	amount   int64
	priority int64
	expires  int // hour; 0: never
}

// worlds calls fn with every small world, and counts them.
func worlds(fn func(n int, w world)) (n int) {
	var one []worldLot
	for _, amount := range []int64{1, 3} {
		for _, priority := range []int64{0, 1} {
			for _, expires := range []int{0, 2, 4} {
				one = append(one, worldLot{amount, priority, expires})
			}
		}
	}
	sets := [][]worldLot{{}}
	for range 3 {
		for _, set := range slices.Clone(sets) {
			for _, lot := range one {
				sets = append(sets, append(slices.Clone(set), lot))
			}
		}
		sets = slices.CompactFunc(sets, slices.Equal)
	}
	slices.SortFunc(sets, func(a, b []worldLot) int { return slices.CompareFunc(a, b, compareLots) })
	for _, set := range slices.CompactFunc(sets, slices.Equal) {
		if len(set) == 0 {
			continue
		}
		for _, cost := range []int64{1, 2, 4} {
			for _, hours := range [][2]int{{1, 1}, {1, 3}, {1, 5}, {3, 5}} {
				for actual := int64(-1); actual <= cost; actual++ { // -1: it fails
					fn(n, world{set, cost, hours[0], hours[1], actual})
					n++
				}
			}
		}
	}
	return n
}

func compareLots(p, q worldLot) int {
	return cmp.Or(cmp.Compare(p.amount, q.amount), cmp.Compare(p.priority, q.priority), p.expires-q.expires)
}

// outcome tells by slow and simple means where the credits of each lot are in the end: available, held, used,
// expired. Of a job that cannot be paid ok is false.
func (w *world) outcome() (lots [][4]int64, ok bool) {
	lots = make([][4]int64, len(w.lots))
	order := make([]int, len(w.lots))
	for i, l := range w.lots {
		lots[i][0], order[i] = l.amount, i
	}
	never := func(i int) int { return cmp.Or(w.lots[i].expires, 1000) }
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(w.lots[i].priority, w.lots[j].priority), never(i)-never(j))
	})
	w.expire(lots, w.created)
	paid := make([]int64, len(w.lots))
	missing := w.cost
	for _, i := range order {
		paid[i] = min(missing, lots[i][0])
		missing -= paid[i]
	}
	if missing > 0 {
		return lots, false
	}
	consume := max(w.actual, 0)
	for _, i := range order {
		used := min(consume, paid[i])
		consume -= used
		lots[i][0] -= used // what was paid and not used is available again
		lots[i][2] += used
	}
	w.expire(lots, w.settled)
	return lots, true
}

func (w *world) expire(lots [][4]int64, hour int) {
	for i, l := range w.lots {
		if l.expires > 0 && l.expires <= hour {
			lots[i][3] += lots[i][0]
			lots[i][0] = 0
		}
	}
}

// Every small world ends as a slow and simple calculation says: which lots pay, in which order, and where
// what comes back is.
func TestSmallWorlds(t *testing.T) {
	all := worlds(func(int, world) {})
	c := dbtest.StartCampaign(t, "T37", 600)
	stride := max(all/max(c.Wanted, 1), 1)
	path := filepath.Join(memoryDir(t), "worlds.db")
	if _, err := ledger.Create(t.Context(), path, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	b := newWorkbench(t, path)
	dbtest.KeepIfFailed(t, path)
	offset := int(c.Seed % uint64(stride))
	c.All((all - offset + stride - 1) / stride)
	worlds(func(n int, w world) {
		if n%stride == offset && !t.Failed() {
			b.live(n, &w)
			c.Done(true)
		}
	})
	b.audit()
	t.Logf("%d worlds in all, one in %d from the %dth", all, stride, offset)
}

// live runs a world in the ledger.
func (b *workbench) live(n int, w *world) {
	b.Helper()
	owner, begin := fmt.Sprint("world-", n), time.Duration(n)*10*time.Hour
	hour := func(h int) time.Duration { return begin + time.Duration(h)*time.Hour }
	b.at(begin)
	for i, l := range w.lots {
		key := fmt.Sprint(owner, "-", i)
		p := ledger.GrantParams{Owner: owner, Amount: l.amount, Priority: l.priority, Key: key}
		if l.expires > 0 {
			p.Expires = on(hour(l.expires))
		}
		_, err := b.Grant(b.Context(), p)
		b.ok(err)
	}
	want, payable := w.outcome()
	b.at(hour(w.created))
	_, err := b.CreateJob(b.Context(), ledger.JobParams{ID: owner, Owner: owner, Cost: w.cost})
	if !payable {
		b.fails(err, ledger.InsufficientCredits)
		return
	}
	b.ok(err)
	b.at(hour(w.settled))
	if w.actual < 0 {
		_, err = b.report(owner, ledger.Failed)
	} else {
		_, err = b.report(owner, ledger.Completed, w.actual)
	}
	b.ok(err)
	_, err = b.Sweep(b.Context(), ledger.PageMax)
	b.ok(err)
	got := make([][4]int64, 0, len(want))
	has, err := b.Balance(b.Context(), ledger.BalanceParams{Owner: owner, Lots: true})
	b.ok(err)
	// Ids grow: this is the order in which they were granted.
	slices.SortFunc(has.Lots, func(p, q ledger.Lot) int { return cmp.Compare(p.ID, q.ID) })
	for _, l := range has.Lots {
		got = append(got, [4]int64{l.Available, l.Held, l.Used, l.Expired})
	}
	if !slices.Equal(got, want) {
		b.Errorf("world %d, %+v: lots %v, want %v", n, *w, got, want)
	}
}
