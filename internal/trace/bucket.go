package trace

import "time"

// Bounds returns the latencies of a histogram's bucket by its index: from the first, up to but
// not including the second.
func Bounds(bucket int) (from, to time.Duration) {
	low, high := bounds(bucket)
	return time.Duration(low), time.Duration(high)
}
