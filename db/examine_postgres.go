package db

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The bounds of what is fine.
const (
	postgresOldest = 15 // the oldest major version that the tests run on
	clockApart     = 2 * time.Second

	transactionLong = time.Minute
)

// postgresChecks are about the server, and how it is reached.
func postgresChecks(d *DB) []Check {
	return []Check{
		{"engine", postgresVersion},
		{"writable", postgresWritable},
		{"crash-safety", crashSafety},
		{"synchronous-commit", synchronousCommit},
		{"standbys", standbys},
		{"isolation", isolation},
		{"connections", connections},
		{"transactions", func(tx *Tx) (Finding, error) { return transactions(tx, transactionLong) }},
		{"collation", collation},
		{"clock", func(tx *Tx) (Finding, error) { return clock(tx, d.options.Clock) }},
		{"tls", tls},
	}
}

func postgresVersion(tx *Tx) (Finding, error) {
	var number int
	_, err := tx.Get(&number, `SELECT CAST(current_setting('server_version_num') AS INTEGER)`)
	return judgePostgres(number), err
}

func judgePostgres(number int) Finding {
	if number < postgresOldest*10000 {
		return Warn("use a newer PostgreSQL", "PostgreSQL %d.%d: the oldest that is tested is %d",
			number/10000, number%10000, postgresOldest)
	}
	return Good("PostgreSQL %d.%d", number/10000, number%10000)
}

// postgresWritable asks for what the operations need: to change rows, too, but where a trigger of the
// table forbids that to everybody, and to delete them where a row stands for what is to be done.
func postgresWritable(tx *Tx) (Finding, error) {
	var about struct {
		Standby bool
		Role    string
		Refused string
	}
	_, err := tx.Get(&about, `
		SELECT pg_is_in_recovery() AS standby, current_user AS role,
		       COALESCE(string_agg(relname, ', ' ORDER BY relname) FILTER (WHERE
		           NOT has_table_privilege(oid, 'SELECT') OR NOT has_table_privilege(oid, 'INSERT')
		           OR relname = 'polls' AND NOT has_table_privilege(oid, 'DELETE')
		           OR NOT has_table_privilege(oid, 'UPDATE') AND NOT EXISTS (
		               SELECT 1 FROM pg_trigger t
		               WHERE t.tgrelid = c.oid AND t.tgname = c.relname || '_no_update')), '') AS refused
		FROM pg_class c
		WHERE relnamespace = quote_ident(current_schema())::regnamespace
		  AND relname = ANY(string_to_array(?, ' '))`,
		strings.Join(postgresTables(), " "))
	switch {
	case about.Standby:
		return Bad("name the primary, or all hosts and target_session_attrs=read-write",
			"the server is a standby: it can be read, and not written"), err
	case about.Refused != "":
		return Bad("GRANT it SELECT, INSERT and UPDATE on all tables of the ledger, and DELETE on polls",
			"the role %s may not read and write %s", about.Role, about.Refused), err
	}
	return Good("a primary, and the role %s may write", about.Role), err
}

var createTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// postgresTables are those that the migrations make. Others may stand beside them.
func postgresTables() (names []string) {
	for _, m := range postgresMigrations {
		for _, found := range createTable.FindAllStringSubmatch(m.text, -1) {
			names = append(names, found[1])
		}
	}
	return names
}

func crashSafety(tx *Tx) (Finding, error) {
	var is struct{ Synced, Whole bool }
	_, err := tx.Get(&is, `
		SELECT current_setting('fsync') = 'on' AS synced, current_setting('full_page_writes') = 'on' AS whole`)
	return judgeCrashSafety(is.Synced, is.Whole), err
}

func judgeCrashSafety(synced, wholePages bool) Finding {
	switch {
	case !synced:
		return Bad("set fsync to on", "fsync is off: a crash of the machine can destroy the database")
	case !wholePages:
		return Warn("set full_page_writes to on, unless the file system writes whole pages, as ZFS does",
			"full_page_writes is off: a crash of the machine can leave a page half written")
	}
	return Good("fsync and full_page_writes are on")
}

