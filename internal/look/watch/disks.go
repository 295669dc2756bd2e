package watch

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A disk is what a Watcher knows of one device.
type disk struct {
	node  string
	below []blkdev.Number
	named time.Time // when
	total *blkdev.Activity
	now   Disk
	there bool // it could be read
}

func compareNumbers(a, b blkdev.Number) int {
	return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
}

// devicesIn are the devices that any group did I/O on, or has a limit on.
func (w *Watcher) devicesIn() map[blkdev.Number]bool {
	if !w.others {
		return w.devices
	}
	w.others, w.devices = false, map[blkdev.Number]bool{}
	var last blkdev.Number // mostly the same one, again and again
	add := func(n blkdev.Number) {
		if n != last || len(w.devices) == 0 {
			w.devices[n], last = true, n
		}
	}
	for _, e := range w.order {
		for _, s := range e.stats {
			add(s.Device)
		}
		for _, r := range e.rules {
			add(r.Device)
		}
	}
	return w.devices
}

// note notes a reading of a group's counters.
func (w *Watcher) note(e *entry, stats []cgroupfs.Stat, now time.Time) {
	was := e.stats
	if e.take(stats, now); e.moved {
		w.others = w.others || !slices.EqualFunc(was, stats, func(a, b cgroupfs.Stat) bool { return a.Device == b.Device })
	}
}

// detail reads more of a group than its counters.
func (w *Watcher) detail(e *entry) {
	was := e.rules
	e.unread = e.detail(w.o.Memory, w.o.Now())
	w.others = w.others || !sameRules(was, e.rules)
}

// readDisks reads what the devices do that any group did I/O on, or has a limit on.
func (w *Watcher) readDisks(ctx context.Context, now time.Time) {
	in := w.devicesIn()
	maps.DeleteFunc(w.disks, func(n blkdev.Number, _ *disk) bool { return !in[n] })
	devices := blkdev.New(w.o.Root)
	for n := range in {
		d := w.disks[n]
		if d == nil {
			if len(w.disks) >= disksMost {
				continue
			}
			d = &disk{}
			w.disks[n] = d
		}
		if d.named.IsZero() || now.Sub(d.named) >= nodeEvery {
			node, below := described(ctx, devices, n)
			w.rename(d, node, below, now)
		}
		w.failed(d.read(devices, n, now.Sub(w.at)))
	}
}

// rename notes the name of a device, and what is below it, in the groups too.
func (w *Watcher) rename(d *disk, node string, below []blkdev.Number, now time.Time) {
	if !d.named.IsZero() && (d.node != node || !slices.Equal(d.below, below)) {
		for _, e := range w.entries {
			e.made = nil
		}
	}
	d.node, d.below, d.named = node, below, now
}

// described is the name of a device, which is its number if it is gone, and the disks that it stands
// on directly. What is below a loop device's file takes the mounts to find.
func described(ctx context.Context, devices blkdev.FS, n blkdev.Number) (node string, below []blkdev.Number) {
	d, err := devices.Device(ctx, n)
	if err != nil || d.Node == "" {
		return n.String(), nil
	}
	if d.Backing != nil {
		if c, err := devices.Resolve(ctx, n.String()); err == nil && len(c.Devices) == 1 {
			d = c.Devices[0]
		}
	}
	for _, b := range d.Beneath {
		below = append(below, b.Whole().Number)
	}
	return d.Node, below
}

// read reads what the device does. One that is gone is left out.
func (d *disk) read(devices blkdev.FS, n blkdev.Number, window time.Duration) error {
	a, err := devices.Activity(n)
	if d.there = err == nil; !d.there {
		d.total = nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	d.now = diskOf(n, d.node, a, d.total, window)
	d.now.Below = d.below
	d.total = &a
	return nil
}

func (w *Watcher) disksNow() []Disk {
	var all []Disk
	for _, d := range w.disks {
		if d.there {
			all = append(all, d.now)
		}
	}
	slices.SortFunc(all, func(a, b Disk) int { return compareNumbers(a.Number, b.Number) })
	return all
}

// diskOf is what of a disk its groups have.
func (w *Watcher) diskOf(n blkdev.Number) (node string, below []blkdev.Number) {
	if d := w.disks[n]; d != nil && d.node != "" {
		return d.node, d.below
	}
	return n.String(), nil
}
