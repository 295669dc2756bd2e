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
	// oftenMost is how many collections there may be until the next look: with more, the heap may grow by busyGrowth
	// before the next one. To collect a heap of 5 MB takes some milliseconds of a processor, however little was thrown away.
	oftenMost  = 20
	busyGrowth = 8 << 20
	// collectLook is how often the size of the heap is looked at.
	collectLook = 10 * time.Second
)

// Collect has a large heap collected when it has grown by so many percent, and a small one seldom, until the context ends.
// While much is thrown away, it has it collected less often.
func Collect(ctx context.Context, percent int) {
	now, before := 0, heap{}
	for {
		its := read()
		if next := percentOf(its.live, its.cycles-before.cycles, now, percent); next != now {
			now = next
			debug.SetGCPercent(next)
		}
		before = its
		select {
		case <-ctx.Done():
			return
		case <-time.After(collectLook):
		}
	}
}

// percentOf is the percentage of a heap, which was now before, and was collected so many times since the last look. One that
// is about as large as a small one keeps its own: each change has all threads wait.
func percentOf(live, cycles uint64, now, percent int) int {
	if live < smallHeap*3/4 || live < smallHeap && now == seldomPercent {
		return seldomPercent
	}
	if cycles*uint64(max(now, percent))/uint64(percent) <= oftenMost { // with percent there were no more
		return percent
	}
	busy := min(max(int(100*busyGrowth/live), percent), seldomPercent)
	if now > percent && now < 2*busy && busy < 2*now {
		return now
	}
	return busy
}

// A heap is what was left of it by the last collection, in bytes, and how often it was collected.
type heap struct{ live, cycles uint64 }

func read() heap {
	all := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(all)
	return heap{all[0].Value.Uint64(), all[1].Value.Uint64()}
}
