package pacer

import "time"

// A bucket is a token bucket of bytes, in absolute time: what is early is paid for later
// to the byte, and what is late is not made up for beyond its depth.
type bucket struct {
	rate  float64       // bytes a second
	depth time.Duration // the most that it holds, as time of the rate
	level float64       // less than 0: a debt
	at    time.Duration
}

// How much of a limit a bucket holds: for processes that write all the time, how late the
// pacer may be without their losing any of their rate; for others, what they may write at
// once.
const (
	depthBusy  = 300 * time.Millisecond
	depthQuiet = 100 * time.Millisecond
)

func newBucket(rate uint64, now time.Duration) bucket {
	return bucket{rate: float64(rate), depth: depthQuiet, at: now}
}

// fill adds what time has brought.
func (b *bucket) fill(now time.Duration) {
	b.level = min(b.rate*b.depth.Seconds(), b.level+b.rate*(now-b.at).Seconds())
	b.at = now
}

// take takes bytes, also more than there are.
func (b *bucket) take(bytes float64) { b.level -= bytes }

// until is how long it takes for the bucket to hold so much.
func (b *bucket) until(level float64) time.Duration {
	return time.Duration((level - b.level) / b.rate * float64(time.Second))
}
