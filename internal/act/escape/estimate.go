package escape

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// An Estimate counts what escapes a group without BPF: what its processes wrote, minus what was
// cut off files again, minus what the kernel charged to the group on some disks, minus the
// group's own data that waits in memory.
//
// It can err. It counts as escapes, until they are charged, asynchronous direct writes that
// wait in the throttle. It counts as escapes for good: writes to file systems without a disk
// (NFS), to loop devices, and to another group's files on other disks; and bytes that a file
// system saves by compression. It counts as the group's own, until it is written back, data
// that was appended to another group's file. The kernel's count of what waits in memory lags by
// about 256 KiB for each processor.
type Estimate struct {
	group   cgroupfs.Group
	devices []blkdev.Number
	upon    blkdev.Upon // of devices
	memory  bool        // the group's memory is counted, in the same hierarchy
	beside  map[blkdev.Number]bool

	sum    process.Sum
	began  Reading
	lowest int64
}

// A Reading is what an Estimate reads: totals since its start, except Dirty.
type Reading struct {
	Written   uint64 // bytes that processes made dirty or wrote directly, on any disk
	Sent      uint64 // bytes that calls of processes have written, to anything
	Cancelled uint64 // of Written, dirty pages that were cut off files
	Dirty     uint64 // bytes of the group's own that wait in memory now, on any disk
	Underway  uint64 // what of Dirty waits in the throttle or at the disk, and may be charged already
	Stats     []cgroupfs.Stat
	Escaped   uint64
	Processes int  // that there were
	Left      bool // some have left the group, and went on

	before process.IO // WriteBytes and CancelledWriteBytes, read before the others
	wet    uint64     // Dirty, read before Stats
}

// NewEstimate starts to count what escapes a group on some disks. Each byte is counted once, also
// where one of them stands on another.
func NewEstimate(g cgroupfs.Group, devices []blkdev.Number) (*Estimate, error) {
	e := &Estimate{group: g, devices: devices, beside: map[blkdev.Number]bool{}}
	e.upon = blkdev.New("/").Upon(context.Background(), devices) // sysfs answers at once
	_, e.memory, _ = g.Memory()                                  // without, the group owns no writeback
	e.memory = e.memory && g.Hierarchy().Version == cgroupfs.V2
	var err error
	e.began, err = e.read()
	return e, err
}

// Upon is how the disks stand on each other.
func (e *Estimate) Upon() blkdev.Upon { return e.upon }

// Close ends the counting.
func (e *Estimate) Close() { e.sum.Close() }

// Look reads the counters.
func (e *Estimate) Look() (Reading, error) { return e.LookAt(0) }

// LookAt is Look for a caller who knows that processes wrote at least this much. Processes that
// began and ended since the last look were not seen.
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
	r.before.WriteBytes = max(r.before.WriteBytes, written)
	r.Escaped = e.judge(r)
	return r, nil
}

// judge returns what has escaped. A charge beyond what was written, for example for pages that
// were dirty before, is no credit for later writes.
//
// The counters are read one after the other, while processes write and the kernel writes back.
// judge counts the least that can have escaped, and the most that can have been ahead. Bytes
// that the disk has not finished are both charged and in writeback, so a disk that is slow for
// a moment causes no escape.
func (e *Estimate) judge(r Reading) uint64 {
	charged, began := int64(e.charged(r.Stats)), int64(e.began.Dirty)
	most := int64(r.Written) - int64(r.Cancelled) - charged - int64(r.Dirty-min(r.Dirty, r.Underway)) + began
	least := int64(r.before.WriteBytes) - int64(r.before.CancelledWriteBytes) - charged - int64(r.wet) + began
	e.lowest = min(e.lowest, most)
	return uint64(max(0, least-e.lowest))
}

func (e *Estimate) read() (r Reading, err error) {
	if r.before, _, err = e.written(); err != nil {
		return r, err
	}
	if r.wet, _, err = e.dirty(); err != nil {
		return r, err
	}
	if r.Stats, err = e.group.Stats(); err != nil {
		return r, err
	}
	if r.Dirty, r.Underway, err = e.dirty(); err != nil {
		return r, err
	}
	io, processes, err := e.written() // by all that have made dirty what is counted above
	r.Written, r.Sent, r.Cancelled, r.Processes = io.WriteBytes, io.WChar, io.CancelledWriteBytes, processes
	r.Left = e.sum.Left()
	return r, err
}

// bornMost is how long a process takes to be in its group, in ticks. A process that began this
// shortly before a list, and is not on it, belongs to the group from its first byte.
const bornMost = process.TicksPerSecond / 10

// written returns what the group's processes have written so far, and how many there are.
func (e *Estimate) written() (io process.IO, processes int, err error) {
	listed := process.Now()
	listed -= min(listed, bornMost)
	pids, err := Members(e.group)
	if err != nil {
		return io, 0, err
	}
	return e.sum.LookAt(pids, listed, process.Proc), len(pids), nil
}

// dirty returns how much of the group's own data waits in memory, and how much of that is in
// writeback.
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
		// A group that vanishes has none; those of a threaded group belong to a group above.
		if below != g && cgroupfs.IsGone(err) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		return err
	})
	return all, err
}

// charged adds up the charges for writes to the disks, and to those beside them.
func (e *Estimate) charged(stats []cgroupfs.Stat) (bytes uint64) {
	for _, s := range stats {
		switch {
		case slices.Contains(e.devices, s.Device):
			bytes += e.upon.Own(s.Device, writtenOf(stats))
		case e.isBeside(s.Device):
			bytes += s.WrittenBytes
		}
	}
	return bytes
}

// writtenOf returns a function that tells how many bytes were charged for writes to a device.
func writtenOf(stats []cgroupfs.Stat) func(blkdev.Number) uint64 {
	return func(n blkdev.Number) uint64 {
		if i := slices.IndexFunc(stats, func(s cgroupfs.Stat) bool { return s.Device == n }); i >= 0 {
			return stats[i].WrittenBytes
		}
		return 0
	}
}

// isBeside reports whether writes to a device are counted there alone: it is a whole disk, and
// none of the others is on it.
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