// settingPlaces says where a setting comes from. Others stand in the configuration of the server.
var settingPlaces = map[string]string{
	"client":        "the URL, or PGOPTIONS",
	"database":      "the database (ALTER DATABASE ... SET)",
	"user":          "the role (ALTER ROLE ... SET)",
	"database user": "the role in this database (ALTER ROLE ... IN DATABASE ... SET)",
}

// synchronousCommit judges what is in force for this role, in this database, by this URL.
func synchronousCommit(tx *Tx) (Finding, error) {
	var is struct{ Setting, Source string }
	_, err := tx.Get(&is, `SELECT setting, source FROM pg_settings WHERE name = 'synchronous_commit'`)
	place := settingPlaces[is.Source]
	if place == "" {
		place = "the server's configuration"
	}
	const advice = "set synchronous_commit to on"
	switch is.Setting {
	case "off":
		return Warn(advice, "off, by %s: a crash of the server loses the last commits, acknowledged or not",
			place), err
	case "local", "remote_write":
		return Warn(advice, "%s, by %s: a failover loses the last commits, acknowledged or not",
			is.Setting, place), err
	}
	return Good("%s", is.Setting), err
}

// standbys looks for those who follow this server, other than to copy it or to read changes out.
func standbys(tx *Tx) (Finding, error) {
	var are struct {
		Names, Commit         string
		Waited, Hidden, Other int
	}
	_, err := tx.Get(&are, `
		SELECT current_setting('synchronous_standby_names') AS names,
		       current_setting('synchronous_commit') AS commit,
		       COUNT(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS waited,
		       COUNT(*) FILTER (WHERE pid IS NOT NULL AND sync_state IS NULL) AS hidden,
		       COUNT(*) FILTER (WHERE sync_state IN ('async', 'potential')) AS other
		FROM (SELECT 1 AS one) always
		LEFT JOIN pg_stat_replication r ON COALESCE(application_name, '') NOT IN ('pg_basebackup', 'pg_receivewal')
		      AND NOT EXISTS (SELECT 1 FROM pg_replication_slots s
		                      WHERE s.active_pid = r.pid AND s.slot_type = 'logical')`)
	waits := are.Names != "" && are.Commit != "off" && are.Commit != "local"
	switch {
	case waits && are.Waited+are.Hidden == 0:
		return Bad("start it, or change synchronous_standby_names",
			"every COMMIT waits for a standby (%s), and none is there", are.Names), err
	case waits && are.Waited > 0:
		return Good("every COMMIT waits for a standby (%s)", are.Names), err
	case waits:
		return Good("a COMMIT waits for a standby (%s); this role may not see whether it is there", are.Names), err
	case are.Waited+are.Hidden+are.Other > 0:
		return Warn("set synchronous_standby_names, or do not fail over to one",
			"there are %d, and no COMMIT waits for one: a failover loses the last commits, acknowledged or not",
			are.Waited+are.Hidden+are.Other), err
	}
	return Good("none"), err
}

func isolation(tx *Tx) (Finding, error) {
	var level string
	_, err := tx.Get(&level, `SHOW default_transaction_isolation`)
	return Good("the default is %s; every transaction of jobledger names its own", level), err
}

// connections compares what a process may need with what is left by the narrowest of the limits. Those of
// the database and of the role do not bind a superuser.
func connections(tx *Tx) (Finding, error) {
	var by struct {
		Limit string `db:"by_limit"`
		Left  int    `db:"remaining"`
	}
	_, err := tx.Get(&by, `
		WITH taken AS (SELECT datname, usename FROM pg_stat_activity WHERE backend_type = 'client backend'),
		     me AS (SELECT * FROM pg_roles WHERE rolname = session_user)
		SELECT 'max_connections' AS by_limit, CAST(current_setting('max_connections') AS INTEGER)
		       - CAST(current_setting('superuser_reserved_connections') AS INTEGER)
		       - (SELECT CAST(COALESCE(SUM(numbackends), 0) AS INTEGER) FROM pg_stat_database) AS remaining
		UNION ALL
		SELECT 'the CONNECTION LIMIT of the database', datconnlimit
		       - (SELECT CAST(COUNT(*) AS INTEGER) FROM taken WHERE taken.datname = d.datname)
		FROM pg_database d, me
		WHERE d.datname = current_database() AND datconnlimit >= 0 AND NOT rolsuper
		UNION ALL
		SELECT 'the CONNECTION LIMIT of the role', rolconnlimit
		       - (SELECT CAST(COUNT(*) AS INTEGER) FROM taken WHERE usename = rolname)
		FROM me
		WHERE rolconnlimit >= 0 AND NOT rolsuper
		ORDER BY 2
		LIMIT 1`)
	const each = WritersMax + readersMax
	if by.Left < each {
		return Warn("raise it, or use a pooler", "by %s %d are left, and each process takes up to %d",
			by.Limit, by.Left, each), err
	}
	return Good("by %s %d are left, and each process takes up to %d", by.Limit, by.Left, each), err
}

