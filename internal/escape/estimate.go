package escape

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/process"
)

// An Estimate counts what escapes a group without BPF: what its processes wrote, less what
// was cut off files again, less what the group was charged on some disks, less what of its
// own waits in memory.
//
// It errs. It takes for an escape, until they are charged: asynchronous direct writes that
// wait in the throttle; for good: writes to file systems without a disk (NFS), to loop
// devices and to another group's files on other disks, and what a file system makes smaller
// (compression).
// It takes for the group's own, until it is written back: what was appended to another's
// file. The kernel's count of what waits in memory lags by some 256 KiB a processor.
type Estimate struct {
	group   cgroupfs.Group
	devices []blkdev.Number
	memory  bool // the group's memory is counted, in the same hierarchy
	beside  map[blkdev.Number]bool

	sum    process.Sum
	began  Reading
	lowest int64
}

// A Reading is what an Estimate reads, each since its beginning but for Dirty.
type Reading struct {
	Written   uint64 // bytes that processes made dirty or wrote directly, on any disk
	Cancelled uint64 // of that, dirty pages that were cut off files
	Dirty     uint64 // bytes of the group's own that wait in memory now, on any disk
	Stats     []cgroupfs.Stat
	Escaped   uint64

	before   process.IO // Written and Cancelled, read before the others
	wet      uint64     // Dirty, read before Stats
	underway uint64     // what of Dirty is on its way to the disk, and may be charged already
}

// NewEstimate begins to count what escapes a group on some disks. Each is counted once:
// the devices must not stand on each other.
func NewEstimate(g cgroupfs.Group, devices []blkdev.Number) (*Estimate, error) {
	e := &Estimate{group: g, devices: devices, beside: map[blkdev.Number]bool{}}
	_, e.memory, _ = g.Memory() // without, the group owns no writeback
	e.memory = e.memory && g.Hierarchy().Version == cgroupfs.V2
	var err error
	e.began, err = e.read()
	return e, err
}

// Close ends the counting.
func (e *Estimate) Close() { e.sum.Close() }

// Look reads the counters.
func (e *Estimate) Look() (Reading, error) { return e.LookAt(0) }

// LookAt is Look for a caller who knows that processes wrote at least so much: those that
// have begun and ended since the last look were not seen.
func (e *Estimate) LookAt(written uint64) (Reading, error) {
	r, err := e.read()
	if err != nil {
		return r, err
	}
	r.Written = max(r.Written, written)
	for i := range r.Stats {
		if at := slices.IndexFunc(e.began.Stats, func(s cgroupfs.Stat) bool { return s.Device == r.Stats[i].Device }); at >= 0 {
			r.Stats[i] = minus(r.Stats[i], e.began.Stats[at])
		}
	}
	r.before.Written = max(r.before.Written, written)
	r.Escaped = e.judge(r)
	return r, nil
}

// judge is what has escaped. What was charged beyond what was written, such as pages that
// were dirty before, is no credit for what is written later.
//
// The counters are read one after the other, while processes write and the kernel writes
// back. The least that can have escaped is counted, and the most that can have been ahead.
// What the disk has not finished is charged and under writeback at once: a disk that is slow
// for a moment is nobody's escape.
func (e *Estimate) judge(r Reading) uint64 {
	charged, began := int64(e.charged(r.Stats)), int64(e.began.Dirty)
	most := int64(r.Written) - int64(r.Cancelled) - charged - int64(r.Dirty-min(r.Dirty, r.underway)) + began
	least := int64(r.before.Written) - int64(r.before.Cancelled) - charged - int64(r.wet) + began
	e.lowest = min(e.lowest, most)
	return uint64(max(0, least-e.lowest))
}

func (e *Estimate) read() (r Reading, err error) {
	if r.before, err = e.written(); err != nil {
		return r, err
	}
	if r.wet, _, err = e.dirty(); err != nil {
		return r, err
	}
	if r.Stats, err = e.group.Stats(); err != nil {
		return r, err
	}
	if r.Dirty, r.underway, err = e.dirty(); err != nil {
		return r, err
	}
	io, err := e.written() // by all that have made dirty what is counted above
	r.Written, r.Cancelled = io.Written, io.Cancelled
	return r, err
}

// bornMost is how long a process takes to be in its group, in ticks: one that began so shortly
// before a list that it is not on is the group's from its first byte.
const bornMost = process.TicksPerSecond / 10

// written is what the group's processes have written by now.
func (e *Estimate) written() (process.IO, error) {
	listed := process.Now()
	listed -= min(listed, bornMost)
	pids, err := Members(e.group)
	if err != nil {
		return process.IO{}, err
	}
	return e.sum.LookAt(pids, listed, process.Proc), nil
}

// dirty is what of the group's own waits in memory, and what of that is on its way.
func (e *Estimate) dirty() (all, underway uint64, err error) {
	if !e.memory {
		return 0, 0, nil
	}
	m, _, err := e.group.Memory()
	return m.Dirty, m.Writeback, err
}

// Members lists the processes of a group and those below it.
func Members(g cgroupfs.Group) (all []int, err error) {
	err = g.Walk(func(below cgroupfs.Group) error {
		pids, err := below.Processes()
		all = append(all, pids...)
		// A group that goes has none; a threaded one's are those of a group above.
		if below != g && cgroupfs.IsGone(err) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		return err
	})
	return all, err
}

// charged adds up what was charged for writing to the disks, and to those beside them.
func (e *Estimate) charged(stats []cgroupfs.Stat) (bytes uint64) {
	for _, s := range stats {
		if slices.Contains(e.devices, s.Device) || e.isBeside(s.Device) {
			bytes += s.WrittenBytes
		}
	}
	return bytes
}

// isBeside reports whether what is written to a device is counted there alone: it is a whole
// disk, and none of the others is on it.
func (e *Estimate) isBeside(n blkdev.Number) bool {
	beside, known := e.beside[n]
	if known {
		return beside
	}
	fs, ctx := blkdev.New("/"), context.Background() // sysfs answers at once
	d, err := fs.Device(ctx, n)
	beside = err == nil && d.Kind == blkdev.Disk && len(d.Beneath) == 0
	for _, other := range e.devices {
		o, err := fs.Device(ctx, other)
		beside = beside && err == nil && o.Kind != blkdev.Loop && !o.StandsOn(n)
	}
	e.beside[n] = beside
	return beside
}

func minus(s, before cgroupfs.Stat) cgroupfs.Stat {
	s.ReadBytes -= min(s.ReadBytes, before.ReadBytes)
	s.WrittenBytes -= min(s.WrittenBytes, before.WrittenBytes)
	s.Reads -= min(s.Reads, before.Reads)
	s.Writes -= min(s.Writes, before.Writes)
	return s
}
