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

// replace puts the file into place as a whole.
func (w *checkpointWriter) replace(name string) error {
	if err := json.NewEncoder(&w.lines).Encode(checkpointEnd{&w.n}); err != nil {
		return err
	}
	if err := replace(name, w.lines.Bytes()); err != nil {
		return usage("checkpoint", "checkpoint: %v", err)
	}
	return nil
}

// readCheckpoint reads a checkpoint file. What is not a whole one is refused.
func readCheckpoint(name string) (map[string]ledger.Checkpoint, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("since", "since: %v", err)
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
			return nil, usage("since", "since: %q ends without its last line: it is no whole checkpoint", name)
		case err != nil:
			return nil, usage("since", "since: %q is no checkpoint: %v", name, err)
		case line.Owners != nil && *line.Owners == len(list):
			return list, nil
		case line.Owners != nil:
			return nil, usage("since", "since: %q counts %d owners and has %d", name, *line.Owners, len(list))
		case line.Owner == "" || line.Seq < 1 || len(line.Head) == 0:
			return nil, usage("since", "since: %q has a line that is no owner's checkpoint", name)
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
