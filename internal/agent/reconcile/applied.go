package reconcile

import (
	"slices"
	"time"
)

// Applied counts attempts to set the limits of a target, by how long they took.
type Applied struct {
	Count  uint64
	Sum    time.Duration
	Within [len(applyBounds)]uint64 // by ApplyBounds: attempts that took at most so long, and longer than the bound before
}

var applyBounds = [...]time.Duration{time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, PutMost}

// ApplyBounds are the longest times of Applied.Within, the shortest first.
func ApplyBounds() []time.Duration { return slices.Clone(applyBounds[:]) }

// add counts one attempt.
func (a *Applied) add(took time.Duration) {
	a.Count++
	a.Sum += took
	for i, most := range applyBounds {
		if took <= most {
			a.Within[i]++
			return
		}
	}
}

// Applied counts an attempt to set the limits of a target.
func (c *Core) Applied(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Applied.add(took)
}
