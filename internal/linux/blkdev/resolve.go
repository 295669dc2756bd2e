package blkdev

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A resolver is the work of one call: it reads the mounts at most once in whole.
type resolver struct {
	fs       FS
	own      []Mount // the mounts of this process, once read
	ownKnown bool
	init     int // whose mounts a container's overlay is of; 0: process 1
}

// Resolve finds the devices that a rule for spec belongs on. spec is a path, a device
// node, a symlink to one, MAJOR:MINOR, a bare name (sda, dm-0, cciss/c0d0, vg0-root,
// vg0/root) or a tag (UUID=, LABEL=, PARTUUID=, PARTLABEL=). A bare name is a device
// before it is a file in the working directory.
//
// The errors are *SpellingError, *NotFoundError, *NotBlockError and
// *NoBlockDeviceError, or of the system. With an error the chain holds the layers
// that were found, and no devices.
func (fs FS) Resolve(ctx context.Context, spec string) (Chain, error) {
	if c, known := fs.once[spec]; known {
		return c, ctx.Err()
	}
	c, err := fs.resolve(ctx, spec)
	if err == nil {
		fs.once.keep(spec, c)
	}
	return c, err
}

func (fs FS) resolve(ctx context.Context, spec string) (Chain, error) {
	c := Chain{Spec: spec}
	c.add(Layer{Kind: SpecLayer, Text: spec})
	r := &resolver{fs: fs}
	if err := r.resolve(ctx, &c, spec); err != nil {
		c.Devices = nil
		return c, err
	}
	if l := c.Layers[1]; l.Kind == DeviceLayer && l.Devices[0].Node == spec {
		c.Layers = c.Layers[1:] // "/dev/vda → /dev/vda" says nothing more
	}
	return c, nil
}

func (r *resolver) resolve(ctx context.Context, c *Chain, spec string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if reason := misspelled(spec); reason != "" {
		return &SpellingError{Spec: spec, Reason: reason}
	}
	if link, ok := tagLink(spec); ok {
		return r.onNode(ctx, c, link)
	}
	if n, err := ParseNumber(spec); err == nil {
		return r.onNumber(ctx, c, n)
	}
	if filepath.IsAbs(spec) {
		return r.onPath(ctx, c, spec, maxDepth)
	}
	return r.onName(ctx, c, spec)
}

// maxName is the kernel's NAME_MAX.
const maxName = 255

// misspelled says why a spec cannot name anything.
func misspelled(spec string) string {
	switch {
	case spec == "":
		return "empty"
	case strings.ContainsRune(spec, 0):
		return "holds a zero byte"
	case slices.ContainsFunc(strings.Split(spec, "/"), func(name string) bool { return len(name) > maxName }):
		return "has a name longer than 255 bytes"
	case strings.Trim(spec, "0123456789:") == "" && strings.Contains(spec, ":"):
		if _, err := ParseNumber(spec); err != nil {
			return "not a device number (MAJOR:MINOR, in decimal)"
		}
	}
	return ""
}

// onNumber ends the chain at a device that was named by number. An anonymous number
// (major 0) is no device's, but a mount may have it.
func (r *resolver) onNumber(ctx context.Context, c *Chain, n Number) error {
	if n.Major != 0 {
		d, err := r.device(ctx, c, n, maxDepth)
		if err != nil {
			return err
		}
		c.end(DeviceLayer, "", []Device{d})
		return nil
	}
	mounts, err := r.fs.mounts(0, func(m Mount) (want, stop bool) { return m.Number == n, m.Number == n })
	if err != nil {
		return fmt.Errorf("resolve %s: %w", c.Spec, err)
	}
	if len(mounts) == 0 {
		return &NotFoundError{Spec: c.Spec, Reason: "major number 0 is for file systems without a device, and no mount here has this number"}
	}
	return r.onMount(ctx, c, mounts[0], maxDepth)
}

// onNode ends the chain at a device that was named by its node.
func (r *resolver) onNode(ctx context.Context, c *Chain, p string) error {
	d, err := r.node(ctx, c, p, maxDepth)
	if err != nil {
		return err
	}
	c.end(DeviceLayer, "", []Device{d})
	return nil
}

// device reads a device by number, with the devices below loop devices.
func (r *resolver) device(ctx context.Context, c *Chain, n Number, depth int) (Device, error) {
	d, err := r.fs.Device(ctx, n)
	if err != nil {
		return d, asked(err, c.Spec)
	}
	return r.filled(ctx, c, d, depth), nil
}

// asked puts what was asked for into an error about a device on the way.
func asked(err error, spec string) error {
	var missing *NotFoundError
	if !errors.As(err, &missing) || missing.Spec == spec {
		return err
	}
	e := *missing
	e.Spec, e.Reason = spec, missing.Spec+": "+missing.Reason
	return &e
}

// filled adds to each loop device of a stack the devices that its file is on. What
// cannot be found is noted: the rule does not depend on it.
func (r *resolver) filled(ctx context.Context, c *Chain, d Device, depth int) Device {
	if d.Backing != nil && len(d.Beneath) == 0 {
		below, err := r.belowFile(ctx, d, depth)
		if err != nil {
			c.note("weir cannot tell which disk %s is on: %v", d.Name, err)
			return d
		}
		d.Beneath = below
		return d
	}
	for i, b := range d.Beneath {
		d.Beneath[i] = r.filled(ctx, c, b, depth)
	}
	return d
}

// belowFile finds the devices that the file of a loop device is on: by its path, or if
// that leads nowhere (deleted, or of another mount namespace) by asking the driver.
func (r *resolver) belowFile(ctx context.Context, d Device, depth int) ([]Device, error) {
	sub := Chain{Spec: d.Backing.File}
	err := error(&NotFoundError{Spec: d.Backing.File, Reason: "the file was deleted"})
	if !d.Backing.Deleted {
		err = r.onPath(ctx, &sub, d.Backing.File, depth-1)
	}
	if err != nil && isNotExist(err) && r.fs.isHost() {
		if n, errLoop := loopFileDevice(d.Node); errLoop == nil && n.Major != 0 {
			below, err := r.device(ctx, &sub, n, depth-1)
			return []Device{below}, err
		}
	}
	if err != nil {
		return nil, err
	}
	for _, l := range sub.Layers {
		if len(l.Devices) > 0 {
			return l.Devices, nil // partitions, not yet taken to their disks
		}
	}
	return sub.Devices, nil
}
