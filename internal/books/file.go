package books

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"jobledger/ledger"
)

// formatOf gives the format that was asked for, or that the file's name tells.
func formatOf(file, format string) (string, error) {
	if format != "" {
		return format, nil
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".csv":
		return CSV, nil
	case ".jsonl", ".ndjson":
		return JSONL, nil
	}
	return "", ledger.InvalidField("format", "%s may be jsonl or csv: say which with --format", file)
}

func openFile(file string, stdin io.Reader) (in io.ReadCloser, size int64, err error) {
	if file == Stdin {
		return io.NopCloser(stdin), 0, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, ledger.InvalidField("file", "cannot open %s: %v", file, errors.Unwrap(err))
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		f.Close()
		return nil, 0, ledger.InvalidField("file", "%s is no file of rows; a folder needs --map", file)
	}
	return f, info.Size(), nil
}

// checkEncoding skips a byte order mark of UTF-8, and refuses what is UTF-16.
func checkEncoding(text *bufio.Reader) error {
	head, _ := text.Peek(512) // a short file is no error
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, err := text.Discard(3)
		return err
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")),
		bytes.IndexByte(head, 0) >= 0:
		return ledger.InvalidField("file", "is not UTF-8 (UTF-16, perhaps): save it as UTF-8")
	case len(bytes.TrimSpace(head)) == 0 && len(head) < 512:
		return ledger.InvalidField("file", "is empty")
	}
	return nil
}

// isExport tells whether the first line is that of an export of a ledger.
func isExport(text *bufio.Reader) bool {
	const begins = `{"type":"export"`
	head, _ := text.Peek(len(begins))
	return string(head) == begins
}

// counter tells how much of a reader is read.
type counter struct {
	r           io.Reader
	done, total int64
	tell        func(done, total int64)
}

// Read passes on what the reader gives.
func (c *counter) Read(p []byte) (n int, err error) {
	n, err = c.r.Read(p)
	c.done += int64(n)
	if c.tell != nil {
		c.tell(c.done, c.total)
	}
	return n, err
}
