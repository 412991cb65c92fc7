package page

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// sight is one view, in the state that it is in on a desk.
type sight struct {
	name, path string
	desk       *desk
}

// sights gives every view there is: with a busy day's content, empty, while it waits, and as an error.
func sights(t *testing.T) (list []sight) {
	busy := newDesk(t, Options{LabServer: "postgres://nobody@127.0.0.1:1/none"})
	busy.ago.Store(int64(15 * 24 * time.Hour))
	busy.grant("alice", "first", 1_100_000, 0)
	busy.grow("alice", 48)
	busy.busyDay()
	busy.look()
	empty := newDesk(t, Options{})
	empty.look()
	beginning := newDesk(t, Options{})
	beginning.grant("alice", "a", 10, 0)
	broken := newDesk(t, Options{})
	broken.page.watch.audit = brokenAudit()
	closed, _ := newClosedDesk(t, "read")
	busy.run("/lab/lessons", url.Values{"lesson": {"lost-update"}})
	busy.run("/lab/races", race("jobs", "3", "workers", "6", "notifications", "12", "mix", "1"))
	slow, err := beginning.page.start("slow", "SQLite", func(ctx context.Context, r *run) ([]picture, error) {
		r.steps.Store(30)
		r.total.Store(100)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	busy.ok(err)
	t.Cleanup(func() { beginning.page.stop(); <-slow.done })
	add := func(d *desk, name, path string) { list = append(list, sight{name: name, path: path, desk: d}) }
	add(busy, "status", "/")
	add(busy, "owners", "/owners")
	add(busy, "owner", "/owners/alice")
	add(busy, "jobs", "/jobs")
	add(busy, "job", "/jobs/img-0001")
	add(busy, "job-open", "/jobs/img-0006")
	add(busy, "reconcile", "/reconcile")
	add(busy, "conflicts", "/conflicts")
	add(busy, "deliveries", "/deliveries")
	add(busy, "audit", "/audit")
	add(busy, "lab", "/lab")
	add(busy, "lesson-wrong", "/lab/runs/1")
	add(busy, "lesson-fixed", "/lab/runs/1?version=fixed")
	add(busy, "race", "/lab/runs/2")
	add(empty, "status-empty", "/")
	add(empty, "jobs-empty", "/jobs")
	add(beginning, "status-beginning", "/")
	add(beginning, "run-under-way", "/lab/runs/1")
	add(broken, "audit-broken", "/audit")
	add(closed, "sign-in", "/")
	add(busy, "error", "/jobs/nobody")
	return list
}

// faults runs axe in the page, and gives what it finds.
func (b *browser) faults(axe string) []string {
	b.Helper()
	if !eval[bool](b, "'axe' in window") {
		eval[chromedp.Void](b, axe)
	}
	return eval[[]string](b, `(async () => {
		const found = await axe.run(document, {resultTypes: ["violations"]});
		return found.violations.map((v) => v.id + ": " + v.help + ": " +
			v.nodes.map((n) => n.target.join(" ") + " " + n.failureSummary).join("; "));
	})()`)
}

// Everybody can use every view, in light and dark surroundings: axe finds nothing. And no view is wider
// than its window, from a telephone to a projector.
func TestBrowserSeesEveryView(t *testing.T) {
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	list := sights(t)
	b := list[0].desk.browse(1280, 800)
	if b == nil {
		return
	}
	b.expected = "404 (Not Found)"
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			b.visit(s.desk)
			b.surroundings("light", "reduce")
			b.open(s.path)
			b.until("document.querySelector('h1')")
			for _, scheme := range []string{"dark", "light"} {
				b.surroundings(scheme, "reduce")
				for _, fault := range b.faults(string(axe)) {
					t.Errorf("%s: %s", scheme, fault)
				}
			}
			b.sizes(t, s.name)
		})
	}
}

// sizes looks at a view in windows of different widths, and keeps pictures if they are asked for.
func (b *browser) sizes(t *testing.T, name string) {
	for _, width := range []int64{360, 1280, 2560} {
		b.do(chromedp.EmulateViewport(width, width*5/8))
		if wide := eval[int64](b, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("it is %d wide in a window of %d", wide, width)
		}
		if os.Getenv("JOBLEDGER_SCREENSHOTS") == "" {
			continue
		}
		for _, scheme := range []string{"light", "dark"} {
			b.surroundings(scheme, "reduce")
			b.shoot(fmt.Sprintf("%s-%d-%s", name, width, scheme))
		}
	}
}
