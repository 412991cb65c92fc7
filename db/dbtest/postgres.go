package dbtest

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"jobledger/db"
)

// serverVariable names a PostgreSQL server for the tests by its DSN. Its user must be a superuser.
const serverVariable = "JOBLEDGER_TEST_POSTGRES"

// isolationVariable sets the default isolation of every test database, for whole runs of tests: such as
// serializable.
const isolationVariable = "JOBLEDGER_TEST_ISOLATION"

// mark begins the name of every database that a test makes, and may destroy.
const mark = "jobledger_test_"

// server gives the DSN of the server that the tests of this process share, with a database to connect
// to, and starts it if need be.
var server = sync.OnceValues(func() (dsn string, err error) {
	if dsn = os.Getenv(serverVariable); dsn != "" {
		if !isPostgres(dsn) {
			return "", fmt.Errorf("%s is not a URL", serverVariable)
		}
		return dsn, destructible(dsn)
	}
	if shared, err = startCluster(); err != nil {
		return "", fmt.Errorf("%s is not set, and no server can be started: %w", serverVariable, err)
	}
	return shared.DSN("postgres"), nil
})

// shared stays referred to: a cluster that is garbage closes its pipe, and ends.
var shared *Cluster

// Postgres makes a new PostgreSQL database with the tables in it and gives its DSN. It needs
// [NeedPostgres].
func Postgres(t testing.TB) string {
	t.Helper()
	if _, err := server(); err != nil {
		t.Fatal(err)
	}
	if shared == nil {
		dsn := fresh(t, "template1")
		if _, err := db.Create(t.Context(), dsn, db.Options{}); err != nil {
			t.Fatal(err)
		}
		return dsn
	}
	makeSpares()
	s := <-spares
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() { drops <- s.name })
	return shared.DSN(s.name)
}

// On a cluster of our own, one goroutine makes the next test's database while this one runs, and another
// drops the last one's. What is left at the end goes with the cluster.
var (
	spares = make(chan spare)
	drops  = make(chan string, 1000)
)

type spare struct {
	name string
	err  error
}

var makeSpares = sync.OnceFunc(func() {
	dsn := shared.DSN("postgres")
	template, err := createDatabase(dsn, "template1")
	if err == nil {
		_, err = db.Create(nowhere, named(dsn, template), db.Options{})
	}
	go func() {
		for {
			name := ""
			if err == nil {
				name, err = createDatabase(dsn, template)
			}
			spares <- spare{name, err}
		}
	}()
	go dropAll(dsn, drops, os.Stderr)
})

// dropAll drops databases whose tests have ended. What cannot be dropped fails no other test: it is told.
func dropAll(dsn string, names <-chan string, told io.Writer) {
	for name := range names {
		if err := dropDatabase(dsn, name); err != nil {
			fmt.Fprintf(told, "a test's database stays: %v\n", err)
		}
	}
}

// EmptyPostgres makes a new PostgreSQL database with nothing in it and gives its DSN.
func EmptyPostgres(t testing.TB) string {
	t.Helper()
	return fresh(t, "template1")
}

func fresh(t testing.TB, from string) string {
	t.Helper()
	dsn, err := server()
	if err != nil {
		t.Fatal(err)
	}
	name, err := createDatabase(dsn, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dropDatabase(dsn, name); err != nil {
			t.Error(err)
		}
	})
	return named(dsn, name)
}

func isPostgres(dsn string) bool { return strings.HasPrefix(dsn, "postgres") }

func createDatabase(dsn, from string) (name string, err error) {
	name = mark + strings.ToLower(rand.Text())
	err = administer(dsn, `CREATE DATABASE `+name+` TEMPLATE `+from)
	if level := os.Getenv(isolationVariable); err == nil && level != "" {
		err = setDefault(dsn, name, "default_transaction_isolation", level)
	}
	return name, err
}

func dropDatabase(dsn, name string) error {
	if !strings.HasPrefix(name, mark) {
		return fmt.Errorf("%q is not the name of a test database: it is left alone", name)
	}
	return administer(dsn, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
}

// administer runs a statement on a server whose databases may be destroyed.
func administer(dsn, statement string) error {
	if err := destructible(dsn); err != nil {
		return err
	}
	pool, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// destructible refuses a server that is not on this machine.
func destructible(dsn string) error {
	u, err := url.Parse(dsn)
	if err != nil {
		return errors.New("the DSN of the test server is not a URL")
	}
	hosts := u.Hostname()
	if more := u.Query().Get("host"); more != "" {
		hosts = more
	}
	for _, host := range strings.Split(hosts, ",") {
		ip := net.ParseIP(host)
		if !strings.HasPrefix(host, "/") && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("%q is not on this machine: tests create and drop databases", host)
		}
	}
	return nil
}

// named gives a DSN with another database.
func named(dsn, database string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	u.Path = "/" + database
	return u.String()
}

// with gives a DSN with one more parameter.
func with(dsn, key, value string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	query := u.Query()
	query.Set(key, value)
	u.RawQuery = query.Encode()
	return u.String()
}

func escape(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// SetDefault sets what a parameter of the server is for new connections to a test's database.
func SetDefault(t testing.TB, dsn, parameter, value string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err == nil {
		// The mark is added again, so that no other database can be meant.
		name := mark + strings.TrimPrefix(u.Path, "/"+mark)
		err = setDefault(dsn, name, parameter, value)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func setDefault(dsn, name, parameter, value string) error {
	return administer(dsn, fmt.Sprintf(`ALTER DATABASE %s SET %s = '%s'`, name, parameter, value))
}
