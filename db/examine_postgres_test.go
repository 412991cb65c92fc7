package db_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// clerk lets the role of that name read.
const clerk = `GRANT SELECT ON ALL TABLES IN SCHEMA public TO clerk`

const clerkWrites = `GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO clerk;
	GRANT UPDATE ON balances, jobs, attempts, reports, tokens, endpoints, deliveries, polls TO clerk`

func TestExaminePostgres(t *testing.T) {
	if !dbtest.NeedCluster(t) {
		return
	}
	c := dbtest.StartCluster(t)
	wantHealthy(t, c.Database(t), 12)
	for _, w := range []struct {
		name     string
		level    db.Level
		text     string
		make     string // a statement
		variable string // of the URL
	}{
		{"synchronous-commit", db.Warning, "local, by the role in this database (",
			`ALTER ROLE postgres IN DATABASE DATABASE SET synchronous_commit = local`, ""},
		{"synchronous-commit", db.Warning, "off, by the database (ALTER DATABASE ... SET): a crash of the server",
			`ALTER DATABASE DATABASE SET synchronous_commit = off`, ""},
		{"synchronous-commit", db.Warning, "remote_write, by the URL", ``, "&synchronous_commit=remote_write"},
		{"synchronous-commit", db.Fine, "remote_apply", ``, "&synchronous_commit=remote_apply"},
		{"synchronous-commit", db.Warning, "off, by the role (",
			`ALTER ROLE postgres SET synchronous_commit = off`, ""},
		{"isolation", db.Fine, "serializable",
			`ALTER DATABASE DATABASE SET default_transaction_isolation = serializable`, ""},
		{"collation", db.Problem, "events.payload (POSIX)",
			`ALTER TABLE events ALTER COLUMN payload TYPE TEXT COLLATE "POSIX"`, ""},
		{"writable", db.Problem, "the role reader may not read and write answers, attempts, ",
			`CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader`, "&user=reader"},
		{"writable", db.Problem, "the role clerk may not read and write lots",
			`CREATE ROLE clerk LOGIN; GRANT DELETE ON polls TO clerk; ` + clerkWrites, "&user=clerk"},
		{"writable", db.Problem, "the role clerk may not read and write polls",
			`GRANT UPDATE ON lots TO clerk; ` + clerkWrites, "&user=clerk"},
		{"writable", db.Fine, "the role clerk may write",
			`GRANT UPDATE ON lots TO clerk; GRANT DELETE ON polls TO clerk; ` + clerkWrites, "&user=clerk"},
		{"connections", db.Warning, "by the CONNECTION LIMIT of the role 10 are left",
			`ALTER ROLE clerk CONNECTION LIMIT 11; ` + clerk, "&user=clerk"},
		{"connections", db.Warning, "by the CONNECTION LIMIT of the database 4 are left",
			`ALTER DATABASE DATABASE CONNECTION LIMIT 5; ` + clerk, "&user=clerk"},
		{"connections", db.Fine, "by max_connections", `ALTER DATABASE DATABASE CONNECTION LIMIT 5`, ""},
	} {
		dsn := c.Database(t)
		if w.make != "" {
			dbtest.Exec(t, dsn, strings.Replace(w.make, " DATABASE DATABASE", " DATABASE "+database(dsn), 1))
		}
		wantFinding(t, dsn+w.variable, w.name, w.level, w.text)
	}
	ahead := db.Options{Clock: func() time.Time { return time.Now().Add(time.Minute) }}
	f := finding(t, c.Database(t), ahead, "clock")
	if f.Level != db.Warning || !strings.Contains(f.Message, "clock differs by -") {
		t.Errorf("%+v", f)
	}
}

// A server that is set to lose data, and waits for a standby that is not there.
func TestExamineSickServer(t *testing.T) {
	if !dbtest.NeedCluster(t) {
		return
	}
	dsn := dbtest.StartCluster(t, "fsync=off", "full_page_writes=off", "synchronous_commit=local",
		"max_connections=14", "max_wal_senders=1", "synchronous_standby_names=nobody").Database(t)
	wantFinding(t, dsn, "crash-safety", db.Problem, "fsync is off")
	wantFinding(t, dsn, "synchronous-commit", db.Warning, "local, by the server's configuration")
	wantFinding(t, dsn, "connections", db.Warning, " are left, and each process takes up to 12")
	wantFinding(t, dsn, "standbys", db.Fine, "none")
	dsn += "&synchronous_commit=on"
	wantFinding(t, dsn, "standbys", db.Problem, "waits for a standby (nobody), and none is there")
}

func TestExaminePair(t *testing.T) {
	if !dbtest.NeedCluster(t) {
		return
	}
	primary, standby := dbtest.StartPair(t)
	dsn := primary.Database(t)
	wantHealthy(t, dsn, 12)
	wantFinding(t, dsn, "standbys", db.Fine, "every COMMIT waits for a standby")
	wantFinding(t, dsn+"&synchronous_commit=local", "standbys", db.Warning, "there are 1, and no COMMIT waits")
	dbtest.Exec(t, dsn, `CREATE ROLE reader LOGIN`, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader`)
	wantFinding(t, dsn+"&user=reader", "standbys", db.Fine, "this role may not see whether it is there")
	copied := standby.DSN(database(dsn))
	eventually(t, func() bool { // a COMMIT waits until the standby has it, and not until it shows it
		_, err := db.Examine(t.Context(), copied, db.Options{})
		return err == nil
	})
	wantFinding(t, copied, "writable", db.Problem, "the server is a standby")
	err := reopen(t, copied, db.Options{BusyWait: time.Second}).Write(t.Context(), mark("a", nil))
	if !errors.Is(err, db.ErrBusy) || !strings.Contains(err.Error(), "standby") {
		t.Errorf("a write to a standby: %v", err)
	}
	must(t, standby.Crash())
	eventually(t, func() bool { return finding(t, dsn, db.Options{}, "standbys").Level == db.Problem })
}

// database gives the name of the database in a DSN.
func database(dsn string) string {
	u, _ := url.Parse(dsn)
	return strings.TrimPrefix(u.Path, "/")
}

// A transaction that stays open is found.
func TestExamineLongTransaction(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		wantFinding(t, dsn, "transactions", db.Fine, "none")
		release, err := dbtest.Lock(dsn)
		must(t, err)
		d := reopen(t, dsn, db.Options{})
		must(t, d.Read(t.Context(), func(tx *db.Tx) error {
			f, err := db.LongTransactions(tx, 0)
			if f.Level != db.Warning || !strings.Contains(f.Message, "for more than 0s: 1, such as that of ") {
				t.Errorf("%+v", f)
			}
			return err
		}))
		must(t, release())
	})
}
