package page

import (
	"bytes"
	"cmp"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"jobledger/internal/racelab"
	"jobledger/internal/racelab/lesson"
	"jobledger/internal/racelab/timeline"
	"jobledger/ledger"
)

// picture is one timeline of a run, with all that its page shows.
type picture struct {
	Version  string // wrong, fixed or race
	Timeline *timeline.Timeline
	Drawing  template.HTML // without its style, which the page has from a file
	Plot     timeline.Plot
	Rows     []pictureRow
	Numbers  []lesson.Number // of a lesson
	Guard    string
	Function string
	Race     *racelab.Result // of a race
	file     []byte          // the whole picture
}

// pictureRow is one moment of a picture: what it adds, and how far the picture is seen then.
type pictureRow struct {
	At     string
	What   []spoken
	Number string // if it changed
	X      int    // what is left of it has happened
}

// spoken is what an actor did.
type spoken struct{ Actor, Text string }

const (
	styleBegin = "<style>"
	styleEnd   = "</style>\n"
)

// draw makes a picture of a timeline.
func draw(version string, t *timeline.Timeline) (picture, error) {
	var b bytes.Buffer
	if err := t.WriteSVG(&b); err != nil {
		return picture{}, err
	}
	p := picture{Version: version, Timeline: t, Plot: t.Plot(), file: b.Bytes()}
	before, rest, _ := strings.Cut(b.String(), styleBegin)
	_, after, _ := strings.Cut(rest, styleEnd)
	p.Drawing = template.HTML(before + after)
	p.Rows = p.rows()
	return p, nil
}

// rows tells a picture moment by moment. With steps each is a moment; with time, each end of something.
func (p *picture) rows() (rows []pictureRow) {
	t := p.Timeline
	ends := func(e *timeline.Event) int64 {
		if t.Unit == timeline.Steps {
			return e.Start
		}
		return e.End
	}
	moments := make(map[int64]*pictureRow)
	var order []int64
	at := func(time int64) *pictureRow {
		if moments[time] == nil {
			moments[time] = &pictureRow{}
			order = append(order, time)
		}
		return moments[time]
	}
	for i := range t.Events {
		e := &t.Events[i]
		row := at(ends(e))
		row.What = append(row.What, spoken{t.Lanes[e.Lane], cmp.Or(e.Detail, e.Label)})
	}
	for _, point := range t.Number.Points {
		if point.At > 0 {
			at(point.At).Number = strconv.FormatInt(point.Value, 10)
		}
	}
	slices.Sort(order)
	for i, time := range order {
		row := moments[time]
		switch last := i == len(order)-1; {
		case last:
			row.X = p.Plot.Right
		case t.Unit == timeline.Steps:
			row.X = p.Plot.X(order[i+1])
		default:
			row.X = p.Plot.X(time) + 1
		}
		row.At = clock(t.Unit, time)
		rows = append(rows, *row)
	}
	return rows
}

func clock(u timeline.Unit, at int64) string {
	if u == timeline.Steps {
		return strconv.FormatInt(at, 10)
	}
	return strconv.FormatFloat(float64(at)/1000, 'f', 3, 64)
}

// First is the number before anything happened.
func (p *picture) First() string {
	for _, point := range p.Timeline.Number.Points {
		if point.At == 0 {
			return strconv.FormatInt(point.Value, 10)
		}
	}
	return ""
}

// timelineStyle is the style of all pictures, as they have it in themselves.
func timelineStyle(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	empty := timeline.Timeline{Unit: timeline.Steps}
	if err := empty.WriteSVG(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, rest, _ := strings.Cut(b.String(), styleBegin)
	style, _, _ := strings.Cut(rest, styleEnd)
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", tag([]byte(style)))
	http.ServeContent(w, r, "", noTime, strings.NewReader(style))
}

// runData is a run, and the picture of it that is looked at.
type runData struct {
	*run
	Picture *picture
	Other   string // the version to flip to; empty: there is none
	Err     string
	Done    int64
	Total   int64
}

func (p *Page) runPage(r *http.Request) (view, error) {
	found := p.lab.find(r.PathValue("run"))
	if found == nil {
		return view{}, noRun()
	}
	d := runData{run: found, Done: found.steps.Load(), Total: found.total.Load()}
	v := view{Title: found.Title, Here: "lab", Running: !found.Ended(), Still: found.Ended(), Chart: true}
	if found.Ended() && found.err != nil {
		d.Err = found.err.Error()
	} else if found.Ended() {
		version := r.URL.Query().Get("version")
		for i := range found.pictures {
			if each := &found.pictures[i]; each.Version == version || version == "" && i == 0 {
				d.Picture = each
			} else {
				d.Other = each.Version
			}
		}
		if d.Picture == nil {
			return view{}, ledger.InvalidField("version", "%.40q is not one of this run", version)
		}
	}
	v.Data = d
	return v, nil
}

// runPicture gives a picture as a file.
func (p *Page) runPicture(w http.ResponseWriter, r *http.Request) {
	found := p.lab.find(r.PathValue("run"))
	if found != nil && found.Ended() {
		for _, each := range found.pictures {
			if r.PathValue("file") == each.Version+".svg" {
				name := "jobledger-" + each.Version + "-" + strconv.Itoa(found.ID) + ".svg"
				w.Header().Set("Content-Type", "image/svg+xml")
				w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
				http.ServeContent(w, r, "", noTime, bytes.NewReader(each.file))
				return
			}
		}
	}
	p.fail(w, r, noRun())
}

func noRun() error {
	return &ledger.Error{
		Code: ledger.NotFound, Message: "there is no such run: the lab keeps the last " + strconv.Itoa(runsKept),
	}
}
