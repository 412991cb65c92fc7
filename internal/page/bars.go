package page

import "jobledger/ledger"

// barWidth is how wide a bar is in its own units; it is drawn as wide as there is room.
const barWidth = 1000

// barPart is a piece of a bar.
type barPart struct {
	Name string
	X, W int
}

// balanceBar shows where an owner's credits are. Of what is not nothing, at least a little is seen.
func balanceBar(b ledger.Balance) []barPart {
	return bar([]string{"available", "held", "used", "expired", "scheduled"},
		[]int64{b.Available, b.Held, b.Used, b.Expired, b.Scheduled})
}

// bar divides a bar among amounts.
func bar(names []string, amounts []int64) (parts []barPart) {
	const least = 6
	var sum float64
	shown := 0
	for _, n := range amounts {
		sum += float64(n)
		if n > 0 {
			shown++
		}
	}
	free := float64(barWidth - least*shown)
	x := 0
	for i, n := range amounts {
		if n <= 0 {
			continue
		}
		w := least + int(free*float64(n)/sum)
		if shown--; shown == 0 {
			w = barWidth - x
		}
		parts = append(parts, barPart{names[i], x, w})
		x += w
	}
	return parts
}
