package page

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/internal/racelab/lesson"
)

// run starts a run and gives its page when it has ended.
func (d *desk) run(path string, form url.Values) (at string) {
	d.Helper()
	a := d.do(http.MethodPost, path, form.Encode())
	if a.status != http.StatusSeeOther {
		d.Fatalf("%s %v: %d %s", path, form, a.status, text(a.body))
	}
	d.page.lab.wait()
	return a.header.Get("Location")
}

func race(changes ...string) url.Values {
	form := url.Values{
		"workers": {"3"}, "processes": {"1"}, "jobs": {"2"}, "notifications": {"6"}, "mode": {"charge"},
	}
	for i := 0; i+1 < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	return form
}

// A lesson is shown in both versions, with the picture that the command line draws.
func TestLesson(t *testing.T) {
	d := newDesk(t, Options{})
	at := d.run("/lab/lessons", url.Values{"lesson": {"lost-update"}})
	d.shows(at, "lost-update, wrong version", "Show the fixed version", "wrong", "What stops it:", "BEGIN")
	d.shows(at+"?version=fixed", "lost-update, fixed version", "Show the wrong version", "right")
	l, _ := lesson.Find("lost-update")
	r, err := l.Run(t.Context(), lesson.Options{})
	d.ok(err)
	var drawn strings.Builder
	d.ok(r.Timeline.WriteSVG(&drawn))
	a := d.do(http.MethodGet, at+"/wrong.svg", "")
	if a.body != drawn.String() || !strings.Contains(a.header.Get("Content-Disposition"), "attachment") {
		t.Error("the picture is not that of the command line")
	}
	_, style, _ := strings.Cut(drawn.String(), "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	if sheet := d.get("/page/timeline.css"); strings.TrimSpace(sheet) != strings.TrimSpace(style) {
		t.Error("the style of the pictures is not that of the command line")
	}
	if a := d.do(http.MethodGet, at+"?version=best", ""); a.status != http.StatusUnprocessableEntity {
		t.Errorf("a version that is none: %d", a.status)
	}
	d.shows("/lab", "lost-update SQLite")
}

// The rows go through a picture from its beginning to its end, and each adds something.
func TestPictureRows(t *testing.T) {
	for _, l := range lesson.All() {
		list, err := playLesson(t.Context(), &l, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list {
			x := p.Plot.Left
			for i, r := range p.Rows {
				if r.X < x || len(r.What) == 0 && r.Number == "" {
					t.Errorf("%s, %s, row %d: from %d to %d, %v", l.Name, p.Version, i, x, r.X, r.What)
				}
				x = r.X
			}
			if x != p.Plot.Right {
				t.Errorf("%s, %s ends at %d, want %d", l.Name, p.Version, x, p.Plot.Right)
			}
		}
	}
}

// A race tells who won, in one process and in several.
func TestRace(t *testing.T) {
	d := newDesk(t, Options{})
	at := d.run("/lab/races", race("mix", "1", "mode", "hold"))
	d.shows(at, "12 notifications race for 2 jobs of 7 credits, held at creation", "Wins 2",
		"Every job settled exactly once", "worker 1", "jobledger race --workers 3", "--mix")
	at = d.run("/lab/races", race("processes", "2"))
	d.shows(at, "process 2, worker 1", "Audit clean")
	if a := d.do(http.MethodGet, at+"/race.svg", ""); !strings.HasPrefix(a.body, "<svg ") {
		t.Errorf("the picture is %.100s", a.body)
	}
}

// What is out of bounds is told beside the form, which keeps what was chosen.
func TestRaceBounds(t *testing.T) {
	d := newDesk(t, Options{})
	for field, value := range map[string]string{
		"workers": "17", "processes": "0", "jobs": "21", "notifications": "sixty", "mode": "gift",
		"engine": "postgres",
	} {
		a := d.do(http.MethodPost, "/lab/races", race(field, value).Encode())
		if a.status != http.StatusUnprocessableEntity || !strings.Contains(text(a.body), field+":") {
			t.Errorf("%s=%s: %d %s", field, value, a.status, text(a.body))
		}
		if field == "workers" && !regexp.MustCompile(`name="workers"[^>]*value="17"`).MatchString(a.body) {
			t.Error("the form forgot what was chosen")
		}
	}
	if a := d.do(http.MethodPost, "/lab/lessons", "lesson=none"); a.status != http.StatusUnprocessableEntity {
		t.Errorf("a lesson that is none: %d", a.status)
	}
}

// The lab does one run at a time, shows how far it is, and keeps the last ones.
func TestOneRunAtATime(t *testing.T) {
	d := newDesk(t, Options{})
	hold, ready := make(chan struct{}), make(chan struct{})
	first, err := d.page.start("slow", "SQLite", func(_ context.Context, r *run) ([]picture, error) {
		r.steps.Store(3)
		r.total.Store(10)
		close(ready)
		<-hold
		return nil, context.DeadlineExceeded
	})
	d.ok(err)
	<-ready
	a := d.do(http.MethodPost, "/lab/lessons", "lesson=lost-update")
	if a.status != http.StatusConflict || !strings.Contains(text(a.body), "a run is under way") {
		t.Errorf("two at a time: %d %s", a.status, text(a.body))
	}
	d.shows("/lab/runs/1", "Under way: 3 of 10 steps")
	if body := d.get("/lab/runs/1"); !strings.Contains(body, `<noscript><meta http-equiv="refresh"`) {
		t.Error("without JavaScript, nobody looks again")
	}
	close(hold)
	<-first.done
	d.shows("/lab/runs/1", context.DeadlineExceeded.Error())
	for range runsKept {
		d.page.lab.wait()
		_, err := d.page.start("quick", "SQLite",
			func(context.Context, *run) ([]picture, error) { return nil, nil })
		d.ok(err)
	}
	if d.page.lab.wait(); d.page.lab.find("1") != nil || d.page.lab.find("2") == nil {
		t.Error("the lab keeps others than the last runs")
	}
}

// On a server the lab makes a scratch database for each run, and leaves none.
func TestLabOnPostgres(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		d := newDesk(t, Options{LabServer: dsn})
		at := d.run("/lab/lessons", url.Values{"lesson": {"lost-update"}, "engine": {"postgres"}})
		d.shows(at, "PostgreSQL", "wrong version", "--db postgres://...")
		at = d.run("/lab/races", race("engine", "postgres"))
		d.shows(at, "Every job settled exactly once")
		if strings.Contains(d.get(at), dsn) {
			t.Error("the page shows where the server is")
		}
	})
}
