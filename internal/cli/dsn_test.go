package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// A DSN that is no URL is taken for no file, and its password is not repeated.
func TestKeywordDSN(t *testing.T) {
	t.Chdir(t.TempDir()) // where such a file would be
	for _, dsn := range []string{
		"host=localhost password=s3cret dbname=x", "password=s3cret", "user = u  password = s3cret",
		"sslmode='disable' port=7 user=s3cret",
	} {
		for _, command := range []string{"init", "balance", "doctor"} {
			stdout, stderr, exit := run(t, dsn, command)
			if exit != 2 || strings.Contains(stdout+stderr, "s3cret") || !strings.Contains(stderr, "key=value") {
				t.Errorf("%s with %s: exit %d: %s%s", command, dsn, exit, stdout, stderr)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "user=1 host=2.db")
	if _, stderr, exit := run(t, path, "init"); exit != 0 {
		t.Errorf("a file with such a name: %s", stderr)
	}
}

// The help names both kinds of database.
func TestHelpNamesBothEngines(t *testing.T) {
	help, _, _ := run(t, "", "--help")
	for _, want := range []string{"SQLite", "PostgreSQL", "--db DATABASE", "postgres://"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help does not say %s: %s", want, help)
		}
	}
}
