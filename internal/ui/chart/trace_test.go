package chart

import (
	"testing"

	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/lab"
)

// Columns have all operations, each once, and are no more than can be seen.
func TestColumnsOf(t *testing.T) {
	lab.Unit(t)
	for _, spread := range []int{0, 1, 50, 89, 90, 91, 200, 470} {
		var h trace.Histogram
		for i := range spread + 1 {
			h[8+i] = trace.Cell{Count: uint64(i%3) + 1, Parts: trace.Split{trace.CPU: 5}}
		}
		all := columnsOf(&h)
		count, cpu := 0.0, 0.0
		for i, c := range all {
			count += c.Count
			cpu += c.Parts[trace.CPU]
			if c.From >= c.To || i > 0 && c.From != all[i-1].To {
				t.Errorf("%d: column %d is %v to %v", spread, i, c.From, c.To)
			}
		}
		if len(all) > columnsMost || uint64(count) != h.Count() || cpu != 5*float64(spread+1) {
			t.Errorf("%d: %d columns with %v operations, %v ns; want %d", spread, len(all), count, cpu, h.Count())
		}
	}
	if got := columnsOf(&trace.Histogram{}); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
