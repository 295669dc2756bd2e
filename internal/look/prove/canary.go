package prove

import (
	"sync/atomic"
	"time"
)

const (
	canarySleep = 20 * time.Millisecond // seldom enough to be no load itself
	canarySlack = 3 * time.Millisecond  // what a timer may be late on an idle machine
)

// A canary sleeps again and again, and adds up for how long it would have been awake
// and had no processor. What a load did meanwhile may be the machine's doing.
type canary struct {
	sum     atomic.Int64
	stopped chan struct{}
	ended   chan struct{}
}

func newCanary() *canary {
	c := &canary{stopped: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		for {
			slept := time.Now()
			select {
			case <-c.stopped:
				return
			case <-time.After(canarySleep):
			}
			if over := time.Since(slept) - canarySleep; over > canarySlack {
				c.sum.Add(int64(over))
			}
		}
	}()
	return c
}

func (c *canary) late() time.Duration { return time.Duration(c.sum.Load()) }

func (c *canary) stop() {
	close(c.stopped)
	<-c.ended
}
