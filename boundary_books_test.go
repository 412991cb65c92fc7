//go:build unix

package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jobledger/ledger"
)

// allowBooks imports a value in a file of a format.
func allowBooks(format string) func(*crossing, *slot, boundary, string) {
	return func(c *crossing, s *slot, v boundary, n string) {
		c.Helper()
		file, _ := c.books(format, s, []boundary{v}, n)
		o := jobledger(c.T, c.dsn, "--json", "import", file)
		if o.exit != 0 || o.stderr != "" || strings.Contains(o.stdout, `"imported":0,`) {
			c.Errorf("%s: %.40q is refused: %+v", s.name, v.text, o)
		}
	}
}

// refuseBooks imports a file in which each value has its row: each such row is refused, and no other.
func refuseBooks(format string) func(*crossing, *slot, []boundary) {
	return func(c *crossing, s *slot, values []boundary) {
		c.Helper()
		file, at := c.books(format, s, values, s.bad())
		o := jobledger(c.T, c.dsn, "--json", "import", file)
		var report ledger.ImportReport
		var e ledger.Error
		failed := firstOf(json.Unmarshal([]byte(o.stdout), &report), json.Unmarshal([]byte(o.stderr), &e))
		if failed != nil || o.exit != ledger.Invalid.Info().Exit || e.Code != ledger.Invalid || e.Field == "" ||
			len(report.Refused) == 0 || !strings.HasPrefix(e.Message, report.Refused[0].Place.String()+": ") {
			c.Fatalf("%s: got %+v", s.name, o)
		}
		for _, r := range report.Refused {
			v, there := at[r.Line]
			want := s.bookField
			if format == "jsonl" && v.verdict == garbles {
				want = "line"
			}
			if !there || r.Field != want || !strings.HasPrefix(r.Reason, want+": ") {
				c.Errorf("%s: %.40q: got %+v, want %s", s.name, v.text, r, want)
			}
			delete(at, r.Line)
		}
		for line, v := range at {
			c.Errorf("%s: %.40q in line %d is not refused", s.name, v.text, line)
		}
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// books writes the rows of some values as a file. at has the values by the lines in which they stand.
func (c *crossing) books(
	format string, s *slot, values []boundary, n string,
) (file string, at map[int64]boundary) {
	c.Helper()
	var text strings.Builder
	out, header := csv.NewWriter(&text), s.columns()
	if format == "csv" {
		c.row(out, header)
	}
	at = map[int64]boundary{}
	for i, v := range values {
		for line := range strings.Lines(s.rows) {
			row := map[string]string{}
			for _, word := range strings.Fields(line) {
				name, value, _ := strings.Cut(word, "=")
				row[name] = strings.NewReplacer("$V", v.text, "$N", fmt.Sprint(n, "-", i)).Replace(value)
			}
			if strings.Contains(line, "$V") {
				at[int64(1+strings.Count(text.String(), "\n"))] = v
			}
			if format == "jsonl" {
				text.WriteString(object(row))
				continue
			}
			var cells []string
			for _, name := range header {
				cells = append(cells, row[name])
			}
			c.row(out, cells)
		}
	}
	return writeFile(c.T, "books."+format, text.String()), at
}

func (c *crossing) row(out *csv.Writer, cells []string) {
	c.Helper()
	if err := out.Write(cells); err != nil {
		c.Fatal(err)
	}
	out.Flush()
}

// columns lists the fields that the rows of a slot have.
func (s *slot) columns() (list []string) {
	for _, word := range strings.Fields(s.rows) {
		if name, _, _ := strings.Cut(word, "="); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// object is a row as a line of jsonl.
func object(row map[string]string) string {
	var members []string
	for _, name := range slices.Sorted(maps.Keys(row)) {
		members = append(members, quoted(name)+":"+quoted(row[name]))
	}
	return "{" + strings.Join(members, ",") + "}\n"
}
