package bench

import (
	"fmt"
	"html"
	"math"
	"strings"

	"jobledger/internal/racelab/timeline"
)

// The picture's measures, in pixels.
const (
	pictureWidth = 860
	plotLeft     = 80
	plotRight    = 640 // the names of the lines stand behind it
	plotHeight   = 260
	titleHeight  = 64
	footHeight   = 56
)

// sheet is the style of everything but text.
const sheet = `
.paper{fill:@paper;stroke:@rule}
.rule{stroke:@rule}
.sync{stroke:@soft;stroke-width:1.5;stroke-dasharray:6 4}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.l0{stroke:@blue}.l1{stroke:@green}.l2{stroke:@violet}.l3{stroke:@amber}.l4{stroke:@red}.l5{stroke:@ink}
text{paint-order:stroke;stroke:@paper;stroke-width:4;stroke-linejoin:round}
`

// colors is how many kinds of line the sheet has.
const colors = 6

// point is a place in a chart's own terms, line a named series of them.
type point struct{ x, y float64 }

type line struct {
	name   string
	points []point
}

// tick is a place on an axis and what stands there.
type tick struct {
	at   float64
	text string
}

// chart is lines over an axis of its own kind, with times, in microseconds, upwards by powers of ten.
type chart struct {
	title, note string
	x           []tick
	lines       []line
	sync        float64 // the disk's time; 0: not known
}

// SVG draws how the settlements' times are distributed, a line for each run, and, if the runs were made at
// several sizes, how the median of each operation grows with the ledger. The same report gives the same
// picture. It stands alone, has no scripts, and suits light and dark surroundings.
func (r *Report) SVG() string {
	charts := []chart{r.distribution()}
	if len(r.Loads) > 1 {
		charts = append(charts, r.growth())
	}
	var b strings.Builder
	const each = titleHeight + plotHeight + footHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`role="img" aria-labelledby="bench-title bench-desc">`+"\n", pictureWidth, each*len(charts))
	fmt.Fprintf(&b, "<title id=\"bench-title\">%s</title>\n<desc id=\"bench-desc\">%s</desc>\n",
		html.EscapeString(charts[0].title), html.EscapeString(r.inWords()))
	fmt.Fprintf(&b, "<style>\n%s</style>\n", timeline.Style(sheet))
	fmt.Fprintf(&b, `<rect class="paper" x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n",
		pictureWidth-1, each*len(charts)-1)
	for i := range charts {
		charts[i].draw(&b, i*each)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// inWords is what the picture tells those who do not see it.
func (r *Report) inWords() string {
	var list []string
	for i := range r.Runs {
		run := &r.Runs[i]
		list = append(list, fmt.Sprintf("%s: half within %s ms, 99 of 100 within %s ms, all within %s ms.",
			r.name(run), ms(run.P50), ms(run.P99), ms(run.Max)))
	}
	return strings.Join(list, " ")
}

func (r *Report) name(run *Run) string {
	text := fmt.Sprintf("%d callers", run.Workers*r.Processes)
	if run.Workers*r.Processes == 1 {
		text = "1 caller"
	}
	if run.Preloaded > 0 {
		text += fmt.Sprintf(", %s jobs", short(run.Preloaded))
	}
	return text
}

// short writes a number that ends in zeros with k or M.
func short(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// distribution has the part of the settlements to the right, so that each further nine is as wide as the
// one before.
func (r *Report) distribution() chart {
	c := chart{
		title: "How long a settlement takes",
		note: fmt.Sprintf("%s, mode %s, synchronous=%s; dashed: one fdatasync of the same disk",
			r.Engine, r.Mode, strings.ToUpper(r.Durability)),
		x: []tick{
			{nines(0), "fastest"}, {nines(.5), "50 %"}, {nines(.9), "90 %"}, {nines(.99), "99 %"},
			{nines(.999), "99.9 %"},
		},
		sync: r.Fdatasync,
	}
	for i := range r.Runs {
		l := line{name: r.name(&r.Runs[i])}
		for _, o := range r.Runs[i].Operations {
			if o.Name != "settle" {
				continue
			}
			const steps = 120
			for s := range steps + 1 {
				q := 1 - math.Pow(10, -3*float64(s)/steps)
				l.points = append(l.points, point{nines(q), float64(quantile(o.took, q)) / 1000})
			}
		}
		c.lines = append(c.lines, l)
	}
	return c
}

// nines tells how many nines a part has: 0.9 has one, 0.99 two.
func nines(q float64) float64 { return -math.Log10(1 - q) }

// growth has the size of the ledger to the right, by powers of ten.
func (r *Report) growth() chart {
	c := chart{title: "How the median grows with the jobs in the ledger", sync: r.Fdatasync,
		note: "each operation by each number of callers; to the right, the jobs that were there"}
	for _, l := range r.Loads {
		c.x = append(c.x, tick{math.Log10(float64(l.Jobs)), short(l.Jobs)})
	}
	places := make(map[string]int)
	for i := range r.Runs {
		run := &r.Runs[i]
		for _, o := range run.Operations {
			if o.Name != "create" && o.Name != "settle" && o.Name != "balance" || run.Preloaded == 0 {
				continue
			}
			name := fmt.Sprintf("%s, %d", o.Name, run.Workers*r.Processes)
			at, known := places[name]
			if !known {
				at = len(c.lines)
				places[name], c.lines = at, append(c.lines, line{name: name})
			}
			p := point{math.Log10(float64(loadedOwners(run.Preloaded) * ownerJobs)), float64(o.P50)}
			c.lines[at].points = append(c.lines[at].points, p)
		}
	}
	return c
}

func ms(micros int64) string { return fmt.Sprintf("%.2f", float64(micros)/1000) }
