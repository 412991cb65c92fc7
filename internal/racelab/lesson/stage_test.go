package lesson

import (
	"os"
	"slices"
	"testing"

	"jobledger/db/dbtest"
)

// stage is where a test plays lessons.
type stage struct {
	name string // of the engine
	runs int    // how often a test repeats what must not change
	try  func(t *testing.T, l Lesson, fixed bool) (Result, error)
}

// play is try for what has to work.
func (s *stage) play(t *testing.T, l Lesson, fixed bool) Result {
	t.Helper()
	r, err := s.try(t, l, fixed)
	if err != nil {
		t.Fatalf("%s on %s: %v", l.Name, s.name, err)
	}
	return r
}

// lessons are those that the stage's engine can show.
func (s *stage) lessons() []Lesson {
	return slices.DeleteFunc(All(), func(l Lesson) bool { return !slices.Contains(l.Engines, s.name) })
}

// each runs a test on every engine.
func each(t *testing.T, fn func(t *testing.T, s *stage)) {
	t.Helper()
	t.Run(SQLite, func(t *testing.T) {
		scratchFolder(t)
		s := stage{name: SQLite, runs: 100}
		if testing.Short() {
			s.runs = 10
		}
		s.try = func(t *testing.T, l Lesson, fixed bool) (Result, error) {
			return l.Run(t.Context(), Options{Fixed: fixed})
		}
		fn(t, &s)
	})
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) { fn(t, postgresStage(t, dsn)) })
}

// postgresStage plays all lessons in one scratch database, because making one takes a second.
func postgresStage(t *testing.T, server string) *stage {
	t.Helper()
	s, err := makeDatabase(t.Context(), &postgresEngine, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return &stage{name: Postgres, runs: 5, try: func(t *testing.T, l Lesson, fixed bool) (Result, error) {
		t.Helper()
		const clear = `DROP SCHEMA public CASCADE; CREATE SCHEMA public`
		if _, err := s.pool.ExecContext(t.Context(), clear); err != nil {
			t.Fatal(err)
		}
		r, err := l.play(t.Context(), s, fixed)
		if err != nil {
			return r, l.ended(t.Context(), t.Context(), err)
		}
		return r, r.verdict()
	}}
}

// scratchFolder gives the directory in which scratch files are made while the test runs: in memory, if
// the machine has such a place.
func scratchFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lesson-test-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}
