package db

import (
	"net/url"
	"path/filepath"
	"testing"
)

// A name of a file reaches SQLite as it is: no character of it becomes a parameter, or another name.
func FuzzName(f *testing.F) {
	for _, name := range []string{
		"a.db", "a?b.db", "a#b.db", "x%41.db", "-a", "file:a", ":memory:", "a b;c&d=e", "é", "host=x",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		path, err := sqlitePath(name)
		if err != nil {
			return
		}
		u, err := url.Parse(sqliteDSN(path, true, Options{}))
		if err != nil || u.Path != filepath.ToSlash(path) || u.Fragment != "" || u.Query().Get("mode") != "rw" {
			t.Errorf("%q becomes %v (%v)", name, u, err)
		}
	})
}
