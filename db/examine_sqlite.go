package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The bounds of what is fine.
const (
	sqliteOldest   = "3.51.3"         // before it, a checkpoint at the wrong moment could damage the file
	freeLow        = 1 << 30          // bytes left on the volume
	freeLeast      = 16 << 20         // too few for the next writes
	walHigh        = 128 << 20        // bytes; if no reader needs it, it starts anew after 32 MB
	quickCheckMax  = 10 * time.Second // of looking at the pages
	quickCheckRows = 3                // of what is wrong with them
)

// sqliteChecks are about the file and where it lies.
func sqliteChecks(d *DB) []Check {
	return []Check{
		{"engine", sqliteVersion},
		{"journal", journalMode},
		{"settings", sqliteSettings},
		{"file-modes", func(*Tx) (Finding, error) { return fileModes(d.name) }},
		{"writable", func(*Tx) (Finding, error) { return fileWritable(d.name), nil }},
		{"free-space", func(*Tx) (Finding, error) { return onVolume(d.name, judgeFree) }},
		{"file-system", func(*Tx) (Finding, error) { return onVolume(d.name, judgeFileSystem) }},
		{"users", func(*Tx) (Finding, error) { return fileUsers(d.name), nil }},
		{"wal-size", func(*Tx) (Finding, error) { return walSize(d.name) }},
		{"integrity", func(tx *Tx) (Finding, error) { return quickCheck(tx, quickCheckMax) }},
	}
}

func sqliteVersion(tx *Tx) (Finding, error) {
	var version string
	_, err := tx.Get(&version, `SELECT sqlite_version()`)
	return judgeSQLite(version), err
}

func judgeSQLite(version string) Finding {
	if older(version, sqliteOldest) {
		return Bad("use a newer jobledger", "SQLite %s can damage the file; from %s on it cannot",
			version, sqliteOldest)
	}
	return Good("SQLite %s", version)
}

// older compares versions of three numbers.
func older(version, than string) bool {
	var a, b [3]int
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &a[0], &a[1], &a[2])
	_, _ = fmt.Sscanf(than, "%d.%d.%d", &b[0], &b[1], &b[2])
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func journalMode(tx *Tx) (Finding, error) {
	var mode string
	if _, err := tx.Get(&mode, `PRAGMA journal_mode`); err != nil {
		return Finding{}, err
	}
	if mode != "wal" {
		return Warn("let no other program change it; the next write sets it back",
			"the journal mode is %s: readers and the writer wait for each other", mode), nil
	}
	return Good("write-ahead log"), nil
}

// sqliteSettings reads back what a connection of this program has.
func sqliteSettings(tx *Tx) (Finding, error) {
	var synchronous, foreignKeys int
	if _, err := tx.Get(&synchronous, `PRAGMA synchronous`); err != nil {
		return Finding{}, err
	}
	_, err := tx.Get(&foreignKeys, `PRAGMA foreign_keys`)
	return judgeSettings(synchronous, foreignKeys), err
}

func judgeSettings(synchronous, foreignKeys int) Finding {
	if synchronous < 2 || foreignKeys != 1 {
		return Bad("use another build of jobledger",
			"a connection has synchronous %d and foreign keys %d, want 2 and 1", synchronous, foreignKeys)
	}
	return Good("each commit is synced to the disk, foreign keys are checked")
}

// databaseFiles gives the files of a database that are there. They are never opened: to close one would
// drop SQLite's locks.
func databaseFiles(path string) (list []fs.FileInfo, err error) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err == nil {
			list = append(list, info)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return list, nil
}

func fileModes(path string) (Finding, error) {
	files, err := databaseFiles(path)
	if err != nil || runtime.GOOS == "windows" {
		return Good("not looked at on this system"), err
	}
	var open []string
	for _, f := range files {
		if f.Mode().Perm()&0o077 != 0 {
			open = append(open, fmt.Sprintf("%s (%#o)", f.Name(), f.Mode().Perm()))
		}
	}
	if len(open) > 0 {
		return Warn("chmod 600 "+path+"*", "others than the owner may use %s", strings.Join(open, ", ")), nil
	}
	return Good("the owner's alone"), nil
}

