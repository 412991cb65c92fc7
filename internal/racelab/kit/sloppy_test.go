package kit

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
)

// sloppy is a small ledger that has all abilities, and leaves out the guard that a variable names.
type sloppy struct {
	db    *sql.DB
	fault string
}

const sloppyFault = "KIT_SLOPPY"

const never = 1 << 40 // the end of credits, and the deadline of jobs, that have none

const sloppyTables = `
	CREATE TABLE IF NOT EXISTS owners (owner PRIMARY KEY);
	CREATE TABLE IF NOT EXISTS lots (key PRIMARY KEY, owner, available CHECK (available >= 0), held, ends);
	CREATE TABLE IF NOT EXISTS jobs (job PRIMARY KEY, owner, mode, status, attempt, deadline);
	CREATE TABLE IF NOT EXISTS payments (job, key, amount);
	CREATE TABLE IF NOT EXISTS refunds (job PRIMARY KEY);
	CREATE TABLE IF NOT EXISTS clock (one PRIMARY KEY, now);
	INSERT OR IGNORE INTO clock VALUES (1, 0);`

// errNo is a refusal.
var errNo = errors.New("no")

func sloppyMain() error {
	dsn := "file:" + os.Getenv(DirVariable) + "/sloppy.db?_pragma=busy_timeout(30000)"
	d, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	d.SetMaxOpenConns(1)
	l := sloppy{d, os.Getenv(sloppyFault)}
	if err := l.do(sloppyTables); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := append(strings.Fields(in.Text()), "", "")
		answer := "ok"
		err := l.do("BEGIN IMMEDIATE")
		if err == nil {
			err = l.answer(words[0], words[1:], &answer)
		}
		if end := map[bool]string{true: "COMMIT", false: "ROLLBACK"}[err == nil]; l.do(end) != nil || err != nil {
			answer = fmt.Sprint("refused ", err)
		}
		fmt.Println(answer)
	}
	return nil
}

// do executes statements.
func (l *sloppy) do(statements string, args ...any) error {
	_, err := l.db.Exec(statements, args...)
	return err
}

// must executes a statement that has to change one row.
func (l *sloppy) must(statement string, args ...any) error {
	result, err := l.db.Exec(statement, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errNo
	}
	return nil
}

// one reads one row.
func (l *sloppy) one(query string, args []any, into ...any) error {
	return l.db.QueryRow(query, args...).Scan(into...)
}

// unless gives a part of a statement that a fault leaves out.
func (l *sloppy) unless(fault, part string) string {
	if l.fault == fault {
		return ""
	}
	return part
}

func (l *sloppy) answer(request string, w []string, answer *string) error {
	switch request {
	case "hello":
		*answer = "ok charge hold canceled keys attempts deadline expiry lose stray"
	case "grant":
		return l.grant(w)
	case "create":
		return l.create(w)
	case "notify":
		return l.notify(w, answer)
	case "balance":
		var available, held int
		err := l.one(`SELECT SUM(available * (`+l.unless("ended", "ends > now AND")+` 1)), SUM(held)
			FROM lots JOIN owners USING (owner) JOIN clock WHERE owner = ?`, []any{w[0]}, &available, &held)
		*answer = fmt.Sprintf("ok %d %d", available, held)
		return err
	case "submit":
		var attempt int
		err := l.one(`UPDATE jobs SET attempt = attempt + 1 WHERE job = ? RETURNING attempt`,
			[]any{w[0]}, &attempt)
		*answer = fmt.Sprintf("ok %d", attempt)
		return err
	case "time":
		return l.must(`UPDATE clock SET now = CAST(? AS INTEGER)`, w[0])
	case "sweep":
		return l.sweep()
	case "lose":
		return l.must(`DELETE FROM owners WHERE owner = ?`, w[0])
	case "restore":
		return l.must(`INSERT INTO owners VALUES (?)`, w[0])
	case "stray":
		return l.must(`INSERT INTO refunds VALUES (?)`, w[0])
	}
	return nil
}

func (l *sloppy) grant(w []string) error {
	key := w[2]
	if l.fault == "keys" {
		key += "-" + fmt.Sprint(os.Getpid()) // every process has its own idea of what was granted
	}
	if err := l.do(`INSERT OR IGNORE INTO owners VALUES (?)`, w[0]); err != nil {
		return err
	}
	return l.must(`INSERT INTO lots
		VALUES (?, ?, CAST(? AS INTEGER), 0, COALESCE(CAST(NULLIF(?, '') AS INTEGER), ?))`,
		key, w[0], w[1], w[3], never)
}

