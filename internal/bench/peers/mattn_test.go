// Package peers measures what people would use instead of jobledger. It is a module of its own, so that
// nothing of it gets into the product.
package peers

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/mattn/go-sqlite3"
)

// callers settle at the same time.
const callers = 64

// statements are those of a settlement, prepared once; their places are those in settlement.sql.
type statements [10]*sql.Stmt

const (
	version = iota
	claim
	account
	paid
	insertEntry
	updateLot
	insertPosting
	updateBalance
	insertEvent
	insertReport
)

// BenchmarkOneTransactionEach settles the jobs of the file PEERS_FILE, which limit prepared: a transaction
// and a sync for each settlement, on one connection, as a program does that knows SQLite well.
func BenchmarkOneTransactionEach(b *testing.B) {
	pool, err := sql.Open("sqlite3", "file:"+os.Getenv("PEERS_FILE")+
		"?_txlock=immediate&_journal_mode=WAL&_synchronous=FULL&_foreign_keys=1&_busy_timeout=10000"+
		"&_cache_size=-32768")
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	var all statements
	text, err := os.ReadFile("settlement.sql")
	if err != nil {
		b.Fatal(err)
	}
	for i, query := range strings.Split(string(text), "\n--\n") {
		if all[i], err = pool.Prepare(query); err != nil {
			b.Fatalf("%s: %v", query, err)
		}
	}
	first := int(settled.Load())
	b.ResetTimer()
	var wait sync.WaitGroup
	for c := range callers {
		wait.Go(func() {
			for n := first + c; n < first+b.N; n += callers {
				if err := settle(b.Context(), pool, &all, n); err != nil {
					b.Errorf("job %d: %v", n, err)
					return
				}
				settled.Add(1)
			}
		})
	}
	wait.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "settles/s")
}

// settled counts over the rounds of the benchmark, which all use one file.
var settled atomic.Int64

// settle is one settlement: all even jobs completed, the others failed.
func settle(ctx context.Context, pool *sql.DB, all *statements, n int) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := inside(tx, all, n); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

func inside(tx *sql.Tx, all *statements, n int) error {
	const at = 1893456000000000
	job, outcome, kind := fmt.Sprint("job-", n), "completed", "consume"
	if n%2 == 1 {
		outcome, kind = "failed", "release"
	}
	var unused any
	var owner, lot string
	var cost, amount, available, held, used, expired, seq, known int64
	if err := tx.Stmt(all[version]).QueryRow().Scan(&known); err != nil {
		return err
	}
	if err := tx.Stmt(all[claim]).QueryRow(outcome, at, job).
		Scan(&owner, &cost, &unused, &unused, &unused, &unused, &unused, &unused, &unused); err != nil {
		return err
	}
	if err := tx.Stmt(all[account]).QueryRow(owner, at).
		Scan(&unused, &available, &held, &used, &expired, &seq, &unused, &unused, &unused); err != nil {
		return err
	}
	if err := tx.Stmt(all[paid]).QueryRow(job).Scan(&lot, &amount, &unused, &unused, &unused); err != nil {
		return err
	}
	back := amount * int64(n%2)
	kept := amount - back
	entry, hash := fmt.Sprintf("019d0000-0000-7000-8000-%012d", n), make([]byte, 32)
	for _, w := range []struct {
		statement int
		args      []any
	}{
		{insertEntry, []any{entry, kind, job, owner, seq + 1, amount, available + back, held - amount, used + kept,
			expired, at, hash}},
		{updateLot, []any{back, -amount, kept, lot, owner}},
		{insertPosting, []any{entry, lot, amount}},
		{updateBalance, []any{back, -amount, kept, hash, owner, seq}},
		{insertEvent, []any{job, outcome, owner, at}},
		{insertReport, []any{job, outcome, at}},
	} {
		result, err := tx.Stmt(all[w.statement]).Exec(w.args...)
		if err != nil {
			return err
		}
		if rows, err := result.RowsAffected(); err != nil || rows != 1 {
			return fmt.Errorf("statement %d changed %d rows: %w", w.statement, rows, err)
		}
	}
	return nil
}
