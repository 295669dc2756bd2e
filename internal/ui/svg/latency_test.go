package svg

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/plot"
	"github.com/weir-io/weir/lab"
)

func TestLatencyIsDrawn(t *testing.T) {
	lab.Unit(t)
	r := apitest.Latency()
	r.Runs[2].Splits = nil // not traced
	path := filepath.Join(t.TempDir(), "l.svg")
	if err := Latency(path, r); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	for want, n := range map[string]int{"p99 of a write": 1, "no memory limit: where the time of writes went": 1, "memory 1 GiB: where the time of writes went": 1,
		plot.PartColour(int(trace.MemcgReclaim)): 2, plot.PartColour(int(trace.Frozen)): 0, ">100 %<": 2} { // a colour: its area, and its mark
		if got := strings.Count(s, want); got != n {
			t.Errorf("%q is there %d times, want %d", want, got, n)
		}
	}
}
