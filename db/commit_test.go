package db_test

import (
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A COMMIT that was told to wait no longer for its standby is not acknowledged: it is there now, and
// would be gone with this server.
func TestCommitWithoutItsStandby(t *testing.T) {
	if !dbtest.NeedPostgres(t) {
		return
	}
	c := dbtest.StartCluster(t, "synchronous_standby_names=nobody", "synchronous_commit=local")
	dsn := c.Database(t)
	local := open(t, dsn, db.Options{})
	waits := reopen(t, dsn+"&synchronous_commit=on", db.Options{})
	done := queue(t, t.Context(), waits, mark("a", nil))
	pool := dbtest.Raw(t, dsn)
	eventually(t, func() bool {
		var told int
		must(t, pool.Get(&told, `
			SELECT COUNT(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`))
		return told == 1
	})
	wantIs(t, answer(t, done), db.ErrOutcomeUnknown)
	must(t, local.Write(t.Context(), mark("b", nil)))
	wantMarks(t, local, "a", "b")
}

// eventually waits until something is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited too long")
		}
	}
}
