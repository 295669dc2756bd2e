package escape

import "time"

// Owed is what a group owes a pacer that has one bucket for it, which fills with the limit:
// what the kernel has charged to the group, and held, and what escaped it. What is charged
// takes no more than the bucket gets in the same time, so that a group of which nothing
// escapes never owes anything; what escapes counts once it is more than a threshold, and then
// all of it.
type Owed struct {
	rate      float64 // bytes a second
	threshold float64

	at      time.Duration
	charged float64       // not taken yet
	waiting float64       // escaped, below the threshold
	until   time.Duration // until when all that escapes counts at once
}

const (
	// chargedMost is how much of what was charged is kept, as time of the limit: the kernel
	// lets requests go in bursts of a slice of 100 ms, and a little more than its rate.
	chargedMost = 300 * time.Millisecond
	// activeFor is how long after an escape that counted each one counts.
	activeFor = time.Second
)

// NewOwed returns what a group owes that has just begun.
func NewOwed(bytesPerSec, threshold uint64, now time.Duration) *Owed {
	return &Owed{rate: float64(bytesPerSec), threshold: float64(threshold), at: now, until: -1}
}

// Take returns what is owed of what has escaped since the last time, and what the bucket is
// to give for what was charged.
//
// Where it is not to be believed that anything has escaped, nothing of it is owed yet.
func (o *Owed) Take(escaped, charged float64, now time.Duration, believed func() bool) (owed, given float64) {
	fill := o.rate * (now - o.at).Seconds()
	o.at = now
	o.charged += charged
	given = min(o.charged, fill)
	o.charged = min(o.charged-given, o.rate*chargedMost.Seconds())
	o.waiting += escaped
	if o.waiting < o.threshold && now > o.until || o.waiting > o.threshold/4 && !believed() {
		o.waiting = max(0, o.waiting) // no credit
		return 0, given
	}
	if o.waiting != 0 {
		o.until = now + activeFor
	}
	owed, o.waiting = o.waiting, 0
	return owed, given
}

// Active reports whether something has escaped lately, so that it is paced.
func (o *Owed) Active(now time.Duration) bool { return now <= o.until }
