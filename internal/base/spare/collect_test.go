package spare

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// A small heap is collected seldom, a large one as asked, and one between stays as it was.
func TestPercentOf(t *testing.T) {
	const large = 30
	for _, c := range []struct {
		live      uint64
		now, want int
	}{
		{0, 0, percentMost}, {1 << 20, 0, percentMost}, {1 << 20, large, percentMost}, {4 << 20, 0, 150}, {5 << 20, 150, 150}, {8 << 20, 150, 75}, {3 << 20, 150, 150},
		{2 << 20, 150, percentMost}, {20 << 20, 0, large}, {100 << 20, 75, large}, {19 << 20, large, large},
	} {
		if got := percentOf(c.live, c.now, large); got != c.want {
			t.Errorf("%d bytes, %d %% before: %d %%, want %d", c.live, c.now, got, c.want)
		}
	}
	// A small heap takes little more than a large one that is collected more often.
	for live := uint64(1 << 16); live < 40<<20; live += 1 << 16 {
		for _, now := range []int{0, large, 100, percentMost} {
			if most := live * uint64(percentOf(live, now, large)) / 100; most > max(growthLeast*3/2, live*large*3/200) {
				t.Errorf("a heap of %d bytes may grow by %d", live, most)
			}
		}
	}
}

// The percentage is the program's.
func TestCollect(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		go Collect(ctx, percentMost)
		synctest.Wait()
		stop()
	})
	if got := debug.SetGCPercent(100); got != percentMost {
		t.Errorf("%d %%, want %d", got, percentMost)
	}
}
