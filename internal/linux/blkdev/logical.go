package blkdev

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// LogicalBlock returns the smallest number of bytes that a whole device reads or
// writes (queue/logical_block_size, Documentation/ABI/stable/sysfs-block): what direct
// I/O is a multiple of.
func (fs FS) LogicalBlock(n Number) (int, error) {
	text, err := fs.attr("/sys/dev/block/" + n.String() + "/queue/logical_block_size")
	if err != nil {
		return 0, fmt.Errorf("read block size of device %s: %w", n, err)
	}
	size, err := strconv.Atoi(text)
	if err != nil || size <= 0 {
		return 0, fmt.Errorf("read block size of device %s: %q is no size", n, text)
	}
	return size, nil
}

// MountAt finds the mount of a process (pid 0: of this one) that a directory is on: by
// the mount's ID, or if that is 0, as before Linux 5.8, by a path without symlinks.
func (fs FS) MountAt(pid, id int, path string) (Mount, error) {
	mounts, err := fs.mounts(pid, all)
	if err != nil {
		return Mount{}, err
	}
	if id == 0 {
		if m, ok := covering(mounts, path); ok {
			return m, nil
		}
	}
	for _, m := range mounts {
		if m.ID == id && id != 0 {
			return m, nil
		}
	}
	return Mount{}, fmt.Errorf("%s is on no mount of process %d", path, pid)
}

// OfMount takes a mount to the devices of its file system.
func (fs FS) OfMount(ctx context.Context, m Mount) (Chain, error) {
	c := Chain{Spec: m.Point}
	r := &resolver{fs: fs}
	err := r.onMount(ctx, &c, m, maxDepth)
	return c, err
}

// MountsOf lists the mounts of a process (pid 0: of this one) that are of the same file
// system as m, m included.
func (fs FS) MountsOf(pid int, m Mount) ([]Mount, error) {
	return fs.mounts(pid, func(other Mount) (want, stop bool) { return other.Number == m.Number, false })
}

// MountedOn returns the mount at a directory, as this process sees it; of several the last one.
// there is false if the directory is no mount point.
func (fs FS) MountedOn(dir string) (m Mount, mounted bool, err error) {
	found, err := fs.mounts(0, func(m Mount) (want, stop bool) { return m.Point == dir, false })
	if err != nil || len(found) == 0 {
		return Mount{}, false, err
	}
	return found[len(found)-1], true, nil
}

// MountsUpon lists the mounts of this process whose file systems are on a device, or on a
// device that stands on it; one for each file system.
func (fs FS) MountsUpon(ctx context.Context, dev Number) ([]Mount, error) {
	mounts, err := fs.mounts(0, func(m Mount) (want, stop bool) { return !holdsNothing(m.FSType), false })
	if err != nil {
		return nil, err
	}
	var upon []Mount
	done := make(map[Number]bool)
	for _, m := range mounts {
		if done[m.Number] {
			continue
		}
		done[m.Number] = true
		c, err := fs.OfMount(ctx, m)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if slices.ContainsFunc(c.Devices, func(d Device) bool { return d.StandsOn(dev) }) {
			upon = append(upon, m)
		}
	}
	return upon, nil
}