// transactions looks for those that may hold locks for long. Of other roles a role sees nothing.
func transactions(tx *Tx, limit time.Duration) (Finding, error) {
	var long struct {
		Count  int
		Oldest *string
	}
	_, err := tx.Get(&long, `
		SELECT COUNT(*) AS count,
		       MIN(application_name || ' (' || pid || ', ' || state || ')') AS oldest
		FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
		  AND xact_start < now() - CAST(? AS INTERVAL)`, fmt.Sprintf("%d us", limit.Microseconds()))
	if long.Count > 0 && long.Oldest != nil {
		return Warn("end it where it was begun, or with pg_terminate_backend: what it has locked waits for it",
			"transactions that are open for more than %v: %d, such as that of %s",
			limit, long.Count, *long.Oldest), err
	}
	return Good("none is open for more than %v", limit), err
}

// collation: the order of the bytes is part of the hashes.
func collation(tx *Tx) (Finding, error) {
	var other []string
	err := tx.Select(&other, `
		SELECT c.relname || '.' || a.attname || ' (' || o.collname || ')'
		FROM pg_class c
		JOIN pg_attribute a ON a.attrelid = c.oid
		JOIN pg_collation o ON o.oid = a.attcollation
		WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
		  AND c.relname = ANY(string_to_array(?, ' ')) AND a.attnum > 0 AND NOT a.attisdropped AND o.collname <> 'C'
		ORDER BY 1`, strings.Join(postgresTables(), " "))
	if len(other) > 0 {
		return Bad(`ALTER TABLE ... ALTER COLUMN ... TYPE TEXT COLLATE "C", then audit`,
			"not in the order of their bytes: %s", strings.Join(other, ", ")), err
	}
	return Good("every text is in the order of its bytes"), err
}

// clock compares the server's with ours, as it was in the middle of the question.
func clock(tx *Tx, ours func() time.Time) (Finding, error) {
	var server int64
	asked := ours()
	_, err := tx.Get(&server, `SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`)
	took := ours().Sub(asked)
	apart := time.UnixMicro(server).Sub(asked.Add(took / 2))
	if apart.Abs() > clockApart+took/2 {
		return Warn("set both by NTP: expiry and deadlines are by the clocks of the machines that run jobledger",
			"the server's clock differs by %v from this machine's", apart.Round(time.Millisecond)), err
	}
	return Good("the server's is within %v of this machine's", clockApart), err
}

func tls(tx *Tx) (f Finding, err error) {
	var encrypted bool
	_, err = tx.Get(&encrypted, `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`)
	if err == nil {
		err = tx.conn.Raw(func(c any) error {
			f = judgeTLS(c.(interface{ Conn() *pgx.Conn }).Conn().PgConn().Conn().RemoteAddr(), encrypted)
			return nil
		})
	}
	return f, err
}

func judgeTLS(server net.Addr, encrypted bool) Finding {
	ip, isIP := server.(*net.TCPAddr)
	switch {
	case encrypted:
		return Good("the connection is encrypted")
	case !isIP || ip.IP.IsLoopback():
		return Good("the connection does not leave this machine")
	}
	return Warn("add sslmode=verify-full to the URL",
		"whoever is between this machine and %v can read and change what passes", ip)
}
