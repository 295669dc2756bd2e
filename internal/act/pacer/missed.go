package pacer

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A miss is why the processes of a group cannot be paused, or not all of them.
type miss struct {
	why   error
	again time.Duration
}

const (
	// missAgain is how often the pacer tries again.
	missAgain = 300 * time.Millisecond
	// missKept is how long a miss without a new try is kept: after that there are no such
	// processes.
	missKept = 4 * missAgain
)

// try does something for the processes of one group. If it fails, the other processes stay
// paused, because a group's owner could make it fail on purpose. The group is paused for what
// these processes write too, and the miss is reported.
func (c *cells) try(home cgroupfs.Group, now time.Duration, do func() error) {
	if now < c.missed[home].again {
		return
	}
	if err := do(); err != nil && !cgroupfs.IsGone(err) {
		c.miss(home, err, now)
	} else {
		delete(c.missed, home)
	}
}

func (c *cells) miss(home cgroupfs.Group, why error, now time.Duration) {
	if c.missed == nil {
		c.missed = make(map[cgroupfs.Group]miss)
	}
	c.missed[home] = miss{why, now + missAgain}
}

func (c *cells) prune(now time.Duration) {
	for home, m := range c.missed {
		if now-m.again > missKept {
			delete(c.missed, home)
		}
	}
}

// lapse says which processes the pacer cannot pause; "": none.
func (c *cells) lapse() string {
	var whys []string
	for home, m := range c.missed {
		whys = append(whys, fmt.Sprintf("processes of cgroup %s cannot be paused, so they are not held (%s)", home.Path(), brief(m.why)))
	}
	if len(whys) == 0 {
		return ""
	}
	slices.Sort(whys)
	if more := len(whys) - 1; more > 0 {
		whys[0] += fmt.Sprintf("; nor are those of %d more", more)
	}
	return whys[0]
}

// makeFor is make for tasks of a kind. If a group becomes threaded, its empty cell takes no
// processes and is replaced.
func (c *cells) makeFor(home cgroupfs.Group, threads bool) (*cell, error) {
	for again := false; ; again = true {
		into, err := c.make(home)
		if err != nil || into.threads == threads {
			return into, err
		}
		if again {
			return nil, fmt.Errorf("pause processes in cgroup %s: the type of %s has just changed", into.own.Path(), home.Path())
		}
		if err := into.own.Remove(); err != nil && !cgroupfs.IsGone(err) {
			return nil, err
		}
		c.forget(home)
	}
}
