package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A quantile is that of the sorted times, and at most 1 % more.
func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, most := range []float64{1, 200, 1e4, 1e9, 1e13} {
		var h histogram
		var all []uint64
		for range 5000 {
			ns := uint64(most * math.Pow(random.Float64(), 3))
			h.add(int64(ns))
			all = append(all, ns)
		}
		slices.Sort(all)
		for _, share := range []float64{0, .001, .5, .99, 1} {
			exact := all[max(0, int(math.Ceil(share*float64(len(all))))-1)]
			if got := h.quantile(share); got < exact || got > exact+exact/100 {
				t.Errorf("up to %.0f ns: %.3f is %d, want %d", most, share, got, exact)
			}
		}
	}
	var none histogram
	if got := none.quantile(.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}

func TestBuckets(t *testing.T) {
	for bucket := range histogramBuckets {
		end := endOf(bucket)
		if bucketOf(end) != bucket || end != math.MaxUint64 && bucketOf(end+1) != bucket+1 {
			t.Fatalf("bucket %d ends at %d, which is in %d; the next is in %d", bucket, end, bucketOf(end), bucketOf(end+1))
		}
	}
}
