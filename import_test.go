//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/db/dbtest"
)

// writeFile puts text into a new folder and gives the file's name.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// owners counts the owners in a ledger.
func owners(t *testing.T, dsn string) string {
	t.Helper()
	var list struct{ Items []struct{ Owner string } }
	if err := json.Unmarshal([]byte(must(t, dsn, "balance", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(len(list.Items))
}

// B130: one bad row keeps the whole file out, and is named.
func TestB130AllOrNothing(t *testing.T) {
	file := writeFile(t, "books.csv", "type,owner,available\nbalance,ann,5\nbalance,bob,-5\nbalance,cid,5\n")
	dbtest.Each(t, func(t *testing.T, dsn string) {
		o := jobledger(t, dsn, "import", file)
		const want = "refused: line 3: available: \"-5\" is not an amount"
		if o.exit != 2 || o.stdout != "" || !strings.HasPrefix(o.stderr, want) ||
			!strings.Contains(o.stderr, "\njobledger: line 3: available: ") {
			t.Errorf("got %+v", o)
		}
		o = jobledger(t, dsn, "import", file, "--json")
		var r struct {
			Rows, Imported int64
			Refused        []struct {
				Line   int64
				Reason string
			}
		}
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.exit != 2 || r.Rows != 3 ||
			len(r.Refused) != 1 || r.Refused[0].Line != 3 || !strings.HasPrefix(o.stderr, `{"code":"INVALID",`) {
			t.Errorf("got %+v, %v", o, err)
		}
		if n := owners(t, dsn); n != "0" {
			t.Errorf("%s owners are in", n)
		}
	})
}

// rowsOf writes books of n owners with a job each.
func rowsOf(t *testing.T, n int) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"type":"balance","owner":"owner-%d","available":%d}`+"\n", i, i)
		fmt.Fprintf(&text, `{"type":"job","id":"job-%d","owner":"owner-%d","cost":7,"status":"completed"}`+"\n", i,
			i)
	}
	return writeFile(t, "books.jsonl", text.String())
}

// B130: an import that is killed has written all or nothing, and the next one completes it.
func TestB130Killed(t *testing.T) {
	file := rowsOf(t, 50)
	seen := map[string]int{}
	for range 25 {
		dbtest.Each(t, func(t *testing.T, dsn string) {
			c := exec.CommandContext(t.Context(), "jobledger", "--db", dsn, "import", file)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
			_ = c.Process.Kill() // it may have ended
			_ = c.Wait()
			n := owners(t, dsn)
			if seen[n]++; n != "0" && n != "50" {
				t.Fatalf("%s of 50 owners are in", n)
			}
			must(t, dsn, "import", file)
			if n := owners(t, dsn); n != "50" {
				t.Fatalf("%s of 50 owners are in at last", n)
			}
			must(t, dsn, "audit")
		})
	}
	t.Log("owners after the kill:", seen)
}

// B131: a signal ends an import soon, with nothing half done, and the next one completes.
func TestB131Interrupted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, dsn string) {
		rows := 20_000 // enough that none of the imports below has time to end
		if strings.HasPrefix(dsn, "postgres") {
			rows = 4_000
		}
		file := rowsOf(t, rows/2)
		for i, after := range []time.Duration{400, 500, 700, 1000} {
			signal := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[i%2]
			c := exec.CommandContext(t.Context(), "jobledger", "--db", dsn, "import", file)
			var stderr strings.Builder
			c.Stderr = &stderr
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after * time.Millisecond)
			began := time.Now()
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := c.Wait()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != 128+int(signal) || time.Since(began) > 5*time.Second ||
				strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("after %d ms: %v in %v: %s", after, err, time.Since(began), &stderr)
			}
			if n := owners(t, dsn); n != "0" {
				t.Errorf("%s owners are in", n)
			}
		}
		must(t, dsn, "import", file)
		again := fmt.Sprintf(`"imported":0,"replayed":%d,`, rows)
		if o := must(t, dsn, "import", file, "--json"); !strings.Contains(o, again) {
			t.Errorf("imported again: %s", o)
		}
		must(t, dsn, "audit")
	})
}

// TestImportCommands holds the forms of import, export and job settle.
func TestImportCommands(t *testing.T) {
	file := writeFile(t, "books.csv", "type,owner,available,id,cost,status,submission,evidence,ref,job,amount\n"+
		"balance,ann,3,,,,,,,,\njob,ann,,j,7,failed,rejected,said no,,,\nrefund,ann,,,,,,,r,j,3\n"+
		"refund,bob,,,,,,,s,j,3\nbalance,ann,3,,,,,,,,\n")
	dbtest.Each(t, func(t *testing.T, dsn string) {
		dry := must(t, dsn, "import", file, "--dry-run", "--json")
		want := "dry_run duplicates file imported replayed rows refused unmatched_refunds owners jobs refunds " +
			"credits"
		if got := fields(t, dry); len(got) != len(strings.Fields(want)) || owners(t, dsn) != "0" {
			t.Errorf("got %s: %s", got, dry)
		}
		for _, name := range strings.Fields(want) {
			if !strings.Contains(dry, `"`+name+`":`) {
				t.Errorf("no %s in %s", name, dry)
			}
		}
		o := jobledger(t, dsn, "import", file)
		if o.exit != 0 || o.stdout != "imported 3 rows of "+file+": 1 owner, 1 job, 2 refunds, 7 credits granted\n"+
			"said twice in the file: 1 row\n" ||
			o.stderr != "not counted: line 5: refund s: the job is of owner \"ann\"\n" {
			t.Errorf("got %+v", o)
		}
		if got := must(t, dsn, "job", "settle", "j"); got !=
			"returned 4 for job j on ann (failed): available 7, held 0\n" {
			t.Errorf("got %s", got)
		}
		document := must(t, dsn, "job", "settle", "j", "--json")
		if got := strings.Join(fields(t, document),
			" "); got != "balance consumed job reported returned verdict won" {
			t.Errorf("got %s", got)
		}
		refused(t, dsn, 3, `no job "nope"`, "job", "settle", "nope")
		refused(t, dsn, 2, `map: "seed4" is not one of seed1, seed2, seed3`, "import", file, "--map", "seed4")
		refused(t, dsn, 2, `format: "xml" is not one of jsonl, csv`, "import", file, "--format", "xml")
		refused(t, dsn, 2, `format: .* have their own`, "import", file, "--format", "csv", "--map", "seed1")
		refused(t, dsn, 2, `file: .* standard input`, "import", "-", "--map", "seed1")
		refused(t, dsn, 2, `format: books may be jsonl or csv`, "import", "books")
		refused(t, dsn, 2, `file: cannot open nowhere.csv: no such file`, "import", "nowhere.csv")
		export := must(t, dsn, "export")
		for _, from := range []string{"-", writeFile(t, "backup.jsonl", export)} {
			fresh := filepath.Join(t.TempDir(), "fresh.db")
			must(t, fresh, "init")
			c := exec.CommandContext(t.Context(), "jobledger", "--db", fresh, "import", from, "--format", "jsonl")
			c.Stdin = strings.NewReader(export)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if again := must(t, fresh, "export"); again != export {
				t.Errorf("exported %s and then %s", export, again)
			}
		}
	})
}

// TestCopyKilled: a copy that is killed leaves a target that is empty or whole, and an empty one takes
// the next copy.
func TestCopyKilled(t *testing.T) {
	from := dbtest.SQLite(t)
	must(t, from, "import", rowsOf(t, 50))
	seen := map[string]int{}
	for range 12 {
		dbtest.Each(t, func(t *testing.T, dsn string) {
			c := exec.CommandContext(t.Context(), "jobledger", "copy", "--from", from, "--to", dsn)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			_ = c.Process.Kill() // it may have ended
			_ = c.Wait()
			n := owners(t, dsn)
			if seen[n]++; n == "0" {
				must(t, dsn, "copy", "--from", from, "--to", dsn)
			} else if n != "50" {
				t.Fatalf("%s of 50 owners are in", n)
			}
			if must(t, dsn, "export") != must(t, from, "export") {
				t.Error("the copy is not the original")
			}
		})
	}
	t.Log("owners after the kill:", seen)
}
