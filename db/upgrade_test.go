package db_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A program of an older version is at work when one of a newer version opens the file and migrates it: what
// the older one acknowledged is there, and it is refused from then on.
func TestOldAndNewVersion(t *testing.T) {
	if path := os.Getenv(childVariable); path != "" {
		writeUntilNewer(t, path)
		return
	}
	c := dbtest.StartCampaign(t, "T35", 3)
	for range c.Wanted {
		path := dbtest.SQLite(t)
		dbtest.KeepIfFailed(t, path)
		old := child(t, binary(t), path)
		out, err := old.StdoutPipe()
		must(t, err)
		must(t, old.Start())
		lines := bufio.NewScanner(out)
		for range 20 {
			if !lines.Scan() {
				t.Fatalf("the older program said no more: %v", old.Wait())
			}
		}
		known := db.AddMigration("CREATE TABLE next (x INTEGER)")
		d, err := db.Open(t.Context(), path, db.Options{})
		must(t, err)
		must(t, d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO next (x) VALUES (1)`)
			return err
		}))
		told := []string{}
		for lines.Scan() {
			told = append(told, lines.Text())
		}
		must(t, old.Wait())
		last := told[len(told)-1]
		if there := marks(t, d); last != "newer" || len(there) != 20+len(told)-1 {
			t.Errorf("acknowledged %d, then %q; written %d", 20+len(told)-1, last, len(there))
		}
		must(t, d.Close())
		known()
		// Back with the old program: it refuses, and writes nothing.
		before, err := os.ReadFile(path)
		must(t, err)
		_, err = db.Open(t.Context(), path, db.Options{})
		wantIs(t, err, db.ErrNewer)
		after, err := os.ReadFile(path)
		must(t, err)
		c.Done(slices.Equal(before, after))
	}
}

// writeUntilNewer is the older program.
func writeUntilNewer(t *testing.T, path string) {
	d := open(t, path, db.Options{})
	for n := 0; ; n++ {
		name := fmt.Sprintf("mark-%06d", n)
		err := d.Write(t.Context(), mark(name, nil))
		if err != nil {
			wantIs(t, err, db.ErrNewer)
			_, _ = os.Stdout.WriteString("newer\n")
			os.Exit(0) // nothing more on its output
		}
		_, _ = os.Stdout.WriteString(name + "\n")
	}
}
