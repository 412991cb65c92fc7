package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"jobledger/db/dbtest"
)

// B126: a backup that finds no room says so, leaves nothing, and is made when there is room.
func TestB126BackupFindsNoRoom(t *testing.T) {
	source := dbtest.SQLite(t)
	must(t, source, "import", rowsOf(t, 1000))
	small := smallDisk(t, 2)
	if small == "" {
		return
	}
	target := filepath.Join(small, "backup.db")
	filler := filepath.Join(small, "filler")
	if err := os.WriteFile(filler, bytes.Repeat([]byte{1}, 1536<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, source, 7, `the disk is full`, "backup", target)
	if files, err := os.ReadDir(small); err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	must(t, source, "backup", target)
	if must(t, target, "export") != must(t, source, "export") {
		t.Error("the backup is not the ledger")
	}
}

// B126: commands fill a disk until one finds no room, at another point each time. It is refused and has done
// nothing; what was acknowledged is there; and with room again the same command goes on.
func TestB126WorkOnAFullDisk(t *testing.T) {
	small := smallDisk(t, 2)
	if small == "" {
		return
	}
	c := dbtest.StartCampaign(t, "T08", 2)
	random := c.Random(0)
	for n := range c.Wanted {
		path, filler := filepath.Join(small, fmt.Sprint(n, ".db")), filepath.Join(small, "filler")
		must(t, path, "init")
		must(t, path, "grant", "alice", "1000000", "--key", "k")
		taken := bytes.Repeat([]byte{1}, roomOn(t, small)-4096*(9+random.IntN(16)))
		if err := os.WriteFile(filler, taken, 0o600); err != nil {
			t.Fatal(err)
		}
		acknowledged, full := 0, false
		for !full && acknowledged < 500 {
			id := strconv.Itoa(acknowledged)
			o := jobledger(t, path, "job", "create", id, "--owner", "alice", "--cost", "1")
			switch {
			case o.exit == 0:
				acknowledged++
			case o.exit == 7 || o.exit == 9 || o.exit == 2: // the disk may be full already for the -shm file
				full = true
			default:
				t.Fatalf("job %s: %+v", id, o)
			}
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		must(t, path, "job", "create", strconv.Itoa(acknowledged), "--owner", "alice", "--cost", "1")
		var b struct{ Held int }
		if err := json.Unmarshal([]byte(must(t, path, "balance", "alice", "--json")), &b); err != nil {
			t.Fatal(err)
		}
		must(t, path, "audit")
		if b.Held != acknowledged+1 {
			t.Errorf("%d jobs were acknowledged, and then one; %d are held", acknowledged, b.Held)
		}
		c.Done(full)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
	}
}

// roomOn is how many bytes a folder's file system has left.
func roomOn(t *testing.T, folder string) int {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		t.Fatal(err)
	}
	return int(s.Bavail) * int(s.Bsize)
}

// smallDisk mounts a file system of so many megabytes, and gives where; nothing, if that is not allowed here.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	at := t.TempDir()
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", megabytes),
		"tmpfs", at).CombinedOutput()
	if err != nil {
		t.Logf("not run: no file system can be mounted: %v %s", err, out)
		return ""
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", at).Run(); err != nil {
			t.Error(err)
		}
	})
	return at
}
