package trace

import (
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/targets"
)

// Evidence is what weir read about the host and the target during the trace.
type Evidence struct {
	Memory *Memory // of the target's group, or the one above that is nearest to its limit; nil: none is bound, or known
	Dirty  *Dirty  // nil: not known
	// Limits are the limits that apply to the target, by device.
	Limits []DeviceLimit
	// Paced is whether weir's pacer holds the target's buffered writes.
	Paced bool
}

// A DeviceLimit is a limit on the I/O to one device.
type DeviceLimit struct {
	Node   string // /dev/vdb
	Device blkdev.Number
	Limit  limit.Limit
}

// String writes it as people do: "write 10 MB/s on /dev/vdb".
func (d DeviceLimit) String() string { return d.Limit.String() + " on " + d.Node }

// writes returns the limits on writes.
func (d DeviceLimit) writes() DeviceLimit {
	for _, k := range []limit.Key{limit.RBPS, limit.RIOPS} {
		d.Limit = d.Limit.With(k, limit.Rate{})
	}
	return d
}

// Memory is a group's memory when it was fullest; bytes.
type Memory struct {
	Group string
	Max   uint64 // memory.max, or v1's limit; 0: none
	High  uint64 // memory.high; 0: none
	Used  uint64
	Cache uint64 // of it page cache
	Dirty uint64 // of that dirty or under writeback, at most
}

// bound is the lower of the limits.
func (m Memory) bound() uint64 {
	if m.High > 0 && (m.Max == 0 || m.High < m.Max) {
		return m.High
	}
	return m.Max
}

// full is how full the group's memory is, from 0 to 1.
func (m Memory) full() float64 {
	if b := m.bound(); b > 0 {
		return float64(m.Used) / float64(b)
	}
	return 0
}

// Dirty is the most data in the host's memory that waited for its disks, and the thresholds;
// bytes.
type Dirty struct {
	Now          uint64
	Writeback    uint64
	most         uint64 // of the two together, which is what the thresholds are for
	BackgroundAt uint64 // from here on flushers write
	LimitAt      uint64 // from between the two on writers wait
}

// sampleEvery is how often the evidence is read.
const sampleEvery = 100 * time.Millisecond

// A Witness gathers evidence until it is stopped.
type Witness struct {
	target *targets.Target // nil: no memory group is looked at
	groups *cgroupfs.FS
	stop   chan struct{}
	ended  chan struct{}
	found  Evidence // the goroutine's, until it has ended
}

// Watch starts to gather evidence about a target; nil: only about the host.
func Watch(groups *cgroupfs.FS, t *targets.Target) *Witness {
	w := &Witness{target: t, groups: groups, stop: make(chan struct{}), ended: make(chan struct{})}
	go w.watch()
	return w
}

// Stop ends the gathering. It leaves out what could not be read, because the figures do not
// depend on it.
func (w *Witness) Stop() Evidence {
	close(w.stop)
	<-w.ended
	return w.found
}

func (w *Witness) watch() {
	defer close(w.ended)
	host := kernel.New("/")
	for {
		w.lookAtMemory()
		w.lookAtDirty(host)
		select {
		case <-w.stop:
			return
		case <-time.After(sampleEvery):
		}
	}
}

func (w *Witness) lookAtDirty(host kernel.FS) {
	d, there, err := host.Dirty()
	if err != nil || !there {
		return
	}
	if w.found.Dirty == nil {
		w.found.Dirty = &Dirty{}
	}
	w.found.Dirty.Now = max(w.found.Dirty.Now, d.Now)
	w.found.Dirty.Writeback = max(w.found.Dirty.Writeback, d.InWriteback)
	w.found.Dirty.most = max(w.found.Dirty.most, d.Now+d.InWriteback)
	w.found.Dirty.BackgroundAt, w.found.Dirty.LimitAt = d.BackgroundAt, d.LimitAt
}

// lookAtMemory finds the group, from the target's upwards, that is nearest to its memory limit.
func (w *Witness) lookAtMemory() {
	if w.target == nil {
		return
	}
	at, none, err := w.target.GroupWith(w.groups, "memory")
	if none != "" || err != nil {
		return
	}
	for ; ; at = at.Parent() {
		m, there, err := at.Memory()
		if err == nil && there && (m.Max > 0 || m.High > 0) {
			if used, err := at.MemoryUsed(); err == nil {
				w.keep(Memory{Group: at.Path(), Max: m.Max, High: m.High, Used: used, Cache: min(m.Dirty+m.Clean, used), Dirty: min(m.Dirty, used)})
			}
		}
		if at.IsRoot() {
			return
		}
	}
}

func (w *Witness) keep(m Memory) {
	was := w.found.Memory
	if was != nil && was.Group == m.Group {
		m.Dirty = max(m.Dirty, was.Dirty)
		was.Dirty = m.Dirty
	}
	if was == nil || m.full() > was.full() {
		w.found.Memory = &m
	}
}
