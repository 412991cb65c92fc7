// Package books reads the books of other systems into rows that [ledger.Ledger.Import] takes.
//
// The rows are sorted in a temporary database on disk, which is gone when the process is, so that books
// of any size need little memory. What is wrong with a row alone is found here; what is wrong with rows
// together, by the ledger.
package books

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"jobledger/ledger"
)

// The formats of a file of rows.
const (
	JSONL = "jsonl"
	CSV   = "csv"
)

// Formats lists them.
var Formats = []string{JSONL, CSV}

// Stdin is the name that stands for the standard input.
const Stdin = "-"

// Options say what a file is.
type Options struct {
	Format   string                  // of Formats; empty: by the name of the file
	Map      string                  // of Maps: the file is a SQLite database, or a folder of CSV files
	Progress func(done, total int64) // if set, is told how much is read, of how much; total 0: unknown
}

// Source is a file that was read. It is closed after its use.
type Source struct {
	Rows       int64 // without blank lines and headers
	Duplicates int64 // rows that say the same as an earlier one
	Refused    ledger.ImportReport
	stage      *stage
	export     string // the file of an export, which is not read here
	temporary  bool   // that file is a copy of the standard input
}

// Open reads a file and sorts its rows. An export of a ledger is recognised and left unread.
//
// Errors: INVALID for a file that cannot be read as what it is said to be; rows at fault are refused in
// the Source instead.
func Open(ctx context.Context, file string, stdin io.Reader, o Options) (s *Source, err error) {
	s = new(Source)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if o.Map != "" {
		if s.stage, err = newStage(ctx); err != nil {
			return s, err
		}
		if err = s.readMapped(ctx, file, o); err != nil {
			return s, err
		}
		return s, s.stage.finish()
	}
	if o.Format, err = formatOf(file, o.Format); err != nil {
		return s, err
	}
	return s, s.readFile(ctx, file, stdin, o)
}

func (s *Source) readFile(ctx context.Context, file string, stdin io.Reader, o Options) error {
	in, size, err := openFile(file, stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	text := bufio.NewReaderSize(&counter{r: in, total: size, tell: o.Progress}, 1<<16)
	if err := checkEncoding(text); err != nil {
		return err
	}
	if o.Format == JSONL && isExport(text) {
		return s.keepExport(file, text)
	}
	if s.stage, err = newStage(ctx); err != nil {
		return err
	}
	if o.Format == CSV {
		err = s.readCSV(ctx, text)
	} else {
		err = s.readJSONL(ctx, text)
	}
	if err != nil {
		return stopped(err)
	}
	return s.stage.finish()
}

// keepExport notes where the export is. One that comes through the standard input is copied first,
// because it may be read more than once.
func (s *Source) keepExport(file string, text io.Reader) error {
	if s.export = file; file != Stdin {
		return nil
	}
	f, err := os.CreateTemp("", "jobledger-import-*") // mode 0600
	if err != nil {
		return fmt.Errorf("copy the standard input: %w", err)
	}
	s.export, s.temporary = f.Name(), true
	_, err = io.Copy(f, text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("copy the standard input: %w", err)
	}
	return nil
}

// Export opens the export that the file is; ok is false if it is none.
func (s *Source) Export() (open func() (io.ReadCloser, error), ok bool) {
	return func() (io.ReadCloser, error) {
		f, err := os.Open(s.export)
		if err != nil {
			return nil, err
		}
		text := bufio.NewReader(f)
		if err := checkEncoding(text); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return struct {
			io.Reader
			io.Closer
		}{text, f}, nil
	}, s.export != ""
}

// Books gives the rows, without those of owners of whom a row was refused: what is wrong with the
// others is worth knowing too.
func (s *Source) Books() ledger.Books { return s.stage.books() }

// Close removes what was kept on disk.
func (s *Source) Close() (err error) {
	if s.stage != nil {
		err = s.stage.close()
	}
	if s.temporary {
		err = errors.Join(err, os.Remove(s.export))
	}
	return err
}

// stopped says of a reading that ended early what became of it.
func stopped(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stopped while reading, nothing was imported: %w", err)
	}
	return err
}
