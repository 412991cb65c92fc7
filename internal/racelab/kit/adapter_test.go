package kit

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite"

	"jobledger/ledger"
)

// adapter speaks the protocol for package ledger.
type adapter struct {
	ledger *ledger.Ledger
	file   string // the ledger
	clock  string // a file with what time set, which all processes share
}

// falsified, if set, is "PATTERN => REPLACEMENT" for what the adapter says, as "request -> answer".
const falsified = "KIT_FALSIFIED"

// adapterMain is the adapter as a program.
func adapterMain() error {
	dir, ctx := os.Getenv(DirVariable), context.Background()
	a := adapter{file: filepath.Join(dir, "ledger.db"), clock: filepath.Join(dir, "clock")}
	if _, err := ledger.Create(ctx, a.file, ledger.Options{}); err != nil {
		return err
	}
	var err error
	if a.ledger, err = ledger.Open(ctx, a.file, ledger.Options{Clock: a.now}); err != nil {
		return err
	}
	defer a.ledger.Close()
	pattern, replacement, _ := strings.Cut(os.Getenv(falsified), " => ")
	tampering := regexp.MustCompile(pattern)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer, err := a.answer(ctx, strings.Fields(in.Text()))
		switch {
		case ledger.CodeOf(err) == ledger.Busy:
			answer = "busy"
		case err != nil:
			answer = "refused " + err.Error()
		}
		if line := in.Text() + " -> " + answer; pattern != "" && tampering.MatchString(line) {
			answer = tampering.ReplaceAllString(line, replacement)
		}
		fmt.Println(answer)
	}
	return nil
}

// now is a day of 2030 and the seconds that time set.
func (a *adapter) now() time.Time {
	text, err := os.ReadFile(a.clock)
	seconds, _ := strconv.Atoi(string(text))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	return time.Date(2030, 1, 1, 0, 0, seconds, 0, time.UTC)
}

// at reads a moment of that day, if there is one at place i.
func (a *adapter) at(words []string, i int) ledger.When {
	if len(words) <= i {
		return ledger.When{}
	}
	seconds, _ := strconv.Atoi(words[i])
	return ledger.OnTime(time.Date(2030, 1, 1, 0, 0, seconds, 0, time.UTC))
}

// answer does what a request says.
func (a *adapter) answer(ctx context.Context, words []string) (answer string, err error) {
	switch answer = "ok"; words[0] {
	case "hello":
		return "ok charge hold canceled keys attempts deadline expiry lose stray", nil
	case "grant":
		amount, _ := strconv.ParseInt(words[2], 10, 64)
		_, err = a.ledger.Grant(ctx, ledger.GrantParams{
			Owner: words[1], Amount: amount, Key: words[3], Expires: a.at(words, 4)})
	case "create":
		cost, _ := strconv.ParseInt(words[3], 10, 64)
		_, err = a.ledger.CreateJob(ctx, ledger.JobParams{
			ID: words[1], Owner: words[2], Cost: cost, Mode: ledger.Mode(words[4]), Deadline: a.at(words, 5)})
	case "notify":
		return a.notify(ctx, words)
	case "balance":
		b, err := a.ledger.Balance(ctx, ledger.BalanceParams{Owner: words[1]})
		return fmt.Sprintf("ok %d %d", b.Available, b.Held), err
	case "submit":
		return a.submit(ctx, words[1])
	case "time":
		err = os.WriteFile(a.clock+words[1], []byte(words[1]), 0o600)
		err = errors.Join(err, os.Rename(a.clock+words[1], a.clock))
	case "sweep":
		_, err = a.ledger.Sweep(ctx, ledger.PageMax)
	default:
		err = a.tamper(ctx, words)
	}
	return answer, err
}

func (a *adapter) notify(ctx context.Context, words []string) (string, error) {
	r := ledger.Report{Job: words[1], Outcome: ledger.Outcome(words[2]), Source: ledger.Callback}
	if len(words) > 3 {
		r.Attempt, _ = strconv.ParseInt(words[3], 10, 64)
	}
	s, err := a.ledger.Settle(ctx, r)
	if s.Won {
		return "won " + string(s.Job.Status), err
	}
	return "lost " + string(s.Job.Status), err
}

// submit gives up the attempt that is under way, if there is one, and begins the next.
func (a *adapter) submit(ctx context.Context, job string) (string, error) {
	j, err := a.ledger.Job(ctx, job)
	if err == nil && j.Attempt > 0 {
		_, err = a.ledger.Rejected(ctx, job, j.Attempt, "given up", true)
	}
	if err != nil {
		return "", err
	}
	s, err := a.ledger.Submit(ctx, job, "acme")
	return fmt.Sprintf("ok %d", s.Attempt), err
}

// tamper reaches into the database.
func (a *adapter) tamper(ctx context.Context, words []string) error {
	d, err := sql.Open("sqlite", "file:"+a.file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer d.Close()
	statements := map[string][]string{
		"lose": {`CREATE TABLE lost AS SELECT * FROM balances WHERE owner = ?`,
			`DROP TRIGGER IF EXISTS balances_no_delete`, `DELETE FROM balances WHERE owner = ?`},
		"restore": {`INSERT INTO balances SELECT * FROM lost WHERE owner = ?`, `DROP TABLE lost`},
		"stray": {`INSERT INTO entries
			SELECT 'stray' || job_id, 'job-refund:' || job_id, owner, seq + 1, 'refund', amount, job_id,
				amount, 0, 0, 0, '', '{}', occurred_at, recorded_at, hash
			FROM entries WHERE event_key = 'job-charge:' || ?`},
	}
	for _, statement := range statements[words[0]] {
		args := []any{words[1]}
		if _, err := d.ExecContext(ctx, statement, args[:strings.Count(statement, "?")]...); err != nil {
			return err
		}
	}
	if statements[words[0]] == nil {
		return fmt.Errorf("unknown request %q", words[0])
	}
	return nil
}
