package tally

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// slack is the possible error of an Estimate: the kernel counts memory in batches for each
// processor (MEMCG_CHARGE_BATCH in mm/memcontrol.c, in pages).
func slack() uint64 { return max(slackLeast, 256<<10*uint64(runtime.NumCPU())) }

const slackLeast = 1 << 20

// openMost bounds how many open files are kept.
const openMost = 256

// An Opened is a file that a process of the group had open for writing.
type Opened struct {
	Path string
	New  bool // made since the tally's start

	compressed bool // it may take less of the disk than was written

	device blkdev.Number // as stat(2) has it
	on     []blkdev.Number
}

// On reports whether the file is on a device.
func (o Opened) On(n blkdev.Number) bool { return slices.Contains(o.on, n) }

// opened adds files to others, each once.
func opened(all []Opened, more []escape.Writable, began time.Time) []Opened {
	for _, w := range more {
		if !slices.ContainsFunc(all, func(o Opened) bool { return o.Path == w.Path }) {
			all = append(all, Opened{Path: w.Path, New: w.Born.After(began), compressed: w.Compresses(), device: w.Device})
		}
	}
	return all
}

// place finds the devices that a file is on.
func (o *Opened) place(ctx context.Context) {
	fs := blkdev.New("/")
	chain, err := escape.OfFileSystem(ctx, o.device)
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
