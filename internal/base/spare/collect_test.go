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
		live, cycles uint64
		now, want    int
	}{
		{1 << 20, 0, 0, seldomPercent}, {1 << 20, 99, large, seldomPercent}, {2900 << 10, 1, large, large}, {smallHeap - 1, 9, seldomPercent, seldomPercent},
		{smallHeap - 1, 1, large, large}, {smallHeap, 1, seldomPercent, large}, {20 << 20, 0, 0, large},
		{5 << 20, oftenMost, large, large}, {5 << 20, oftenMost + 1, large, 160}, {5 << 20, oftenMost * large / 160, 160, large}, {5 << 20, oftenMost*large/160 + 1, 160, 160},
		{6 << 20, oftenMost, 160, 160}, {12 << 20, oftenMost, 160, 66}, {40 << 20, 99, large, large},
	} {
		if got := percentOf(c.live, c.cycles, c.now, large); got != c.want {
			t.Errorf("%d bytes, collected %d times with %d %%: %d %%, want %d", c.live, c.cycles, c.now, got, c.want)
		}
	}
	// However small the heap was, it takes no more than a large one that is collected more often.
	if most := smallHeap * (100 + seldomPercent) / 100; most > 13<<20 {
		t.Errorf("a small heap may grow to %d bytes", most)
	}
}

// The percentage is the program's.
func TestCollect(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		go Collect(ctx, seldomPercent)
		synctest.Wait()
		stop()
	})
	if got := debug.SetGCPercent(100); got != seldomPercent {
		t.Errorf("%d %%, want %d", got, seldomPercent)
	}
}
