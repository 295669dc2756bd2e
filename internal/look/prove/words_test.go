package prove

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
)

// What a busy machine and waiting writes have to do with a verdict is said in words.
func TestWhyInWords(t *testing.T) {
	for want, c := range map[string]struct {
		j Judgement
		e Evidence
	}{
		"only 40 % of the limit was reached, and no processor was free for 30 % of the time": {
			Judgement{Reason: Busy, Ratio: 0.4, Done: 8e6, Most: 22e6}, Evidence{Starved: 0.3}},
		"30.0 MB got through in 2.0 s, and a held group would do at most 22.0 MB; but no processor was free for 1.5 s at a stretch, and the throttle lets I/O catch up after that": {
			Judgement{Reason: Busy, Done: 30e6, Most: 22e6, Over: 2 * time.Second}, Evidence{Late: 1500 * time.Millisecond}},
		"the disk did almost nothing in that time, and 5.00 MB wait in memory for it; measure longer: 8s": {
			Judgement{Reason: Unwritten}, Evidence{}},
	} {
		r := &run{test: Test{Key: limit.WBPS, For: 2 * time.Second}}
		r.result.Left.Known, r.result.Left.Dirty = true, 5e6
		row := Row{Test: r.test, Judgement: c.j}
		if got := row.why(r, c.e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
