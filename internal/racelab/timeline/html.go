package timeline

import (
	"html/template"
	"io"
	"strings"
)

// page is a page around the picture. Its colors are those of the picture's own style.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{.Title}}</title>
<style>
body{margin:0 auto;padding:24px;max-width:1200px;background:var(--paper);color:var(--ink);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
figure{margin:0 0 24px}
figure svg{max-width:100%;height:auto}
table{border-collapse:collapse;
font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
caption{text-align:left;padding:8px 0;font-weight:600}
th,td{padding:4px 24px 4px 0;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
th{color:var(--soft);font-weight:400}
th:first-child,td:first-child,.value{text-align:right}
td:nth-child(3){white-space:pre-wrap;overflow-wrap:anywhere}
</style>
</head>
<body>
<main>
<figure>
{{.Picture}}</figure>
{{with .Ending}}<p>{{.}}</p>
{{end}}<table>
<caption>What happened, line by line</caption>
<thead><tr><th scope="col">{{.Heading}}</th><th scope="col">actor</th><th scope="col">what</th>
{{- with .Number}}<th scope="col" class="value">{{.}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr><td>{{.Clock}}</td><td>{{.Actor}}</td><td>{{.What}}</td>
{{- if $.Number}}<td class="value">{{.Value}}</td>{{end}}</tr>
{{end}}</tbody>
</table>
</main>
</body>
</html>
`))

// WriteHTML writes one page that needs nothing else: the picture, and everything in it as a table.
func (t *Timeline) WriteHTML(w io.Writer) error {
	var picture strings.Builder
	if err := t.WriteSVG(&picture); err != nil {
		return err
	}
	type line struct{ Clock, Actor, What, Value string }
	g := t.list()
	lines := make([]line, len(g.rows))
	for i, r := range g.rows {
		lines[i] = line{t.Unit.clock(r.start), r.cells[0], r.cells[1], r.value}
	}
	return page.Execute(w, map[string]any{
		"Title":   clean(t.Title),
		"Picture": template.HTML(picture.String()),
		"Ending":  t.Number.ending(),
		"Heading": t.Unit.heading(),
		"Number":  g.number,
		"Rows":    lines,
	})
}
