package prove

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
)

func TestChoose(t *testing.T) {
	one := bothWays(t)
	kept, left := Choose([][]Test{one, one}, RowsMost)
	if left != 2*len(one)-RowsMost || len(kept[0]) != 3 || len(kept[1]) != 3 {
		t.Fatalf("%v, %d left", kept, left)
	}
	for _, tests := range kept {
		if tests[0].Path != load.Direct || tests[1].Path != load.Buffered || tests[0].Key.IsRead() || tests[1].Key.IsRead() || !tests[2].Key.IsRead() {
			t.Errorf("%v", tests)
		}
	}
	if kept, left := Choose([][]Test{one[:4]}, RowsMost); left != 0 || len(kept[0]) != 4 {
		t.Errorf("%v, %d left", kept, left)
	}
}

// A row of each limit comes first, and is kept beside six others' if there is time for it.
func TestChooseKeepsARowOfEachLimit(t *testing.T) {
	all := limit.None
	for _, k := range limit.Keys {
		all = all.With(k, limit.PerSecond(2_000_000))
	}
	one, _ := Plan(options(all.With(limit.WIOPS, limit.PerSecond(400)).With(limit.RIOPS, limit.PerSecond(400))))
	places := func(n int) (all [][]Test) {
		for range n {
			all = append(all, one)
		}
		return all
	}
	kept, left := Choose(places(2), RowsMost)
	for _, tests := range kept {
		if keys := keysOf(tests); len(keys) != len(limit.Keys) || tests[0].Path != load.Buffered {
			t.Errorf("%s of a place with %d limits", names(tests), len(limit.Keys))
		}
		for _, k := range limit.Keys {
			if !slices.Contains(keysOf(tests), k) {
				t.Errorf("no row tries %s: %s", k, names(tests))
			}
		}
	}
	if left != 2*len(one)-2*len(limit.Keys) {
		t.Errorf("%d rows are left of %d", left, 2*len(one))
	}
	kept, left = Choose(places(5), RowsMost)
	took, rows := time.Duration(0), 0
	for _, tests := range kept {
		took, rows = took+Duration(Shorten(tests, 0)), rows+len(tests)
	}
	if took > matrixMost || rows <= RowsMost || rows+left != 5*len(one) {
		t.Errorf("of five places: %d rows in %s, %d left", rows, took, left)
	}
}

func TestBrief(t *testing.T) {
	for _, one := range Brief(bothWays(t)) {
		if one.Warm+one.For > rowMost || one.For < 2*time.Second {
			t.Errorf("%s: %s and %s", one, one.Warm, one.For)
		}
	}
}

// bothWays are the rows of a limit on bytes in both directions.
func bothWays(t *testing.T) []Test {
	t.Helper()
	tests, _ := Plan(Options{Limit: limit.Limit{WBPS: limit.PerSecond(10e6), RBPS: limit.PerSecond(10e6)}, Paths: Paths, For: 3 * time.Second, Logical: 512, Room: 1 << 30})
	if len(tests) != 7 {
		t.Fatalf("%v", tests)
	}
	return tests
}
