package prove

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
)

// RowsMost is how many rows are measured by default.
const RowsMost = 6

// rowMost bounds how long a row is measured, including the part that is left out.
const rowMost = 4 * time.Second

// ranks order rows by how much they tell, the most first.
var ranks = []struct {
	path load.Path
	key  limit.Key
}{
	{load.Buffered, limit.WBPS}, {load.Direct, limit.WBPS}, {load.Direct, limit.RBPS}, {load.Sync, limit.WBPS},
	{load.Direct, limit.WIOPS}, {load.Direct, limit.RIOPS}, {load.Mapped, limit.WBPS}, {load.Buffered, limit.RBPS}, {load.Mapped, limit.RBPS},
}

func (t Test) rank() int {
	for i, r := range ranks {
		if r.path == t.Path && r.key == t.Key {
			return i
		}
	}
	return len(ranks)
}

// Choose keeps so many rows of several places as tell the most, of each place in turn, and
// says how many it leaves out. The order of each place's rows stays.
func Choose(all [][]Test, most int) (kept [][]Test, left int) {
	type row struct{ place, index, turn int }
	var rows []row
	for i, tests := range all {
		order := make([]int, len(tests))
		for j := range order {
			order[j] = j
		}
		slices.SortStableFunc(order, func(a, b int) int { return tests[a].rank() - tests[b].rank() })
		for turn, j := range order {
			rows = append(rows, row{i, j, turn})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.turn - b.turn })
	left = max(0, len(rows)-most)
	rows = rows[:len(rows)-left]
	kept = make([][]Test, len(all))
	for i, tests := range all {
		for j, t := range tests {
			if slices.ContainsFunc(rows, func(r row) bool { return r.place == i && r.index == j }) {
				kept[i] = append(kept[i], t)
			}
		}
	}
	return kept, left
}

// Brief cuts rows so that none takes longer than a person waits for one.
func Brief(tests []Test) []Test {
	tests = slices.Clone(tests)
	for i := range tests {
		tests[i].For = min(tests[i].For, rowMost-tests[i].Warm)
	}
	return tests
}
