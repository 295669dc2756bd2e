package spare

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// growthLeast is how many bytes a heap may grow by before Go collects it, however small it is. Each collection takes
	// milliseconds of a processor, and all threads wait for each other. With 4 MB in use and 30 percent, a node on which ten
	// pods start in a second had ten of them in a second, which took as long as all else.
	growthLeast = 6 << 20
	// percentMost bounds the percentage of a small heap.
	percentMost = 300
	// collectLook is how often the size of the heap is looked at.
	collectLook = 10 * time.Second
)

// Collect has a large heap collected when it has grown by so many percent, and a small one by growthLeast, until the context
// ends.
func Collect(ctx context.Context, percent int) {
	now := 0
	for {
		if next := percentOf(live(), now, percent); next != now {
			now = next
			debug.SetGCPercent(next)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(collectLook):
		}
	}
}

// percentOf is the percentage of a heap, which was now before. One whose size has not changed much keeps its own: each
// change has all threads wait.
func percentOf(live uint64, now, percent int) int {
	next := int(min(max(100*growthLeast/max(live, 1), uint64(percent)), percentMost))
	if next == percent {
		return next
	}
	if 2*now <= 3*next && 2*next <= 3*now {
		return now
	}
	return next
}

// live is what the last collection has left of the heap, in bytes.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
