package ledger_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

// drillsPerLedger keeps ledgers small, and their audits quick.
const drillsPerLedger = 5

// A drill: backups are made while callers write, and brought back. Each has all that was acknowledged before
// it began, and a journal that the live one goes on from; callbacks that come late settle each job of it
// once.
func TestB128BackupDrill(t *testing.T) {
	c := dbtest.StartCampaign(t, "T28", 20)
	for first := 0; first < c.Wanted && !t.Failed(); first += drillsPerLedger {
		b := newWorkbench(t, dbtest.SQLite(t))
		dbtest.KeepIfFailed(t, b.dsn)
		load := b.startLoad()
		for n := first; n < min(first+drillsPerLedger, c.Wanted); n++ {
			b.drill(load, fmt.Sprint("late-", n))
			c.Done(true)
		}
		load.check(b)
		b.audit()
	}
}

// drill makes one backup, and brings it back.
func (b *workbench) drill(load *load, late string) {
	b.Helper()
	b.ok(b.create(late, 3, ledger.ModeHold))
	told := acknowledgedJobs(&load.created)
	file, restored := filepath.Join(b.TempDir(), "backup.db"), filepath.Join(b.TempDir(), "restored.db")
	made, err := ledger.CopyFile(b.Context(), b.dsn, file, ledger.Options{}, ledger.FileParams{})
	b.ok(err)
	_, err = b.report(late, ledger.Completed)
	b.ok(err)
	load.pause.Lock()
	defer load.pause.Unlock()
	brought, err := ledger.CopyFile(b.Context(), file, restored, ledger.Options{}, ledger.FileParams{})
	b.ok(err)
	if !made.Audited || made.OpenJobs == 0 || *brought.AsOf != *made.AsOf {
		b.Errorf("made %+v, brought back %+v", made, brought)
	}
	checkDrill(b.T, b, restored, told)
}

func acknowledgedJobs(told *sync.Map) (jobs []string) {
	told.Range(func(job, acknowledged any) bool {
		if acknowledged.(bool) {
			jobs = append(jobs, job.(string))
		}
		return true
	})
	return jobs
}

// checkDrill looks at a restored ledger, and lets the callbacks of its open jobs arrive twice.
func checkDrill(t *testing.T, live *workbench, path string, told []string) {
	t.Helper()
	dbtest.KeepIfFailed(t, path)
	b := newWorkbench(t, path)
	defer b.Close()
	for _, job := range told {
		if _, err := b.Job(t.Context(), job); err != nil {
			t.Fatalf("%s was acknowledged before the backup: %v", job, err)
		}
	}
	last := b.query(`SELECT event_key FROM entries ORDER BY seq DESC LIMIT 1`)[0] // there is one owner
	if mine, theirs := hashOf(b, last), hashOf(live, last); !bytes.Equal(mine, theirs) {
		t.Errorf("%s ends with %x, and is %x in the live journal", last, mine, theirs)
	}
	open := b.query(`SELECT id FROM jobs WHERE status IN ('pending', 'processing')`)
	for _, job := range open {
		for _, want := range []ledger.Verdict{ledger.Won, ledger.Duplicate} {
			s, err := b.report(job, ledger.Completed)
			if err != nil || s.Verdict != want {
				t.Errorf("%s: %v (%v), want %v", job, s.Verdict, err, want)
			}
		}
	}
	if len(open) == 0 {
		t.Error("no callback came late")
	}
	b.audit()
}

func hashOf(b *workbench, key string) (hash []byte) {
	b.Helper()
	b.ok(dbtest.Raw(b.T, b.dsn).Get(&hash, `SELECT hash FROM entries WHERE event_key = ?`, key))
	return hash
}

// A ledger that contradicts itself is no backup, unless that is asked for.
func TestBackupOfABrokenLedger(t *testing.T) {
	b := newWorkbench(t, dbtest.SQLite(t))
	b.give("alice", 10)
	b.exec(`UPDATE balances SET available = 11`)
	file := filepath.Join(t.TempDir(), "backup.db")
	_, err := ledger.CopyFile(t.Context(), b.dsn, file, ledger.Options{}, ledger.FileParams{})
	b.fails(err, ledger.Inconsistent)
	made, err := ledger.CopyFile(t.Context(), b.dsn, file, ledger.Options{}, ledger.FileParams{NoAudit: true})
	if err != nil || made.Audited || made.AsOf != nil || made.SchemaVersion != ledger.SchemaVersion() {
		t.Errorf("%+v, %v", made, err)
	}
	_, err = ledger.CopyFile(t.Context(), b.dsn, file, ledger.Options{}, ledger.FileParams{NoAudit: true})
	b.fails(err, ledger.NotAllowed)
}
