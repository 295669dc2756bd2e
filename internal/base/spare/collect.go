package spare

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// smallHeap is how large a heap is small: then one that is four times as large is no larger than that of a program with
	// thousands of groups.
	smallHeap = 3 << 20
	// seldomPercent is how much a small heap grows before Go collects it. Each time all threads wait for each other, on a busy
	// machine for milliseconds. With 1 MB in use and less percent that is ten times a second.
	seldomPercent = 300
	// collectLook is how often the size of the heap is looked at.
	collectLook = 10 * time.Second
)

// Collect has a large heap collected when it has grown by so many percent, and a small one seldom, until the context ends.
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

// percentOf is the percentage of a heap, which was now before. One that is about as large as a small one keeps its own: each
// change has all threads wait.
func percentOf(live uint64, now, percent int) int {
	switch {
	case live < smallHeap*3/4, live < smallHeap && now == seldomPercent:
		return seldomPercent
	}
	return percent
}

// live is what the last collection has left of the heap, in bytes.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