// create pays a job from the lots of its owner, those that end first.
func (l *sloppy) create(w []string) error {
	if l.fault == "burns" {
		_ = l.do(`INSERT INTO jobs VALUES (?, ?, ?, 'open', 0, 0); COMMIT; BEGIN IMMEDIATE`, w[0], w[1], w[3])
	}
	due := 0
	if _, err := fmt.Sscan(w[2], &due); err != nil {
		return err
	}
	for due > 0 {
		var key string
		var available int
		err := l.one(`SELECT key, available FROM lots JOIN clock
			WHERE owner = ? AND available > 0 `+l.unless("ended", "AND ends > now")+` ORDER BY ends, key LIMIT 1`,
			[]any{w[1]}, &key, &available)
		if err != nil {
			return errNo // too few
		}
		part := min(due, available)
		due -= part
		if err := l.must(`UPDATE lots SET available = available - ?1, held = held + ?1 * (?2 = 'hold')
			WHERE key = ?3`, part, w[3], key); err != nil {
			return err
		}
		if err := l.must(`INSERT INTO payments VALUES (?, ?, ?)`, w[0], key, part); err != nil {
			return err
		}
	}
	if l.fault == "pays-first" {
		if err := l.do("COMMIT; BEGIN IMMEDIATE"); err != nil {
			return err
		}
	}
	verb := "INSERT"
	if l.fault == "replaces" || l.fault == "burns" {
		verb = "REPLACE"
	}
	return l.must(verb+` INTO jobs VALUES (?, ?, ?, 'open', 0, COALESCE(CAST(NULLIF(?, '') AS INTEGER), ?))`,
		w[0], w[1], w[3], w[4], never)
}

func (l *sloppy) notify(w []string, answer *string) error {
	if l.fault == "trusts" {
		if err := l.do(`INSERT OR IGNORE INTO jobs VALUES (?, '', 'charge', 'open', 0, 0)`, w[0]); err != nil {
			return err
		}
	}
	if w[2] != "" && l.fault != "attempts" {
		if err := l.must(`UPDATE jobs SET attempt = attempt WHERE job = ? AND attempt = CAST(? AS INTEGER)`,
			w[0], w[2]); err != nil {
			return err
		}
	}
	open := "'open'"
	if l.fault == "late" && w[1] == "completed" {
		open = "'open', 'timed_out'"
	}
	var status string
	err := l.one(`UPDATE jobs SET status = ? WHERE job = ? AND status IN (`+open+`) RETURNING status`,
		[]any{w[1], w[0]}, &status)
	if err == nil {
		*answer = "won " + status
		return l.settle(w[0], w[1])
	}
	if err := l.one(`SELECT status FROM jobs WHERE job = ?`, []any{w[0]}, &status); err != nil {
		return err
	}
	*answer = "lost " + status
	return nil
}

// settle moves the credits of a job that has ended.
func (l *sloppy) settle(job, outcome string) error {
	if l.fault != "nowhere" && l.fault != "trusts" {
		if err := l.must(`UPDATE owners SET owner = owner WHERE owner = (SELECT owner FROM jobs WHERE job = ?)`,
			job); err != nil {
			return err
		}
	}
	back := 0
	if outcome != "completed" {
		back = 1
		if err := l.must(`INSERT OR `+map[bool]string{true: "REPLACE", false: "ABORT"}[l.fault == "stray" ||
			l.fault == "sweeps"]+` INTO refunds VALUES (?)`, job); err != nil {
			return err
		}
	}
	amount := "amount"
	if l.fault == "price" {
		amount = "MIN(amount, 7)"
	}
	paid := `(SELECT key, SUM(` + amount + `) AS amount, mode = 'hold' AS held
		FROM payments JOIN jobs USING (job) WHERE job = ?1 GROUP BY key) AS p`
	if l.fault == "any-lot" {
		paid = `(SELECT MIN(key) AS key, 205 AS amount, 1 AS held FROM lots WHERE held >= 205
			AND owner = (SELECT owner FROM jobs WHERE job = ?1)) AS p`
	}
	return l.do(`UPDATE lots SET available = available + ?2 * p.amount, held = lots.held - p.held * p.amount
		FROM `+paid+` WHERE p.key = lots.key`, job, back)
}

// sweep times out the jobs whose deadline has come.
func (l *sloppy) sweep() error {
	for {
		var job string
		err := l.one(`UPDATE jobs SET status = 'timed_out', deadline = ?
			WHERE job = (SELECT job FROM jobs JOIN clock
				WHERE deadline <= now `+l.unless("sweeps", "AND status = 'open'")+` LIMIT 1)
			RETURNING job`, []any{never}, &job)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = l.settle(job, "timed_out")
		}
		if err != nil {
			return err
		}
	}
}
