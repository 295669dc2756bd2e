package tally

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/escape"
)

// Disks tells on which devices something is that a Watcher has counted: a disk, what it
// stands on, or those of a file system that has a number of its own.
func Disks(ctx context.Context, n blkdev.Number) func(blkdev.Number) bool {
	fs := blkdev.New("/")
	var on []blkdev.Device
	if n.Major != 0 {
		d, err := fs.Device(ctx, n)
		if err != nil {
			d = blkdev.Device{Number: n}
		}
		on = []blkdev.Device{d}
	} else if chain, err := ofFileSystem(ctx, n); err == nil {
		on = chain.Devices
	}
	return func(device blkdev.Number) bool {
		return slices.ContainsFunc(on, func(d blkdev.Device) bool { return d.StandsOn(device) })
	}
}

// slack is what an Estimate may be off by: the kernel gathers counts of memory for each
// processor (MEMCG_CHARGE_BATCH in mm/memcontrol.c, in pages).
func slack() uint64 { return max(slackLeast, 256<<10*uint64(runtime.NumCPU())) }

const slackLeast = 1 << 20

// openMost bounds how many open files are kept.
const openMost = 256

// An Opened is a file that a process of the group had open for writing.
type Opened struct {
	Path string
	New  bool // made since the tally's start

	device blkdev.Number // as stat(2) has it
	on     []blkdev.Number
}

// On reports whether the file is on a device.
func (o Opened) On(n blkdev.Number) bool { return slices.Contains(o.on, n) }

// opened adds files to others, each once.
func opened(all []Opened, more []escape.Writable, began time.Time) []Opened {
	for _, w := range more {
		if !slices.ContainsFunc(all, func(o Opened) bool { return o.Path == w.Path }) {
			all = append(all, Opened{Path: w.Path, New: w.Born.After(began), device: w.Device})
		}
	}
	return all
}

// place finds the devices that a file is on.
func (o *Opened) place(ctx context.Context) {
	fs := blkdev.New("/")
	chain, err := ofFileSystem(ctx, o.device)
	if err != nil {
		chain, err = fs.Resolve(ctx, o.Path)
	}
	if err != nil {
		return // on none that is known
	}
	for _, d := range chain.Devices {
		o.on = append(o.on, d.Number)
	}
}

var errNotMounted = errors.New("no file system with this number is mounted here")

// ofFileSystem finds the devices of a file system by its number.
func ofFileSystem(ctx context.Context, n blkdev.Number) (blkdev.Chain, error) {
	fs := blkdev.New("/")
	mounts, err := fs.Mounts(0)
	if err != nil {
		return blkdev.Chain{}, err
	}
	i := slices.IndexFunc(mounts, func(m blkdev.Mount) bool { return m.Number == n })
	if i < 0 {
		return blkdev.Chain{}, errNotMounted
	}
	return fs.OfMount(ctx, mounts[i])
}
