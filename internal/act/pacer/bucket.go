package pacer

import "time"

// A bucket is a token bucket of bytes, in absolute time. Bytes written too early are repaid
// exactly later; lost time is made up for only up to the bucket's depth.
type bucket struct {
	rate  float64       // bytes a second
	depth time.Duration // the most that it holds, as time of the rate
	level float64       // less than 0: a debt
	at    time.Duration
}

// How much of a limit a bucket holds. For processes that write all the time, this is how late
// the pacer may be without costing them any of their rate. For others, it is how much they may
// write at once.
const (
	depthBusy  = 300 * time.Millisecond
	depthQuiet = 100 * time.Millisecond
)

func newBucket(rate uint64, now time.Duration) bucket {
	return bucket{rate: float64(rate), depth: depthQuiet, at: now}
}

// fill adds the bytes that the passed time allows.
func (b *bucket) fill(now time.Duration) {
	b.level = min(b.rate*b.depth.Seconds(), b.level+b.rate*(now-b.at).Seconds())
	b.at = now
}

// take removes bytes, even more than the bucket holds.
func (b *bucket) take(bytes float64) { b.level -= bytes }

// share takes bytes that others hold to the same rate. It takes no more than there is, unless
// something is not paid for yet: nobody is stopped for them alone. It returns the rest.
func (b *bucket) share(bytes float64) (rest float64) {
	taken := bytes
	if b.level >= 0 {
		taken = min(bytes, b.level)
	}
	b.level -= taken
	return bytes - taken
}

// until is how long it takes for the bucket to hold so much.
func (b *bucket) until(level float64) time.Duration {
	return time.Duration((level - b.level) / b.rate * float64(time.Second))
}
