package books

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"jobledger/ledger"
)

// readCSV reads a file with a header. A column that a row does not need is left empty in it.
func (s *Source) readCSV(ctx context.Context, in io.Reader) error {
	return eachCSV(in, func(header []string) error {
		for _, name := range header {
			if !slices.Contains(everyField(), name) {
				return ledger.InvalidField("header", "%.40q is not one of %s", name, strings.Join(everyField(), ", "))
			}
		}
		if !slices.Contains(header, "type") {
			return ledger.InvalidField("header", "has no column type; it takes %s", strings.Join(everyField(), ", "))
		}
		return nil
	}, func(line int64, values map[string]string, err error) error {
		r := record{Place: ledger.Place{Line: line}, kind: values["type"], values: values, err: err}
		delete(values, "type")
		return s.add(ctx, &r)
	})
}

// eachCSV calls fn with the values of each row of a CSV file that are not empty, and with what is wrong
// with the row's form.
func eachCSV(
	in io.Reader, check func(header []string) error, fn func(line int64, values map[string]string,
		err error) error,
) error {
	c := csv.NewReader(in)
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	header, err := readHeader(c)
	if err != nil {
		return err
	}
	if err := check(header); err != nil {
		return err
	}
	for {
		cells, err := c.Read()
		if err == io.EOF {
			return nil
		}
		bad, isParse := errors.AsType[*csv.ParseError](err)
		if err != nil && !isParse {
			return fmt.Errorf("read the file: %w", err)
		}
		values := make(map[string]string, len(cells))
		var line int64
		if isParse {
			line, err = int64(bad.StartLine), ledger.InvalidField("line", "is not CSV: %v", bad.Err)
		} else {
			number, _ := c.FieldPos(0)
			line, err = int64(number), fill(values, header, cells)
		}
		if err := fn(line, values, err); err != nil {
			return err
		}
	}
}

func readHeader(c *csv.Reader) ([]string, error) {
	header, err := c.Read()
	if err != nil {
		return nil, ledger.InvalidField("header", "cannot be read: %v", err)
	}
	header = slices.Clone(header)
	for i, name := range header {
		if strings.ContainsRune(name, '\r') {
			return nil, ledger.InvalidField("header", "the lines end with CR alone: save the file with LF or CRLF")
		}
		header[i] = strings.TrimSpace(name)
		if slices.Contains(header[:i], header[i]) {
			return nil, ledger.InvalidField("header", "names %.40q twice", name)
		}
	}
	return header, nil
}

func fill(values map[string]string, header, cells []string) error {
	for i, name := range header {
		if i < len(cells) && cells[i] != "" {
			values[name] = cells[i]
		}
	}
	if len(cells) != len(header) {
		return ledger.InvalidField("line", "has %d values, and the header %d", len(cells), len(header))
	}
	return nil
}
