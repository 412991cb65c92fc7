package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"jobledger/internal/racelab/timeline"
)

// pictures are the forms in which a timeline is drawn, by their flags.
var pictures = []struct {
	flag, usage string
	write       func(*timeline.Timeline, io.Writer) error
}{
	{"svg", "also draw it into `FILE`, as a picture", (*timeline.Timeline).WriteSVG},
	{"html", "also draw it into `FILE`, as a page of its own", (*timeline.Timeline).WriteHTML},
}

// pictureFlags are those of every command that can draw what it shows.
func pictureFlags() (flags []cli.Flag) {
	for _, p := range pictures {
		flags = append(flags, &cli.StringFlag{Name: p.flag, Usage: p.usage})
	}
	return flags
}

// checkPictures finds files that cannot be written, or would be written twice, before there is anything
// to draw.
func checkPictures(c *cli.Context) error {
	takenBy := make(map[string]string)
	for _, p := range pictures {
		if !c.IsSet(p.flag) {
			continue
		}
		name := c.String(p.flag)
		if err := checkFolder(p.flag, name); err != nil {
			return err
		}
		if file, err := os.Stat(name); err == nil && file.IsDir() {
			return usage(p.flag, "%s: %q is a folder", p.flag, name)
		}
		if err := refuseDatabase(name); err != nil {
			return usage(p.flag, "%s: %v", p.flag, err)
		}
		path, err := filepath.Abs(target(name))
		if err != nil {
			return usage(p.flag, "%s: %v", p.flag, err)
		}
		if other, taken := takenBy[path]; taken {
			return usage(p.flag, "%s: %q is the file of --%s too", p.flag, name, other)
		}
		takenBy[path] = p.flag
	}
	return nil
}

// target is the file that is written under a name: where links lead, of the file or of its folder.
func target(name string) string {
	if path, err := filepath.EvalSymlinks(name); err == nil {
		return path
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		return filepath.Join(folder, filepath.Base(name))
	}
	return name
}

// pictured tells whether there is anything to draw.
func pictured(c *cli.Context) bool {
	return slices.ContainsFunc(pictureFlags(), func(f cli.Flag) bool { return c.IsSet(f.Names()[0]) })
}

// draw writes the files that the picture flags name. A picture that is there is replaced by a whole one.
func draw(c *cli.Context, t *timeline.Timeline) error {
	for _, p := range pictures {
		if !c.IsSet(p.flag) {
			continue
		}
		var b bytes.Buffer
		if err := p.write(t, &b); err != nil {
			return fmt.Errorf("draw the picture: %w", err)
		}
		if err := replace(c.String(p.flag), b.Bytes(), pictureMode); err != nil {
			return usage(p.flag, "%s: %v", p.flag, err)
		}
	}
	return nil
}

// refuseDatabase refuses to write over a file that is a database of SQLite: no picture is worth a ledger.
func refuseDatabase(name string) error {
	const magic = "SQLite format 3\x00"
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil // there is nothing to lose; whether it can be written is found elsewhere
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	begin := make([]byte, len(magic))
	n, err := io.ReadFull(f, begin)
	switch {
	case string(begin[:n]) == magic:
		return fmt.Errorf("%q is a database", name)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil
	}
	return err
}

// pictureMode is the mode of the files that are drawn.
const pictureMode fs.FileMode = 0o644

// replace puts content in the place of a file, all at once: who reads the file meanwhile sees the old
// content or the new. What is no file, such as a pipe, is written to. A database is refused.
func replace(name string, content []byte, mode fs.FileMode) (err error) {
	name = target(name)
	if err := refuseDatabase(name); err != nil {
		return err
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, content, mode)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+programName+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error to tell of is the first
		}
	}()
	_, err = f.Write(content)
	if err = checks(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
