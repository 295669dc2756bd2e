package demo

import (
	"math"
	"testing"
	"time"
)

// written are samples of a window of 2 s under 10 MB/s.
func written(by func(at time.Duration) float64) (all samples) {
	for at := time.Duration(0); at <= 2*time.Second; at += tickEvery {
		all = append(all, sample{at, uint64(by(at))})
	}
	return all
}

func TestPace(t *testing.T) {
	const request = 8 << 20
	each := time.Duration(request * float64(time.Second) / 10e6)
	for name, c := range map[string]struct {
		by   func(at time.Duration) float64
		want float64
	}{
		"even":    {func(at time.Duration) float64 { return 10e6 * at.Seconds() }, 10e6},
		"twice":   {func(at time.Duration) float64 { return 20e6 * at.Seconds() }, 20e6},
		"nothing": {func(time.Duration) float64 { return 0 }, 0},
		"requests": {func(at time.Duration) float64 {
			return request * math.Floor(1+float64(at-100*time.Millisecond)/float64(each))
		}, 10e6},
		"in pieces of 40 ms": {func(at time.Duration) float64 {
			n, part := math.Modf(1 + float64(at-100*time.Millisecond)/float64(each))
			return request * (n + min(1, part*float64(each)/float64(40*time.Millisecond)))
		}, 10e6},
		"requests, twice too fast": {func(at time.Duration) float64 {
			return request * math.Floor(1+2*float64(at-100*time.Millisecond)/float64(each))
		}, 20e6},
		"one request": {func(at time.Duration) float64 {
			return request * math.Floor(1+float64(at-1500*time.Millisecond)/float64(2*time.Second))
		}, request / 2},
	} {
		got := written(c.by).pace()
		if got.bytesPerSec < 0.97*c.want || got.bytesPerSec > 1.03*c.want || got.over <= 0 {
			t.Errorf("%s: %.0f bytes/s over %s, want %.0f", name, got.bytesPerSec, got.over, c.want)
		}
	}
	if got := (samples{}).pace(); got != (pace{}) {
		t.Errorf("no samples: %+v", got)
	}
}
