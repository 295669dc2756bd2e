package trace

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBucketHoldsItsLatency(t *testing.T) {
	const longest = 1<<62 - 1 // ns; 146 years
	check := func(ns uint64) {
		bucket := bucketOf(ns)
		if bucket < 0 || bucket >= Buckets {
			t.Fatalf("%d ns are in bucket %d of %d", ns, bucket, Buckets)
		}
		from, to := bounds(bucket)
		if ns < from || ns >= to {
			t.Fatalf("%d ns are in bucket %d, which is from %d to %d", ns, bucket, from, to)
		}
		if width := to - from; ns >= 8 && width > from/8 {
			t.Fatalf("bucket %d is %d wide, more than an eighth of %d", bucket, width, from)
		}
	}
	for shift := range 62 {
		for _, near := range []uint64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
			check(near)
		}
	}
	check(longest)
	for range 100_000 {
		check(rand.Uint64N(longest) >> rand.IntN(62))
	}
}

// A histogram's quantile is within a bucket of the exact one.
func TestQuantiles(t *testing.T) {
	for range 50 {
		var h Histogram
		all := make([]uint64, 1+rand.IntN(3000))
		for i := range all {
			all[i] = uint64(1000 + 200_000*rand.ExpFloat64())
			h[bucketOf(all[i])].Count++
		}
		slices.Sort(all)
		if h.Count() != uint64(len(all)) {
			t.Fatalf("%d are counted, %d were put in", h.Count(), len(all))
		}
		before := time.Duration(0)
		for _, q := range []float64{0, .25, .5, .9, .99, .999, 1} {
			exact := all[max(int(q*float64(len(all))+0.999999)-1, 0)]
			from, to := bounds(bucketOf(exact))
			got := h.Quantile(q)
			if uint64(got) < from || uint64(got) > to {
				t.Fatalf("quantile %v of %d is %d, the exact one %d (%d to %d)", q, len(all), got, exact, from, to)
			}
			if got < before {
				t.Fatalf("quantile %v is %s, a lesser one %s", q, got, before)
			}
			before = got
		}
	}
	if q := new(Histogram).Quantile(0.5); q != 0 {
		t.Errorf("of nothing: %s", q)
	}
}

// histogram is made of cells by latency.
func histogram(cells map[time.Duration]Cell) *Histogram {
	h := &Histogram{}
	for took, c := range cells {
		h[bucketOf(uint64(took))] = c
	}
	return h
}

func TestAbove(t *testing.T) {
	// 90 that are usual: 8 µs of CPU and 2 of the run queue each; 10 slow ones.
	usual := Cell{Count: 90, Parts: Split{CPU: 90 * 8000, RunQueue: 90 * 2000}}
	slow := Cell{Count: 10, Parts: Split{CPU: 10 * 9000, RunQueue: 10 * 1000, MemcgReclaim: 10 * 90_000}}
	h := histogram(map[time.Duration]Cell{10 * time.Microsecond: usual, 100 * time.Microsecond: slow})
	if got, want := h.Above(), (Split{CPU: 10 * 1000, MemcgReclaim: 10 * 90_000}); got != want {
		t.Errorf("above the median: %v, want %v", got, want)
	}
	if got, want := h.Split(), usual.Parts.Plus(slow.Parts); got != want {
		t.Errorf("all: %v, want %v", got, want)
	}
	alike := histogram(map[time.Duration]Cell{10 * time.Microsecond: usual})
	for name, h := range map[string]*Histogram{"all alike": alike, "nothing": {}} {
		if got := h.Above(); got != (Split{}) {
			t.Errorf("%s: above the median is %v", name, got)
		}
	}
}

func TestMinus(t *testing.T) {
	before := histogram(map[time.Duration]Cell{10: {2, Split{CPU: 20}}, 20: {1, Split{CPU: 20}}})
	after := histogram(map[time.Duration]Cell{10: {5, Split{CPU: 45, Other: 5}}, 20: {1, Split{CPU: 20}}, 30: {1, Split{Frozen: 30}}})
	want := histogram(map[time.Duration]Cell{10: {3, Split{CPU: 25, Other: 5}}, 30: {1, Split{Frozen: 30}}})
	if got := after.Minus(before); got != *want {
		t.Errorf("in between: %d operations, %v", got.Count(), got.Split())
	}
	// Processors are read one after the other: a count never goes below 0.
	if got := before.Minus(after); got.Count() != 0 {
		t.Errorf("backwards: %d operations", got.Count())
	}
}

// bucketOf is the bucket of a latency.
func bucketOf(ns uint64) int {
	if ns < 8 {
		return int(ns)
	}
	octave := bits.Len64(ns) - 1
	return (octave-2)<<3 | int(ns>>(octave-3)&7)
}

func TestBounds(t *testing.T) {
	const centuries = 480 // the last bucket that a latency can be in: 2⁶² ns
	for bucket := range centuries {
		from, to := Bounds(bucket)
		if next, _ := Bounds(bucket + 1); from >= to || next != to {
			t.Errorf("bucket %d is %d to %d, the next begins at %d", bucket, from, to, next)
		}
		if got := bucketOf(uint64(from)); got != bucket {
			t.Errorf("%d ns are in bucket %d, not %d", from, got, bucket)
		}
	}
}
