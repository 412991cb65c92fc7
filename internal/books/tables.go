package books

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"jobledger/ledger"
)

// readMapped reads the tables of a known schema, from a SQLite database or a folder with one CSV file
// for each.
func (s *Source) readMapped(ctx context.Context, file string, o Options) error {
	tables, ok := mappings[o.Map]
	if !ok {
		return ledger.InvalidField("map", "%q is not one of %s", o.Map, strings.Join(Maps, ", "))
	}
	info, err := os.Stat(file)
	if err != nil {
		return ledger.InvalidField("file", "cannot open %s: %v", file, errors.Unwrap(err))
	}
	if info.IsDir() {
		for _, t := range tables {
			if err := s.readTableFile(ctx, filepath.Join(file, t.name+".csv"), &t, o); err != nil {
				return stopped(err)
			}
		}
		return nil
	}
	return stopped(s.readDatabase(ctx, file, tables, o))
}

// check finds required columns that are not there. Others than the known ones are passed over.
func (t *table) check(columns []string) error {
	for _, name := range t.required {
		if !slices.Contains(columns, name) {
			return ledger.InvalidField(t.name, "has no column %s; it takes %s, and may have %s", name,
				strings.Join(t.required, ", "), strings.Join(t.optional, ", "))
		}
	}
	return nil
}

// add takes a row of a table as the record that it stands for, if it stands for one.
func (s *Source) addMapped(ctx context.Context, t *table, line int64, v values, bad error) error {
	r := &record{kind: t.name, err: bad}
	if bad == nil {
		if r = t.row(v); r.kind == "" {
			return ctx.Err()
		}
	}
	r.Place = ledger.Place{Table: t.name, Line: line}
	return s.add(ctx, r)
}

func (s *Source) readTableFile(ctx context.Context, path string, t *table, o Options) error {
	in, size, err := openFile(path, nil)
	if err != nil {
		return err
	}
	defer in.Close()
	text := bufio.NewReader(&counter{r: in, total: size, tell: o.Progress})
	if err := checkEncoding(text); err != nil {
		return err
	}
	return eachCSV(text, t.check, func(line int64, v map[string]string, bad error) error {
		return s.addMapped(ctx, t, line, v, bad)
	})
}

// readDatabase reads the tables of a database, all as of one moment, and writes nothing to it.
func (s *Source) readDatabase(ctx context.Context, file string, tables []table, o Options) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return ledger.InvalidField("file", "%s: %v", file, err)
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive letter
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: url.Values{
		"mode": {"ro"}, "_dqs": {"0"}, "_pragma": {"busy_timeout(5000)", "query_only(1)", "trusted_schema(0)"},
	}.Encode()}
	pool, err := sql.Open("sqlite", name.String())
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return ledger.InvalidField("file", "cannot open %s as a SQLite database: %v", file, err)
	}
	defer tx.Rollback() // it only read
	for i := range tables {
		if err := s.readTable(ctx, tx, file, &tables[i], o); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) readTable(ctx context.Context, tx *sql.Tx, file string, t *table, o Options) error {
	columns, total, err := describe(ctx, tx, file, t)
	if err != nil {
		return err
	}
	// A + in front makes an expression of a column: the driver then gives what is stored, whatever type
	// the column says it has.
	query := `SELECT +"` + strings.Join(columns, `", +"`) + `" FROM "` + t.name + `"`
	var numbered bool
	err = tx.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM pragma_table_list
		               WHERE schema = 'main' AND name = ? COLLATE NOCASE AND type = 'table' AND wr = 0)`,
		t.name).Scan(&numbered)
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", t.name, file, err)
	}
	if numbered {
		query += ` ORDER BY _rowid_` // or else an index would decide the order
	}
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", t.name, file, err)
	}
	defer rows.Close()
	cells, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range cells {
		into[i] = &cells[i]
	}
	for line := int64(1); rows.Next(); line++ {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("read %s of %s: %w", t.name, file, err)
		}
		v, bad := make(values, len(columns)), error(nil)
		for i, name := range columns {
			text, err := asText(cells[i])
			if err != nil {
				bad = ledger.InvalidField(name, "%v", err)
			} else if text != "" {
				v[name] = text
			}
		}
		if err := s.addMapped(ctx, t, line, v, bad); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(line, total)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read %s of %s: %w", t.name, file, err)
	}
	return nil
}

// describe gives the columns of a table that are wanted, and the number of its rows.
func describe(ctx context.Context, tx *sql.Tx, file string, t *table) (columns []string, rows int64,
	err error) {
	list, err := tx.QueryContext(ctx, `SELECT name FROM pragma_table_info(?)`, t.name)
	if err != nil {
		return nil, 0, ledger.InvalidField("file", "cannot read %s as a SQLite database: %v", file, err)
	}
	defer list.Close()
	var there []string
	for list.Next() {
		var name string
		if err := list.Scan(&name); err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", file, err)
		}
		there = append(there, name)
	}
	switch err := list.Err(); {
	case err != nil:
		return nil, 0, fmt.Errorf("read %s: %w", file, err)
	case there == nil:
		return nil, 0, ledger.InvalidField("file", "%s has no table %s", file, t.name)
	}
	if err := t.check(there); err != nil {
		return nil, 0, err
	}
	for _, name := range slices.Concat(t.required, t.optional) {
		if slices.Contains(there, name) {
			columns = append(columns, name)
		}
	}
	err = tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM "`+t.name+`"`).Scan(&rows)
	return columns, rows, err
}

// asText writes a stored value as an importer of text would read it. A number with a fraction, or one
// that could have had one, is no amount.
func asText(cell any) (string, error) {
	switch value := cell.(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	case int64:
		return strconv.FormatInt(value, 10), nil
	case float64:
		text := strconv.FormatFloat(value, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text, nil
	}
	return "", errors.New("is neither a text nor a number")
}
