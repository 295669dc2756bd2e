package blkdev

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// onMount goes on from a mount to the devices of its file system.
func (r *resolver) onMount(ctx context.Context, c *Chain, m Mount, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth == 0 {
		return fmt.Errorf("resolve %s: more than %d mounts on top of each other", c.Spec, maxDepth)
	}
	c.add(Layer{Kind: MountLayer, Text: m.text(), Mount: &m})
	switch m.FSType {
	case "overlay":
		return r.onOverlay(ctx, c, m, depth)
	case "btrfs":
		return r.onBtrfs(ctx, c, m, depth)
	}
	if why := withoutDevice(m); why != "" {
		return &NoBlockDeviceError{Path: c.Spec, FSType: m.FSType, Reason: why}
	}
	if m.Number.Major == 0 {
		return r.onSource(ctx, c, m, depth)
	}
	d, err := r.device(ctx, c, m.Number, depth)
	if err != nil {
		return mountedOn(err, c.Spec, m)
	}
	noteOthers(c, m)
	c.end(FSLayer, m.FSType+" on ", []Device{d})
	return nil
}

// mountedOn adds to "no such device" that a file system is still mounted from it.
func mountedOn(err error, spec string, m Mount) error {
	var missing *NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	return &NotFoundError{Spec: spec, Looked: missing.Looked,
		Reason: fmt.Sprintf("%s is mounted from %s (%s), and that block device is gone", m.Point, m.Source, m.Number)}
}

// noteOthers says which devices a file system uses besides, and are not limited:
// XFS's log and realtime device.
func noteOthers(c *Chain, m Mount) {
	for _, key := range []string{"logdev", "rtdev"} {
		if dev, ok := m.SuperOption(key); ok {
			c.note("%s has a second device, %s=%s, which the limit does not cover", m.FSType, key, dev)
		}
	}
}

// isStacked reports whether the source of a file system can be a directory or a file of another
// one: ecryptfs, and erofs since it mounts image files without a loop device (6.12).
func isStacked(fstype string) bool { return fstype == "ecryptfs" || fstype == "erofs" }

// onSource finds the device by the source of a file system with an anonymous number.
func (r *resolver) onSource(ctx context.Context, c *Chain, m Mount, depth int) error {
	if !filepath.IsAbs(m.Source) {
		return &NoBlockDeviceError{Path: c.Spec, FSType: m.FSType,
			Reason: fmt.Sprintf("%s has no device number, and its source %q is not a device; name a disk", m.FSType, m.Source)}
	}
	if isStacked(m.FSType) {
		if r.throughProc(m.Source) {
			return &NoBlockDeviceError{Path: c.Spec, FSType: m.FSType, Reason: m.FSType + " is on " + namedByMounter(m.Source)}
		}
		c.add(Layer{Kind: StackLayer, Text: m.FSType + " on " + m.Source})
		return r.onPath(ctx, c, m.Source, depth-1)
	}
	d, err := r.node(ctx, c, m.Source, depth)
	if err == nil {
		c.end(FSLayer, m.FSType+" on ", []Device{d})
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	return &NoBlockDeviceError{Path: c.Spec, FSType: m.FSType,
		Reason: fmt.Sprintf("%s has no device number, and its source is no block device here (%v); name a disk", m.FSType, err)}
}

// onBtrfs lists the members. btrfs has an anonymous number, and names one member as
// its source; /sys/fs/btrfs/UUID/devices has them all.
func (r *resolver) onBtrfs(ctx context.Context, c *Chain, m Mount, depth int) error {
	first, err := r.node(ctx, c, m.Source, depth)
	if err != nil && ctx.Err() != nil {
		return err
	}
	names, listErr := r.fs.btrfsMembers(first.Name)
	if listErr != nil && !isNotExist(listErr) {
		return fmt.Errorf("resolve %s: list members of btrfs: %w", c.Spec, listErr)
	}
	if len(names) == 0 {
		if err != nil {
			return &NoBlockDeviceError{Path: c.Spec, FSType: m.FSType,
				Reason: fmt.Sprintf("btrfs has no device number, and its source is no block device here (%v); name a disk", err)}
		}
		c.note("weir could not list the members of the btrfs on %s below /sys/fs/btrfs; some may be without the limit", first.Name)
		c.end(FSLayer, "btrfs on ", []Device{first})
		return nil
	}
	var devs []Device
	for _, name := range names {
		d, err := r.fs.deviceNamed(ctx, name, maxDepth)
		if err != nil {
			return asked(err, c.Spec)
		}
		devs = append(devs, r.filled(ctx, c, d, depth))
	}
	c.end(FSLayer, "btrfs on ", devs)
	if n := len(c.Devices); n > 1 {
		c.note("btrfs is on %d devices; weir sets the whole limit on each", n)
	}
	return nil
}

// btrfsMembers finds the file system that has the device called member, and lists all
// of its devices by name. With no member known, one file system alone is believed.
func (fs FS) btrfsMembers(member string) ([]string, error) {
	const top = "/sys/fs/btrfs"
	all, err := fs.dirNames(top, maxMembers)
	if err != nil {
		return nil, err
	}
	var uuids []string
	for _, name := range all {
		if strings.Count(name, "-") == 4 { // besides, there is "features"
			uuids = append(uuids, name)
		}
	}
	if member == "" && len(uuids) != 1 {
		return nil, nil
	}
	for _, uuid := range uuids {
		names, err := fs.dirNames(top+"/"+uuid+"/devices", maxMembers)
		if isNotExist(err) { // unmounted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if member == "" || name == member {
				return names, nil
			}
		}
	}
	return nil, nil
}
