package db_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

var errOwn = errors.New("the operation's own error")

// patience bounds every wait of these tests; a wait that takes longer is a hang.
const patience = 20 * time.Second

// open opens a new database with an empty table, marks, that operations write a name to.
func open(t *testing.T, dsn string, o db.Options) *db.DB {
	t.Helper()
	d := reopen(t, dsn, db.Options{})
	must(t, d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(`CREATE TABLE marks (name TEXT NOT NULL PRIMARY KEY)`)
		return err
	}))
	must(t, d.Close())
	return reopen(t, dsn, o)
}

func reopen(t *testing.T, dsn string, o db.Options) *db.DB {
	t.Helper()
	if o.Writers == 0 {
		o.Writers = 1 // so that what waits behind one operation makes one batch
	}
	d, err := db.Open(t.Context(), dsn, o)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// sharing runs fn on the engines on which operations share a commit.
func sharing(t *testing.T, fn func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { fn(t, dbtest.SQLite(t)) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mark is an operation that writes a name and then ends as told.
func mark(name string, end error) func(*db.Tx) error {
	return func(tx *db.Tx) error {
		if _, err := tx.Exec(`INSERT INTO marks (name) VALUES (?)`, name); err != nil {
			return err
		}
		return end
	}
}

func marks(t *testing.T, d *db.DB) (names []string) {
	t.Helper()
	must(t, d.Read(context.Background(), func(tx *db.Tx) error {
		return tx.Select(&names, `SELECT name FROM marks ORDER BY name`)
	}))
	return names
}

func wantMarks(t *testing.T, d *db.DB, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := marks(t, d); !slices.Equal(got, want) {
		t.Errorf("written: %q, want %q", got, want)
	}
}

func wantIs(t *testing.T, err error, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// hold keeps the writer busy with an operation of its own until release is called, so that what is
// queued meanwhile makes one batch.
func hold(t *testing.T, d *db.DB) (release func()) {
	t.Helper()
	held, end, done := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		done <- d.Write(context.Background(), func(*db.Tx) error {
			close(held)
			<-end
			return nil
		})
	}()
	await(t, held)
	release = sync.OnceFunc(func() {
		close(end)
		must(t, answer(t, done))
	})
	t.Cleanup(release) // a test that failed must not leave Close waiting
	return release
}

func await(t *testing.T, c <-chan bool) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("waited too long")
	}
}

func answer(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("waited too long for an answer")
		return nil
	}
}

// queueing is a context that tells when Write has queued its operation: Write asks for Done once
// to queue it, and again to wait for the answer.
type queueing struct {
	context.Context
	mutex  sync.Mutex
	asked  int
	queued chan bool
}

func (q *queueing) Done() <-chan struct{} {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.asked++; q.asked == 2 {
		close(q.queued)
	}
	return q.Context.Done()
}

// queue calls Write in the background and returns once the operation waits in the queue.
func queue(t *testing.T, ctx context.Context, d *db.DB, fn func(*db.Tx) error) (done chan error) {
	t.Helper()
	q := &queueing{Context: ctx, queued: make(chan bool)}
	done = make(chan error, 1)
	go func() { done <- d.Write(q, fn) }()
	await(t, q.queued)
	return done
}

// watch counts the statements of a handle by their first word.
type watch struct {
	mutex sync.Mutex
	count map[string]int
	fail  func(when db.When, query string) error // may be nil
}

func (w *watch) intercept(when db.When, query string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if when == db.Before {
		if w.count == nil {
			w.count = map[string]int{}
		}
		w.count[strings.Fields(query)[0]]++
	}
	if w.fail != nil {
		return w.fail(when, query)
	}
	return nil
}

func (w *watch) set(fail func(when db.When, query string) error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.count, w.fail = map[string]int{}, fail
}

// failCommits lets the commits from first to last, which count from 1, fail on one side.
func (w *watch) failCommits(side db.When, first, last int) {
	commits := 0
	w.set(func(when db.When, query string) error {
		if when == side && query == "COMMIT" {
			if commits++; commits >= first && commits <= last {
				return errInjected
			}
		}
		return nil
	})
}

func (w *watch) seen(word string) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.count[word]
}

// listing gives the names in a directory, so that a test sees what was left there.
func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// childVariable tells a process of this test binary that it is a child of the running test, and
// with what argument.
const childVariable = "JOBLEDGER_TEST_CHILD"

// child prepares a process of this test binary that runs the calling test as a child.
func child(t *testing.T, binary, argument string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childVariable+"="+argument)
	return cmd
}

func binary(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}
