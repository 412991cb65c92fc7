package books

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// database writes tables as folder does, into a SQLite database: digits as integers, what is empty as
// NULL. Columns have types that the driver would convert.
func database(t *testing.T, tables ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "books.db")
	d, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := d.Exec(query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for _, table := range tables {
		name, text, _ := strings.Cut(table, ": ")
		lines := strings.Split(text, " / ")
		columns := strings.Split(lines[0], ",")
		for i, column := range columns {
			if strings.HasSuffix(column, "_at") {
				columns[i] += " TIMESTAMP"
			}
		}
		exec(`CREATE TABLE ` + name + ` (` + strings.Join(columns, ", ") + `)`)
		for _, line := range lines[1:] {
			var cells []any
			for cell := range strings.SplitSeq(line, ",") {
				switch n, err := strconv.ParseFloat(cell, 64); {
				case cell == "":
					cells = append(cells, nil)
				case err == nil && strings.Contains(cell, "."):
					cells = append(cells, n)
				case err == nil:
					cells = append(cells, int64(n))
				default:
					cells = append(cells, cell)
				}
			}
			exec(`INSERT INTO `+name+` VALUES (?`+strings.Repeat(", ?", len(cells)-1)+`)`, cells...)
		}
	}
	return path
}
