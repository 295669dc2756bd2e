// Package near suggests existing names for an unknown one.
package near

import (
	"slices"
	"strings"
)

// Names returns the names that are closest to what was typed, in order: two single letters
// away at most (one for each two letters that were typed); if there is none, those that
// begin with it. Capital letters count as small ones.
func Names(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	least := min(2, len(typed)/2) + 1
	var near, begun []string
	for _, n := range names {
		if len(typed) > 1 && strings.HasPrefix(strings.ToLower(n), typed) {
			begun = append(begun, n)
		}
		switch far := Distance(typed, strings.ToLower(n)); {
		case far < least:
			least, near = far, []string{n}
		case far == least && len(near) > 0:
			near = append(near, n)
		}
	}
	if len(near) == 0 {
		near = begun
	}
	slices.Sort(near)
	return near
}

// Distance is how many bytes have to be changed, added, left out or swapped with their
// neighbour to get from one name to the other.
func Distance(a, b string) int {
	var before []int // the row before the last one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
