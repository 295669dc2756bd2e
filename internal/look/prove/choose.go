package prove

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
)

// RowsMost is how many rows are measured by default; more only if each tries a limit of its own.
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

// Choose keeps so many rows of several places as tell the most, of each place in turn, and says how
// many it leaves out. First it keeps one row for each limit, and more than so many if those take no
// longer than matrixMost. The order of each place's rows stays.
func Choose(all [][]Test, most int) (kept [][]Test, left int) {
	rows := ordered(all)
	kept = make([][]Test, len(all))
	n, took := 0, time.Duration(0)
	for _, r := range rows {
		if took += all[r.place][r.index].least(); n >= most && (!r.first || took > matrixMost) {
			break
		}
		n++
	}
	for i, tests := range all {
		for j, t := range tests {
			if slices.ContainsFunc(rows[:n], func(r chosen) bool { return r.place == i && r.index == j }) {
				kept[i] = append(kept[i], t)
			}
		}
	}
	return kept, len(rows) - n
}

// A chosen row is one of several places. turn is its rank among the rows of its place, and first
// that it tells the most of those that try its limit.
type chosen struct {
	place, index, turn int
	first              bool
}

// ordered lists rows in the order in which they are kept.
func ordered(all [][]Test) (rows []chosen) {
	for i, tests := range all {
		order := make([]int, len(tests))
		for j := range order {
			order[j] = j
		}
		slices.SortStableFunc(order, func(a, b int) int { return tests[a].rank() - tests[b].rank() })
		tried := make(map[limit.Key]bool)
		for turn, j := range order {
			rows = append(rows, chosen{i, j, turn, !tried[tests[j].Key]})
			tried[tests[j].Key] = true
		}
	}
	slices.SortStableFunc(rows, func(a, b chosen) int {
		if a.first != b.first {
			if a.first {
				return -1
			}
			return 1
		}
		return a.turn - b.turn
	})
	return rows
}

// Brief cuts rows so that none takes longer than a person waits for one.
func Brief(tests []Test) []Test {
	tests = slices.Clone(tests)
	for i := range tests {
		tests[i].For = min(tests[i].For, rowMost-tests[i].Warm)
	}
	return tests
}
