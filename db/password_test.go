package db_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// TestPasswordsStandElsewhere: a password need not stand on a command line, where everybody on the machine
// can read it. Each other place works, and without any the server refuses, in a line that has no password.
func TestPasswordsStandElsewhere(t *testing.T) {
	if !dbtest.NeedCluster(t) {
		return
	}
	folder, err := os.MkdirTemp("", "jobledger-passwords-") // where the server's user may look
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	must(t, os.Chmod(folder, 0o755))
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	rules := file("rules", "local all postgres trust\nlocal all all scram-sha-256\n")
	must(t, os.Chmod(rules, 0o644))
	c := dbtest.StartCluster(t, "hba_file="+rules)
	owner := c.Database(t)
	d, err := dbtest.OpenRaw(owner)
	must(t, err)
	defer d.Close()
	for _, statement := range []string{
		`CREATE ROLE app LOGIN PASSWORD '` + password + `'`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app`,
	} {
		_, err := d.Exec(statement)
		must(t, err)
	}
	dsn := strings.Replace(owner, "postgres@", "app@", 1)
	passes := file("passes", "*:*:*:app:"+password+"\n")
	services := file("services", "[ledger]\nuser=app\npassword="+password+"\n")
	for name, c := range map[string]struct {
		variables map[string]string
		dsn       string
		refused   bool
	}{
		"nowhere":                   {nil, dsn, true},
		"another one":               {map[string]string{"PGPASSWORD": password + "x"}, dsn, true},
		"PGPASSWORD":                {map[string]string{"PGPASSWORD": password}, dsn, false},
		"PGPASSFILE":                {map[string]string{"PGPASSFILE": passes}, dsn, false},
		"a file that the URL names": {nil, dsn + "&passfile=" + passes, false},
		"a service of the URL":      {nil, dsn + "&service=ledger&servicefile=" + services, false},
		"a service of the variables": {
			map[string]string{"PGSERVICEFILE": services, "PGSERVICE": "ledger"}, dsn, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", folder) // whatever stands in this user's own files
			for variable, value := range c.variables {
				t.Setenv(variable, value)
			}
			d, err := db.Open(t.Context(), c.dsn, db.Options{})
			if err == nil {
				err = d.Close()
			}
			if (err != nil) != c.refused || err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("got %v", err)
			}
		})
	}
}
