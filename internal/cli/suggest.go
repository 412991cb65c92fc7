package cli

import "strings"

// didYouMean offers the one known word that is near to a wrong one, or nothing.
func didYouMean(wrong string, known []string) string {
	best, bound := "", nearMax(wrong)+1
	for _, word := range known {
		if d := distance(wrong, word); d < bound {
			best, bound = word, d
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// nearMax is how many slips of a finger a suggestion may be away: fewer in a short word.
func nearMax(word string) int { return min(2, len(strings.TrimLeft(word, "-"))/3) }

// distance counts the letters to insert, drop, replace or swap with a neighbour between two words.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
