package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"jobledger/ledger"
)

// TestRandomBooksOfBalances imports jobs in every state that books can have them in. Whatever the
// history, the figures of the books come out, and the audit holds.
func TestRandomBooksOfBalances(t *testing.T) {
	for seed := range uint64(30) {
		eachWorkbench(t, func(b *workbench) {
			r := rand.New(rand.NewPCG(seed, 1))
			available := r.IntN(50)
			rows, held, used := []string{balanceRow(available)}, 0, 0
			for i := range 1 + r.IntN(20) {
				id, cost, mode := fmt.Sprint("j", i), 1+r.IntN(20), []string{"hold", "charge"}[r.IntN(2)]
				job := jobRow(id, cost, "failed", `"mode":"`+mode+`"`,
					fmt.Sprintf(`"created_at":"2026-01-%02dT00:00:00Z"`, 1+r.IntN(28)))
				left := cost
				switch r.IntN(4) {
				case 0:
					job = strings.Replace(job, "failed", "pending", 1)
				case 1:
					left = r.IntN(cost + 1)
					job = strings.Replace(job, "failed", "completed", 1) + fmt.Sprintf(`,"settled_cost":%d`, left)
					mode = "charge" // it is used in the end
				case 2:
					left = 0
					rows = append(rows, refundRow(id, id, cost))
				case 3:
					if part := r.IntN(cost); part > 0 && mode == "charge" {
						left -= part
						rows = append(rows, refundRow(id, id, part))
					}
				}
				if mode == "hold" {
					held += left
				} else {
					used += left
				}
				rows = append(rows, job)
			}
			r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			b.imports(rows...)
			a, err := b.Balance(b.Context(), ledger.BalanceParams{Owner: "demo"})
			b.ok(err)
			if got := fmt.Sprint(a.Available, a.Held, a.Used); got != fmt.Sprint(available, held, used) {
				b.Fatalf("seed %d: %s, want %d %d %d of\n%s", seed, got, available, held, used, strings.Join(rows, "\n"))
			}
		})
	}
}

// TestRandomBooksOfLots does the same with lots, each of which must come out with its own figures, in
// whatever order the jobs are.
func TestRandomBooksOfLots(t *testing.T) {
	type lot struct{ available, held, used, expired int }
	for seed := range uint64(30) {
		eachWorkbench(t, func(b *workbench) {
			r := rand.New(rand.NewPCG(seed, 2))
			lots, all := make([]lot, 1+r.IntN(4)), 0
			for i := range lots {
				lots[i].available = 1 + r.IntN(30)
				all += lots[i].available
			}
			var rows []string
			for i := range r.IntN(15) {
				id, cost, l := fmt.Sprint("j", i), 1+r.IntN(all), &lots[r.IntN(len(lots))]
				kind := r.IntN(4)
				if kind > 0 {
					if cost = min(cost, l.available); cost == 0 {
						continue
					}
					l.available -= cost
				}
				switch kind {
				case 0:
					rows = append(rows, jobRow(id, cost, "failed"), refundRow(id, id, cost))
				case 1:
					rows = append(rows, jobRow(id, cost, "completed"))
					l.used += cost
				case 2:
					rows = append(rows, jobRow(id, cost, "pending"))
					l.held += cost
				case 3:
					rows = append(rows, jobRow(id, cost, "timed_out"))
					l.held += cost
				}
			}
			r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			var want []string
			for i, l := range lots {
				row := fmt.Sprintf(`"priority":%d`, i)
				if more := r.IntN(5); more > 0 { // that no job explains
					l.used, l.held = l.used+more, l.held+more
				}
				if r.IntN(2) == 0 {
					l.available, l.expired = 0, l.available
					row += `,"expires_at":"2029-12-31T00:00:00Z"`
				}
				rows = append(rows, lotRow(fmt.Sprint("lot", i), row+fmt.Sprintf(
					`,"available":%d,"held":%d,"used":%d,"expired":%d`, l.available, l.held, l.used, l.expired)))
				want = append(want, fmt.Sprint(l.available, l.held, l.used, l.expired))
			}
			b.imports(rows...)
			b.lots(want...)
		})
	}
}
