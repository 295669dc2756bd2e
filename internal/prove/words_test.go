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
		"only 40 % of the limit was reached, and for 30 % of the time no processor was to be had": {
			Judgement{Reason: Busy, Ratio: 0.4, Done: 8e6, Most: 22e6}, Evidence{Starved: 0.3}},
		"30.0 MB got through in 2.0 s, and a held group does at most 22.0 MB; but for 1.5 s on end no processor was to be had, and what waits for the throttle catches up with that": {
			Judgement{Reason: Busy, Done: 30e6, Most: 22e6, Over: 2 * time.Second}, Evidence{Late: 1500 * time.Millisecond}},
		"the disk did as good as nothing meanwhile, and 5.00 MB wait in memory for it; measure longer: --for 8s": {
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
