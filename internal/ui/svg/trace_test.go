package svg

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/plot"
	"github.com/weir-io/weir/lab"
)

func TestDrawTrace(t *testing.T) {
	lab.Unit(t)
	var s trace.Snapshot
	// 100 writes of 1 ms on the processor, and one of 1 s at the device.
	h := &s.Ops[trace.Write].Histogram
	fast, slow := bucketAt(t, 1_000_000), bucketAt(t, 1_000_000_000)
	h[fast] = trace.Cell{Count: 100, Parts: trace.Split{trace.CPU: 1e8}}
	h[slow] = trace.Cell{Count: 1, Parts: trace.Split{trace.DeviceTime: 1e9}}
	s.Ops[trace.Write].Most = 1e9
	traced := trace.Traced{Target: "cgroup:/<x>", Snapshot: s, Report: s.Report(&trace.Snapshot{}, []trace.Kind{trace.Write})}
	path := filepath.Join(t.TempDir(), "t.svg")
	if err := Trace(path, traced); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cgroup:/&lt;x&gt;", "write, 101 calls by latency", ">calls</text>", `fill="` + plot.PartColour(int(trace.DeviceTime)) + `"`, "max 1.0 s", "above p50", ">device<", ">page cache, CPU<", ">91 %<", ">100 %<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%q is missing in %s", want, svg)
		}
	}
	if err := Trace(path, trace.Traced{}); err != nil {
		t.Error(err)
	}
}

func bucketAt(t *testing.T, ns int) int {
	t.Helper()
	for i := range len(trace.Histogram{}) {
		if from, to := trace.Bounds(i); int(from) <= ns && ns < int(to) {
			return i
		}
	}
	t.Fatalf("no bucket has %d ns", ns)
	return 0
}
