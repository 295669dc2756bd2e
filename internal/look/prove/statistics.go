package prove

import (
	"math"
	"time"
)

const (
	// batch is the length of a batch: five of the throttle's slices, so that batches
	// say little about each other.
	batch = 500 * time.Millisecond
	// spreadOver is the window of Spread, and spreadStep how far it moves each time.
	spreadOver = time.Second
	spreadStep = 100 * time.Millisecond
)

// Spread returns the lowest and the highest rate over any second of a window; over
// all of it if that is shorter.
func Spread(s Series, from, to time.Duration) (low, high float64) {
	over := min(spreadOver, to-from)
	if over <= 0 {
		return 0, 0
	}
	low = math.Inf(1)
	for a := from; a+over <= to; a += spreadStep {
		rate := s.Between(a, a+over) / over.Seconds()
		low, high = min(low, rate), max(high, rate)
	}
	return low, high
}

// Confidence returns the half width of the 95 % confidence interval of a window's
// rate per second: batch means with Student's t. It is infinite if the window holds
// fewer than two batches.
func Confidence(s Series, from, to time.Duration) float64 {
	n := int((to - from) / batch)
	if n < 2 {
		return math.Inf(1)
	}
	length := (to - from) / time.Duration(n)
	var sum, squares float64
	for i := range n {
		at := from + time.Duration(i)*length
		rate := s.Between(at, at+length) / length.Seconds()
		sum += rate
		squares += rate * rate
	}
	mean := sum / float64(n)
	variance := max(0, (squares-float64(n)*mean*mean)/float64(n-1))
	return student(n-1) * math.Sqrt(variance/float64(n))
}

// student is the 97.5 % quantile of Student's t.
func student(degrees int) float64 {
	table := [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
		2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}
	if degrees <= len(table) {
		return table[degrees-1]
	}
	return 1.96 + 2.4/float64(degrees) // within 0.1 % from 30 degrees on
}
