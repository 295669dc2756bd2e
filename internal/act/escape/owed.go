package escape

import "time"

// Owed is what a group owes a pacer that has one bucket for it, which fills at the limit. The
// bucket pays for what the kernel charges to the group (and has held), and for what escapes.
// Charged bytes take no more than the bucket gets in the same time, so a group of which nothing
// escapes never owes anything. The next escape pays for what was charged beyond that: after a
// pause the kernel's throttle lets through what it has saved of its slices. Escaped bytes count
// once they exceed a threshold, and then all of them count.
type Owed struct {
	rate      float64 // bytes a second
	threshold float64

	at      time.Duration
	charged float64       // not taken yet
	waiting float64       // escaped, below the threshold
	until   time.Duration // until when all that escapes counts at once
}

const (
	// chargedMost is how much of the charged bytes is kept, as time at the limit: the kernel
	// releases requests in bursts of a slice of 100 ms, and slightly faster than its rate.
	chargedMost = 300 * time.Millisecond
	// activeFor is how long after a counted escape each further one counts at once.
	activeFor = time.Second
)

// NewOwed returns the state of a group that has just started.
func NewOwed(bytesPerSec, threshold uint64, now time.Duration) *Owed {
	return &Owed{rate: float64(bytesPerSec), threshold: float64(threshold), at: now, until: -1}
}

// Take returns what the group owes for bytes that have escaped since the last call, and what
// the bucket has to give for charged bytes.
//
// While believed returns false, escaped bytes do not count yet.
func (o *Owed) Take(escaped, charged float64, now time.Duration, believed func() bool) (owed, given float64) {
	fill := o.rate * (now - o.at).Seconds()
	o.at = now
	o.charged += charged
	given = min(o.charged, fill)
	o.charged -= given
	o.Keep(0)
	o.waiting += escaped
	if o.waiting < o.threshold && now > o.until || o.waiting > o.threshold/4 && !believed() {
		o.waiting = max(0, o.waiting) // no credit
		return 0, given
	}
	if o.waiting != 0 {
		o.until = now + activeFor
	}
	owed, o.waiting = o.waiting, 0
	if owed > 0 { // it is paused anyway, and may not be looked at before it has paid
		given, o.charged = given+o.charged, 0
	}
	return owed, given
}

// Keep takes back what the bucket had not for charged bytes. They are given again, up to a bound.
func (o *Owed) Keep(charged float64) {
	o.charged = min(o.charged+charged, o.rate*chargedMost.Seconds())
}

// Back takes back that so many bytes have escaped, as far as Take has not returned them yet. It
// returns the rest.
func (o *Owed) Back(bytes float64) (rest float64) {
	own := min(bytes, max(0, o.waiting))
	o.waiting -= own
	return bytes - own
}

// Active reports whether something has escaped lately, so that the group is paced.
func (o *Owed) Active(now time.Duration) bool { return now <= o.until }
