package escape

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// Disks returns a function that tells whether something that a Watcher has counted is on these
// devices: a disk, a device that it stands on, or the devices of a file system that has a
// number of its own.
func Disks(ctx context.Context, n blkdev.Number) func(blkdev.Number) bool {
	fs := blkdev.New("/")
	var on []blkdev.Device
	if n.Major != 0 {
		d, err := fs.Device(ctx, n)
		if err != nil {
			d = blkdev.Device{Number: n}
		}
		on = []blkdev.Device{d}
	} else if chain, err := OfFileSystem(ctx, n); err == nil {
		on = chain.Devices
	}
	return func(device blkdev.Number) bool {
		return slices.ContainsFunc(on, func(d blkdev.Device) bool { return d.StandsOn(device) })
	}
}

var errNotMounted = errors.New("no file system with this number is mounted here")

// OfFileSystem finds the devices of a file system by its number.
func OfFileSystem(ctx context.Context, n blkdev.Number) (blkdev.Chain, error) {
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
