package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"jobledger/ledger"
)

// A checkpoint file has a line for each owner, and a last one that counts them: without it the file was cut
// short.

// checkpointEnd is the last line.
type checkpointEnd struct {
	Owners *int `json:"owners"`
}

// checkpointWriter collects a checkpoint file.
type checkpointWriter struct {
	lines bytes.Buffer
	n     int
}

func (w *checkpointWriter) add(c ledger.Checkpoint) error {
	w.n++
	return json.NewEncoder(&w.lines).Encode(c)
}

// replace puts the file into place as a whole. It names owners: it is for who wrote it.
func (w *checkpointWriter) replace(name string) error {
	if err := json.NewEncoder(&w.lines).Encode(checkpointEnd{&w.n}); err != nil {
		return err
	}
	if err := replace(name, w.lines.Bytes(), 0o600); err != nil {
		return usage("checkpoint", "checkpoint: %v", err)
	}
	return nil
}

// checkCheckpoint refuses a file that a checkpoint cannot be written to: without a folder, or with
// something else in it that would be lost.
func checkCheckpoint(name string) error {
	const flag = "checkpoint"
	if err := checkFolder(flag, name); err != nil {
		return err
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	_, err := readCheckpoint(flag, name)
	return err
}

// readCheckpoint reads the checkpoint file that a flag names. What is not a whole one is refused.
func readCheckpoint(flag, name string) (map[string]ledger.Checkpoint, error) {
	refuse := func(format string, args ...any) (map[string]ledger.Checkpoint, error) {
		return nil, usage(flag, flag+": "+format, args...)
	}
	f, err := os.Open(name)
	if err != nil {
		return refuse("%v", err)
	}
	defer f.Close()
	list := make(map[string]ledger.Checkpoint)
	for in := json.NewDecoder(bufio.NewReader(f)); ; {
		var line struct {
			ledger.Checkpoint
			checkpointEnd
		}
		err := in.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return refuse("%q ends without its last line: it is no whole checkpoint", name)
		case err != nil:
			return refuse("%q is no checkpoint: %v", name, err)
		case line.Owners != nil && *line.Owners == len(list):
			return list, nil
		case line.Owners != nil:
			return refuse("%q counts %d owners and has %d", name, *line.Owners, len(list))
		case line.Owner == "" || line.Seq < 1 || len(line.Head) == 0:
			return refuse("%q has a line that is no owner's checkpoint", name)
		}
		list[line.Owner] = line.Checkpoint
	}
}

// checkFolder refuses a file that cannot be made for want of its folder.
func checkFolder(flag, name string) error {
	if folder, err := os.Stat(filepath.Dir(name)); name == "" || err != nil || !folder.IsDir() {
		return usage(flag, "%s: there is no folder for the file %q", flag, name)
	}
	return nil
}
