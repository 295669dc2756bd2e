package watch

import "time"

// IdleEvery is how often the counters and details of groups that do nothing are read, unless SetIdle says otherwise.
const IdleEvery = 15 * time.Second

// leafEvery is after how many readings a group at rest that had no child groups is looked at for
// new ones. That is a system call for each group, and most groups never have any.
const leafEvery = 4

// SetIdle says how often the counters and details of groups that do nothing are read from now on. That they do nothing is
// told by the counters of groups above them, where the kernel adds up.
func (w *Watcher) SetIdle(every time.Duration) { w.idle = every }

// turn spreads the groups without child groups over the readings in which they are looked at for
// new ones.
func (w *Watcher) turn(e *entry) uint64 {
	if e.leaf {
		return e.turn
	}
	w.turns++
	return w.turns % leafEvery
}
