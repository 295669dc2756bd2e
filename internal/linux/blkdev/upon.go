package blkdev

import (
	"context"
	"slices"
)

// An Upon has, for devices of a list, the others of the list that stand on them, with none of the
// list between. The kernel charges a write to each device that it passes, so one that adds up what
// was written takes from a device what has come from those on it. Not so where the device above
// writes by threads of the kernel, whose writes are charged to the root group (see hands). In an
// empty one no device stands on another.
type Upon map[Number][]Number

// Upon finds how the devices of a list stand on each other. A device that cannot be read stands on
// none, and neither does a loop device: to find its file's disk takes the mounts (see Device).
func (fs FS) Upon(ctx context.Context, list []Number) Upon {
	if len(list) < 2 {
		return nil
	}
	upon := Upon{}
	for _, n := range list {
		d, err := fs.Device(ctx, n)
		if err != nil {
			continue
		}
		for _, below := range nearest(d, list) {
			if !slices.Contains(upon[below], n) { // a volume on two partitions of one disk
				upon[below] = append(upon[below], n)
			}
		}
	}
	return upon
}

// nearest lists the devices of a list that are below a device, with none of the list between.
func nearest(d Device, list []Number) (all []Number) {
	if d.hands() {
		return nil
	}
	for _, b := range d.Beneath {
		if slices.Contains(list, b.Number) {
			all = append(all, b.Number)
		} else {
			all = append(all, nearest(b, list)...)
		}
	}
	return all
}

// hands reports whether a device hands writes to threads of the kernel that make others of them:
// encrypted ones (dm-crypt.c, crypt_alloc_buffer) and those with parity (raid5.c).
func (d Device) hands() bool {
	return d.Kind == DM && d.Flavor == "crypt" || d.Kind == MD && slices.Contains([]string{"raid4", "raid5", "raid6"}, d.Flavor)
}

// Own is how much of a total on a device was done there itself, and came from no other device of
// the list. total has it for each of them. It is the least that can be: of a device on two disks,
// each has only a part.
func (u Upon) Own(n Number, total func(Number) uint64) uint64 {
	all := total(n)
	for _, on := range u[n] {
		all -= min(all, total(on))
	}
	return all
}
