package text

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/lab"
)

func TestLatencyOnATerminal(t *testing.T) {
	lab.Unit(t)
	text := latencyCharts(apitest.Latency())
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > columnsOfCharts {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"○ no memory limit   ● memory 1 GiB   ◆ direct, memory 1 GiB", "memory 1 GiB: share of its writes' time over 2.0 s",
		"  page cache, CPU   " + strings.Repeat("▄", 54) + "  50 %", "  memcg reclaim     " + strings.Repeat("▄", 54) + "  50 %", "62.5 MiB"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
