package prove

import (
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
