package ledger_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"jobledger/db/dbtest"
	"jobledger/ledger"
)

const (
	walHeader      = 32 // bytes of a write-ahead log before its first frame
	walFrameHeader = 24 // and of a frame before its page
)

// A power failure leaves a write-ahead log that ends anywhere, or has a bit that is another one: what is read
// then is the ledger as some commit left it, never a half of one.
func TestB117CutAndFlippedLogs(t *testing.T) {
	c := dbtest.StartCampaign(t, "T07", 150)
	b := newWorkbench(t, dbtest.SQLite(t))
	var heads []string // of the journal, after each commit
	note := func() { heads = append(heads, fmt.Sprint(b.query(`SELECT event_key FROM entries ORDER BY seq`))) }
	b.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	note()
	b.give("g", 100)
	note()
	for i := range 12 {
		job := fmt.Sprint("j", i)
		b.ok(b.create(job, 7, ledger.ModeHold))
		note()
		_, err := b.report(job, ledger.Completed, int64(i%7))
		b.ok(err)
		note()
	}
	file, err := os.ReadFile(b.dsn)
	b.ok(err)
	log, err := os.ReadFile(b.dsn + "-wal")
	b.ok(err)
	known := map[string]bool{}
	for _, h := range heads {
		known[h] = true
	}
	random, frame := c.Random(0), walFrameHeader+int(binary.BigEndian.Uint32(log[8:]))
	if frames := (len(log) - walHeader) / frame; frames < len(heads) {
		t.Fatalf("the log has %d frames for %d commits", frames, len(heads))
	}
	seen, folder := map[string]bool{}, memoryDir(t)
	dbtest.KeepIfFailed(t, filepath.Join(folder, "cut.db"))
	for n := range c.Wanted {
		changed := append([]byte(nil), log...)
		at := walHeader + frame*random.IntN((len(log)-walHeader)/frame)
		switch n % 5 {
		case 0: // after a frame
			changed = changed[:at]
		case 1: // inside a frame's header
			changed = changed[:at+random.IntN(walFrameHeader)]
		case 2: // inside a page
			changed = changed[:at+walFrameHeader+random.IntN(frame-walFrameHeader)]
		case 3: // a bit of a frame
			changed[at+random.IntN(frame)] ^= 1 << random.IntN(8)
		case 4: // a bit of the log's header
			changed[random.IntN(walHeader)] ^= 1 << random.IntN(8)
		}
		left := readCut(t, folder, file, changed)
		if seen[left] = true; !known[left] {
			t.Fatalf("case %d: the journal is %s, as no commit left it", n, left)
		}
		c.Done(true)
	}
	if len(seen) < 5 {
		t.Errorf("the cuts left only %d ledgers", len(seen))
	}
}

// readCut opens a database with a log that was cut, audits it, and gives its journal.
func readCut(t *testing.T, folder string, file, log []byte) (journal string) {
	t.Helper()
	path := filepath.Join(folder, "cut.db")
	_ = os.Remove(path + "-shm") // of the case before
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	b := &workbench{T: t, dsn: path}
	l, err := ledger.Open(t.Context(), path, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b.Ledger = l
	b.audit()
	return fmt.Sprint(b.query(`SELECT event_key FROM entries ORDER BY seq`))
}
