package load

import (
	"math"
	"math/bits"
)

// A histogram counts times in nanoseconds. Up to 256 ns each has a bucket of its own; above, each
// octave has 128, so that a bucket is less than 1 % wide.
type histogram struct {
	counts [histogramBuckets]uint64
	all    uint64
}

const (
	subBits          = 7
	histogramBuckets = (64 - subBits + 1) << subBits
)

// bucketOf is the bucket of a time.
func bucketOf(ns uint64) int {
	octave := max(0, bits.Len64(ns)-subBits-1)
	return octave<<subBits + int(ns>>octave)
}

// endOf is the longest time in a bucket.
func endOf(bucket int) uint64 {
	octave := max(0, bucket>>subBits-1)
	return (uint64(bucket-octave<<subBits)+1)<<octave - 1
}

// add counts a time; one that is less than 0 is 0.
func (h *histogram) add(ns int64) {
	h.counts[bucketOf(uint64(max(0, ns)))]++
	h.all++
}

// quantile is the end of the bucket of the time that a share of the times (0 to 1) does not exceed;
// 0 without any.
func (h *histogram) quantile(share float64) uint64 {
	rank := max(1, uint64(math.Ceil(share*float64(h.all))))
	for i, n := range h.counts {
		if n >= rank {
			return endOf(i)
		}
		rank -= n
	}
	return 0
}
