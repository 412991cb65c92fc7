package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"jobledger/internal/racelab"
	"jobledger/internal/racelab/lesson"
	"jobledger/internal/racelab/scratch"
	"jobledger/ledger"
)

// startLesson plays both versions of a lesson.
func (p *Page) startLesson(w http.ResponseWriter, r *http.Request) {
	if !p.mayRun(w, r) {
		return
	}
	l, found := lesson.Find(r.PostFormValue("lesson"))
	server, engine, err := p.server(r)
	if !found {
		err = ledger.InvalidField("lesson", "there is no lesson %.40q", r.PostFormValue("lesson"))
	}
	var started *run
	if err == nil {
		started, err = p.start(l.Name, engine, func(ctx context.Context, _ *run) ([]picture, error) {
			return playLesson(ctx, &l, server)
		})
	}
	if err != nil {
		p.refuse(w, r, firstRace, err)
		return
	}
	p.shown(w, r, started)
}

func playLesson(ctx context.Context, l *lesson.Lesson, server string) (list []picture, err error) {
	for _, version := range []string{"wrong", "fixed"} {
		result, err := l.Run(ctx, lesson.Options{Fixed: version == "fixed", Server: server})
		if err != nil {
			return nil, err
		}
		drawn, err := draw(version, &result.Timeline)
		if err != nil {
			return nil, err
		}
		drawn.Numbers, drawn.Guard, drawn.Function = result.Numbers, result.Guard, result.Function
		list = append(list, drawn)
	}
	return list, nil
}

// raceForm is a race as it was chosen.
type raceForm struct {
	Workers, Processes, Jobs, Notifications string
	Mode                                    string
	Mix                                     bool
}

// firstRace is the one that the form begins with.
var firstRace = raceForm{"8", "1", "1", "16", string(ledger.ModeCharge), false}

// The bounds of a race in the browser. One at a terminal can be larger.
const (
	workersMax       = 16
	processesMax     = 4
	jobsMax          = 20
	notificationsMax = 64
	raceCost         = 7
)

func readRace(r *http.Request) raceForm {
	return raceForm{
		Workers: r.PostFormValue("workers"), Processes: r.PostFormValue("processes"),
		Jobs: r.PostFormValue("jobs"), Notifications: r.PostFormValue("notifications"),
		Mode: r.PostFormValue("mode"), Mix: r.PostFormValue("mix") != "",
	}
}

// options reads the form's numbers.
func (f *raceForm) options() (racelab.Options, error) {
	o := racelab.Options{Cost: raceCost, Mode: ledger.Mode(f.Mode), Mix: f.Mix}
	if o.Mode != ledger.ModeCharge && o.Mode != ledger.ModeHold {
		return o, ledger.InvalidField("mode", "%.40q is not one of hold, charge", f.Mode)
	}
	for _, n := range []struct {
		field, text string
		max         int
		into        *int
	}{
		{"workers", f.Workers, workersMax, &o.Workers},
		{"processes", f.Processes, processesMax, &o.Processes},
		{"jobs", f.Jobs, jobsMax, &o.Jobs},
		{"notifications", f.Notifications, notificationsMax, &o.Notifications},
	} {
		value, err := strconv.Atoi(n.text)
		if err != nil || value < 1 || value > n.max {
			return o, ledger.InvalidField(n.field, "%.20q is out of range; it takes 1 to %d here", n.text, n.max)
		}
		*n.into = value
	}
	return o, nil
}

// command is what gives the same race at a terminal.
func command(o *racelab.Options) string {
	text := fmt.Sprintf("jobledger race --workers %d --notifications %d --processes %d --jobs %d --mode %s",
		o.Workers, o.Notifications, o.Processes, o.Jobs, o.Mode)
	if o.Mix {
		text += " --mix"
	}
	return text
}

// startRace starts a race.
func (p *Page) startRace(w http.ResponseWriter, r *http.Request) {
	if !p.mayRun(w, r) {
		return
	}
	form := readRace(r)
	o, err := form.options()
	server, engine, serverErr := p.server(r)
	if err = cmp.Or(err, serverErr); err != nil {
		p.refuse(w, r, form, err)
		return
	}
	o.Child = p.options.RaceChild
	started, err := p.start(o.Title(), engine, func(ctx context.Context, run *run) ([]picture, error) {
		o.Progress = func(done, total int) {
			run.steps.Store(int64(done))
			run.total.Store(int64(total))
		}
		return playRace(ctx, o, server)
	})
	if err != nil {
		p.refuse(w, r, form, err)
		return
	}
	p.shown(w, r, started)
}

// playRace races in a scratch database: one of SQLite, which the race makes itself, or one on a server.
func playRace(ctx context.Context, o racelab.Options, server string) (list []picture, err error) {
	if server != "" {
		place, err := scratch.Make(ctx, server)
		if err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, place.Remove()) }()
		if _, err := ledger.Create(ctx, place.DSN, ledger.Options{}); err != nil {
			return nil, err
		}
		o.DSN = place.DSN
	}
	result, err := racelab.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	drawn, err := draw("race", result.Timeline(o.Title(), command(&o)))
	if err != nil {
		return nil, err
	}
	drawn.Race = &result
	return []picture{drawn}, nil
}
