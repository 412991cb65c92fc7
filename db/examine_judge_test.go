package db

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What no machine that runs the tests shows is judged all the same.
func TestJudges(t *testing.T) {
	far := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5432}
	near := &net.TCPAddr{IP: net.IPv6loopback, Port: 5432}
	for _, c := range []struct {
		found Finding
		want  Level
		text  string
	}{
		{judgeSQLite("3.51.2"), Problem, "SQLite 3.51.2"},
		{judgeSQLite("3.9.10"), Problem, "SQLite 3.9.10"},
		{judgeSQLite("3.51.3"), Fine, "SQLite 3.51.3"},
		{judgeSQLite("4.0.0"), Fine, "SQLite 4.0.0"},
		{judgeSettings(1, 1), Problem, "synchronous 1 and foreign keys 1"},
		{judgeSettings(2, 0), Problem, "synchronous 2 and foreign keys 0"},
		{judgeFree(volume{free: 1 << 20}), Problem, "1 MB are free"},
		{judgeFree(volume{free: 500 << 20}), Warning, "500 MB are free"},
		{judgeFree(volume{free: 1 << 30}), Fine, "1024 MB are free"},
		{judgeFileSystem(volume{fileSystem: "nfs"}), Warning, "lies on nfs"},
		{judgePostgres(140011), Warning, "PostgreSQL 14.11"},
		{judgePostgres(150000), Fine, "PostgreSQL 15.0"},
		{judgeCrashSafety(false, false), Problem, "fsync is off"},
		{judgeCrashSafety(true, false), Warning, "full_page_writes is off"},
		{judgeCrashSafety(true, true), Fine, "are on"},
		{judgeTLS(far, false), Warning, "192.0.2.1:5432"},
		{judgeTLS(far, true), Fine, "encrypted"},
		{judgeTLS(near, false), Fine, "this machine"},
		{judgeTLS(&net.UnixAddr{Name: "/run/s"}, false), Fine, "this machine"},
	} {
		advised := c.found.Advice != ""
		if c.found.Level != c.want || !strings.Contains(c.found.Message, c.text) || advised != (c.want != Fine) {
			t.Errorf("%+v, want %s, %s", c.found, c.want, c.text)
		}
	}
}

// An older schema is examined as it is: not migrated, and not by the checks of who knows a newer one.
func TestExamineOlderSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "older.db")
	if _, err := Create(t.Context(), path, Options{}); err != nil {
		t.Fatal(err)
	}
	known := sqliteMigrations
	t.Cleanup(func() { sqliteMigrations = known })
	next := migration{"next", "CREATE TABLE next (x INTEGER)", "sum"}
	sqliteMigrations = append(known[:len(known):len(known)], next)
	for range 2 {
		ran := false
		found, err := Examine(t.Context(), path, Options{}, Check{"own", func(*Tx) (Finding, error) {
			ran = true
			return Good("seen"), nil
		}})
		if err != nil || ran || found[0].Level != Warning || !strings.Contains(found[0].Message, "version") {
			t.Fatalf("%+v, %v, own check ran: %v", found, err, ran)
		}
	}
}

// A look at the pages ends in time.
func TestQuickCheckIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.db")
	if _, err := Create(t.Context(), path, Options{}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Read(t.Context(), func(tx *Tx) error {
		for bound, text := range map[time.Duration]string{time.Nanosecond: "stopped", time.Minute: "order"} {
			f, err := quickCheck(tx, bound)
			if err != nil || f.Level != Fine || !strings.Contains(f.Message, text) {
				t.Errorf("within %v: %+v, %v", bound, f, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Who has the file open is told by its program, and by which file it has.
func TestJudgeUsers(t *testing.T) {
	for _, c := range []struct {
		users []user
		level Level
		text  string
	}{
		{nil, Fine, "jobledger: 0"},
		{[]user{{7, "jobledger", false}}, Fine, "jobledger: 1"},
		{[]user{{7, "jobledger", false}, {8, "sqlite3", false}}, Warning, "open: sqlite3 (8)"},
		{[]user{{7, "jobledger", true}, {8, "sqlite3", false}}, Problem, "lost: jobledger (7)"},
	} {
		f := judgeUsers(c.users, "jobledger")
		if f.Level != c.level || !strings.HasSuffix(f.Message, c.text) {
			t.Errorf("%+v: %+v", c.users, f)
		}
	}
}
