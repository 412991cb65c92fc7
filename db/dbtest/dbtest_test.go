package dbtest

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// What is not on this machine, or has not the name of a test's database, is never destroyed.
func TestDestroysOnlyItsOwn(t *testing.T) {
	for dsn, allowed := range map[string]bool{
		"postgres://u@localhost/x":                 true,
		"postgres://u@127.0.0.1:5432/x":            true,
		"postgres://u@[::1]/x":                     true,
		"postgres://u@/x?host=/var/run":            true,
		"postgres://u@db.example/x":                false,
		"postgres://u@10.0.0.1/x":                  false,
		"postgres://u@/x":                          false,
		"postgres://u@localhost/x?host=db.example": false,
		"postgres://u@/x?host=/var/run,db.example": false,
	} {
		if err := destructible(dsn); (err == nil) != allowed {
			t.Errorf("%s: %v, allowed should be %v", dsn, err, allowed)
		}
	}
	for _, name := range []string{"postgres", "ledger", "jobledger_testing", ""} {
		err := dropDatabase("postgres://u@localhost/x", name)
		if err == nil || !strings.Contains(err.Error(), "is left alone") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What cannot be dropped is told, and the next is dropped all the same.
func TestDropsGoOn(t *testing.T) {
	names := make(chan string, 2)
	names <- "first"
	names <- "second"
	close(names)
	var told strings.Builder
	dropAll("postgres://u@localhost/x", names, &told)
	for _, name := range []string{"first", "second"} {
		if !strings.Contains(told.String(), name) {
			t.Errorf("told %q", told.String())
		}
	}
}

// A server that is named to the tests does not stand for the programs of one.
func TestNeedCluster(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv(serverVariable, "postgres://u@localhost/x")
	_, err := findPrograms()
	if got, want := NeedCluster(t), err == nil && findTools() == nil; got != want {
		t.Errorf("a cluster can be started: %v, %v", got, err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := findTools(); err == nil || !strings.Contains(err.Error(), "pgrep") || NeedCluster(t) {
		t.Errorf("without tools: %v", err)
	}
}

// The default isolation of a run is that of its databases.
func TestIsolation(t *testing.T) {
	t.Setenv(isolationVariable, "repeatable read")
	if !NeedPostgres(t) {
		return
	}
	var level string
	err := Raw(t, EmptyPostgres(t)).Get(&level, `SHOW default_transaction_isolation`)
	if err != nil || level != "repeatable read" {
		t.Errorf("isolation %q, %v", level, err)
	}
}

// A cluster ends with its process: the end of the pipe stands for that here.
func TestClusterEndsWithItsProcess(t *testing.T) {
	if !NeedCluster(t) {
		return
	}
	c, err := startCluster()
	if err != nil {
		t.Fatal(err)
	}
	running := func() bool { return exec.Command("pgrep", "-f", "postgres -D "+c.data()).Run() == nil }
	if !running() || !exists(c.dir) {
		t.Fatal("the cluster does not run")
	}
	c.watched.Close()
	for end := time.Now().Add(20 * time.Second); running() || exists(c.dir); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the cluster in %s outlives its process", c.dir)
		}
	}
}

func TestSpell(t *testing.T) {
	if !NeedPostgres(t) {
		return
	}
	for _, dsn := range []string{SQLite(t), Postgres(t)} {
		Exec(t, dsn,
			`CREATE TRIGGER fault BEFORE UPDATE ON balances WHEN NEW.used > 5 BEGIN SELECT RAISE(ABORT, 'no'); END`,
			`DROP TRIGGER fault`, `DROP TRIGGER jobs_no_delete`)
		pool := Raw(t, dsn)
		var n int
		query := Spell(pool, `SELECT COUNT(*) FROM jobs WHERE id = ? AND owner = ?`)
		if err := pool.Get(&n, query, "a", "b"); err != nil {
			t.Error(err)
		}
	}
}