func fileWritable(path string) Finding {
	for _, p := range []string{path, filepath.Dir(path)} {
		if err := writable(p); err != nil {
			return Bad("give the user who runs jobledger the right to write there", "%s cannot be written: %v", p, err)
		}
	}
	return Good("the file and its directory")
}

// volume is what a file lies on.
type volume struct {
	free       int64  // bytes that this user may still write
	fileSystem string // its name, if it is reached over a network or through another program
}

func onVolume(path string, judge func(volume) Finding) (Finding, error) {
	v, known, err := volumeOf(filepath.Dir(path))
	if err != nil || !known {
		return Good("not looked at on this system"), err
	}
	return judge(v), nil
}

func judgeFree(v volume) Finding {
	const advice = "make room: a write that finds none is refused, and nothing is lost"
	switch {
	case v.free < freeLeast:
		return Bad(advice, "%d MB are free, too few for the next writes", v.free>>20)
	case v.free < freeLow:
		return Warn(advice, "%d MB are free", v.free>>20)
	}
	return Good("%d MB are free", v.free>>20)
}

func judgeFileSystem(v volume) Finding {
	if v.fileSystem != "" {
		return Warn("move the file to a local disk, or the ledger to PostgreSQL",
			"the file lies on %s: where its locks do not work, two processes damage it", v.fileSystem)
	}
	return Good("local")
}

func walSize(path string) (Finding, error) {
	info, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return Good("empty"), nil
	}
	if err != nil {
		return Finding{}, err
	}
	if info.Size() > walHigh {
		return Warn("end the programs that read the file for a long time, such as a forgotten sqlite3",
			"the write-ahead log has %d MB: a reader keeps it from being used again", info.Size()>>20), nil
	}
	return Good("%d MB", info.Size()>>20), nil
}

// user is another process that has the database open.
type user struct {
	pid     int
	program string
	deleted bool // the file that it has open is not the one that has the name now
}

func fileUsers(path string) Finding {
	users, known := usersOf(path)
	if !known {
		return Good("not looked at on this system")
	}
	self, _ := os.Executable()
	return judgeUsers(users, filepath.Base(self))
}

// judgeUsers knows the programs of this product by the name that this one has.
func judgeUsers(users []user, self string) Finding {
	var lost, foreign []string
	for _, u := range users {
		name := fmt.Sprintf("%s (%d)", u.program, u.pid)
		if u.deleted {
			lost = append(lost, name)
		}
		if u.program != self {
			foreign = append(foreign, name)
		}
	}
	switch {
	case len(lost) > 0:
		return Bad("end them, and find out what they were told since",
			"the file was replaced while they had it open, what they write is lost: %s", strings.Join(lost, ", "))
	case len(foreign) > 0:
		return Warn("end them, let them look at a backup: one may hold a lock, or bring a SQLite that does damage",
			"other programs have the file open: %s", strings.Join(foreign, ", "))
	}
	return Good("other processes of jobledger: %d", len(users))
}

// quickCheck lets SQLite look at its pages, for no longer than bound.
func quickCheck(tx *Tx, bound time.Duration) (Finding, error) {
	var rows []string
	ended, err := tx.Within(bound, func(tx *Tx) error {
		return tx.Select(&rows, fmt.Sprintf(`PRAGMA quick_check(%d)`, quickCheckRows))
	})
	switch {
	case ended:
		return Good("nothing found in %v, then stopped: audit looks at everything", bound), nil
	case err != nil:
		return Finding{}, err
	case len(rows) != 1 || rows[0] != "ok":
		return damaged(strings.Join(rows, "; ")), nil
	}
	return Good("the pages and their order"), nil
}
