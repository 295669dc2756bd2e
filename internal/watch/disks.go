package watch

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
)

// A disk is what a Watcher knows of one device.
type disk struct {
	node  string
	named time.Time // when
	total *blkdev.Activity
	now   Disk
	there bool // it could be read
}

func compareNumbers(a, b blkdev.Number) int {
	return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
}

// readDisks reads what the devices do that any group did I/O on, or has a limit on.
func (w *Watcher) readDisks(ctx context.Context, now time.Time) {
	in := map[blkdev.Number]bool{}
	for _, e := range w.entries {
		for _, s := range e.stats {
			in[s.Device] = true
		}
		for _, r := range e.rules {
			in[r.Device] = true
		}
	}
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
			w.rename(d, nodeOf(ctx, devices, n), now)
		}
		w.failed(d.read(devices, n, now.Sub(w.at)))
	}
}

// rename notes the name of a device, in the groups too.
func (w *Watcher) rename(d *disk, node string, now time.Time) {
	if d.node != "" && d.node != node {
		for _, e := range w.entries {
			e.made = nil
		}
	}
	d.node, d.named = node, now
}

// nodeOf is the name of a device; of one that is gone, its number.
func nodeOf(ctx context.Context, devices blkdev.FS, n blkdev.Number) string {
	if d, err := devices.Device(ctx, n); err == nil && d.Node != "" {
		return d.Node
	}
	return n.String()
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

// node is the name of a device, for its groups.
func (w *Watcher) node(n blkdev.Number) string {
	if d := w.disks[n]; d != nil && d.node != "" {
		return d.node
	}
	return n.String()
}
