package launch

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

const (
	// queueLook is how often a group's queue is read, and how exactly its length is known.
	queueLook = 250 * time.Millisecond
	// queueMin is the shortest queue for which a group stays.
	queueMin = 100 * time.Millisecond
	// queueSlack, and a tenth, is how much longer a group stays: requests of several megabytes
	// are released a little later than the rate says, and later still on a busy machine.
	queueSlack = time.Second
)

// A queue estimates how long cgroup v1's throttle needs for the writes that it has charged to a
// group but not released yet. The kernel does not show that. v1 charges a write when it is
// submitted, and a program need not wait for it, for example when it exits and the file system
// writes out a closed file (ext4, for a file that was truncated). If the group is removed then,
// the kernel releases all of them at once.
type queue struct {
	rates map[blkdev.Number]*backlog
	seen  time.Time
	// lent says what has gone past the rules by now, for the pacer; nil: nothing has.
	lent func() map[blkdev.Number]uint64
}

// A backlog is a leaky bucket for each of a device's two limits.
type backlog struct {
	last       cgroupfs.Stat
	lent       uint64
	bytes, ops time.Duration
}

func newQueue(began time.Time) *queue {
	return &queue{seen: began, rates: make(map[blkdev.Number]*backlog)}
}

// look counts what was charged since the last look, and what the passed time has released.
func (q *queue) look(rules []cgroupfs.Rule, stats []cgroupfs.Stat, now time.Time) {
	passed := now.Sub(q.seen)
	q.seen = now
	for _, r := range rules {
		for _, s := range stats {
			if s.Device != r.Device {
				continue
			}
			b := q.rates[s.Device]
			if b == nil {
				b = &backlog{}
				q.rates[s.Device] = b
			}
			b.bytes = drained(b.bytes, s.WrittenBytes-b.last.WrittenBytes, r.Limit.WBPS, passed)
			b.ops = drained(b.ops, s.Writes-b.last.Writes, r.Limit.WIOPS, passed)
			b.last = s
		}
	}
}

// repay takes off what the pacer has let past the rules. It is asked only where there seems to
// be a queue.
func (q *queue) repay(rules []cgroupfs.Rule) {
	if q.lent == nil || q.left() < queueMin {
		return
	}
	lent := q.lent()
	for _, r := range rules {
		n, bound := r.Limit.WBPS.Number()
		if b := q.rates[r.Device]; b != nil && bound && lent[r.Device] > b.lent {
			more := float64(lent[r.Device]-b.lent) / float64(n) * float64(time.Second)
			b.bytes, b.lent = max(0, b.bytes-time.Duration(more)), lent[r.Device]
		}
	}
}

// throttleExcess is how much faster than its rate the throttle may be, over a few seconds.
// Without it a program that waits for each write would seem to be ahead of the rate.
const throttleExcess = 1.03

func drained(before time.Duration, more uint64, rate limit.Rate, passed time.Duration) time.Duration {
	n, bounded := rate.Number()
	if !bounded {
		return 0
	}
	needs := float64(more) / float64(n) * float64(time.Second)
	return max(0, before+time.Duration(needs-throttleExcess*float64(passed)))
}

// left is how long the throttle needs for what it holds, at the time of the last look.
func (q *queue) left() time.Duration {
	var most time.Duration
	for _, b := range q.rates {
		most = max(most, b.bytes, b.ops)
	}
	return most
}

// lookAt reads a group's rules and counters. A group that is gone has no queue.
func (q *queue) lookAt(g cgroupfs.Group, now time.Time) error {
	rules, err := g.Rules()
	if err != nil {
		return err
	}
	stats, err := g.Stats()
	if err != nil {
		return err
	}
	q.look(rules, stats, now)
	q.repay(rules)
	return nil
}

// queues reports whether a group's writes may wait in it after its last process has ended.
func queues(g cgroupfs.Group) bool { return g.Hierarchy().Version == cgroupfs.V1 }

// watchQueue looks at a group's queue until it is stopped. stop looks for the last time,
// and returns how long the queue needs.
func watchQueue(g cgroupfs.Group, began time.Time, lent func() map[blkdev.Number]uint64) (stop func() time.Duration) {
	if !queues(g) {
		return func() time.Duration { return 0 }
	}
	q, quit, done := newQueue(began), make(chan struct{}), make(chan struct{})
	q.lent = lent
	go func() {
		defer close(done)
		tick := time.NewTicker(queueLook)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				_ = q.lookAt(g, time.Now()) // what cannot be read needs no time
				return
			case now := <-tick.C:
				_ = q.lookAt(g, now)
			}
		}
	}()
	return func() time.Duration {
		close(quit)
		<-done
		return q.left()
	}
}

// A moment is a time of this boot, in nanoseconds (CLOCK_MONOTONIC). 0 is none.
type moment int64

func now() moment {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return moment(t.Nano())
}

// drainsHere is drains of the caller's own group on v1.
func (p place) drainsHere() time.Duration {
	hierarchies, err := cgroupfs.Open("/")
	if err != nil {
		return 0
	}
	defer hierarchies.Close()
	blkio := hierarchies.With("blkio")
	if blkio == nil {
		return 0
	}
	g, err := hierarchies.OfProcess(blkio, 0)
	if err != nil || g.IsRoot() {
		return 0
	}
	return p.drains(g)
}

// emptyAfter is how long a group stays for a queue of this length.
func emptyAfter(queued time.Duration) time.Duration { return queued + queued/10 + queueSlack }

// drains is how long a group on record still stays for its queue: as its weir has noted, or, if
// that weir was killed, as if everything had been charged when the group was made.
func (p place) drains(g cgroupfs.Group) time.Duration {
	if !p.Linger || !queues(g) {
		return 0
	}
	if p.Until != 0 {
		return time.Duration(p.Until - now())
	}
	q := newQueue(time.Now())
	if q.lookAt(g, q.seen) != nil || q.left() < queueMin {
		return 0
	}
	return emptyAfter(q.left()) - time.Duration(now()-p.Began)
}
