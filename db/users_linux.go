package db

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// usersOf finds the other processes that have the files of a database open, as far as this user may see them.
func usersOf(path string) (list []user, known bool) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, false
	}
	names := []string{resolved, resolved + "-wal", resolved + "-shm"}
	processes, err := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		pid, _ := strconv.Atoi(filepath.Base(p))
		files, err := os.ReadDir(p + "/fd") // of another user's it is refused
		if err != nil || pid == os.Getpid() {
			continue
		}
		u, uses := user{pid: pid}, false
		for _, f := range files {
			target, _ := os.Readlink(filepath.Join(p, "fd", f.Name()))
			name, deleted := strings.CutSuffix(target, " (deleted)")
			uses = uses || slices.Contains(names, name)
			u.deleted = u.deleted || deleted && name == resolved
		}
		if uses {
			program, _ := os.Readlink(p + "/exe")
			u.program = filepath.Base(strings.TrimSuffix(program, " (deleted)"))
			list = append(list, u)
		}
	}
	return list, err == nil
}
