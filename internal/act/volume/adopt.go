package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// Adopt limits a mount that has a device of its own already. strict is false if the kernel
// cannot hold back the writers to it.
func (s Store) Adopt(ctx context.Context, dir string, l limit.Limit, targets []string) (v Volume, strict bool, err error) {
	if v, err = s.named(dir); err != nil {
		return v, false, err
	}
	if err := s.mayLimit(l); err != nil {
		return v, false, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return v, false, err
	}
	defer unlock()
	v.Limit, v.For = l.Bound(), targets
	if err := s.found(ctx, &v); err != nil {
		return v, false, err
	}
	if err := s.save(v, making); err != nil {
		return v, false, err
	}
	if strict, err = s.bind(ctx, v.Device, v.Limit); err != nil {
		return v, false, errors.Join(err, s.unmake(v))
	}
	return v, strict, s.turn(v, making, ready)
}

// found fills in what a mount that is to be adopted is on, and what its device has now.
func (s Store) found(ctx context.Context, v *Volume) error {
	if err := s.unused(*v); err != nil {
		return err
	}
	if err := s.checkOwn(ctx, v.Name, v.Mount); err != nil {
		return err
	}
	at, err := s.Where(*v)
	if err != nil {
		return err
	}
	before, err := s.boundsOf(at.Device)
	v.FS, v.Device, v.Before = at.Mount.FSType, at.Device, &before
	return err
}

// checkOwn refuses a mount whose device others have files on.
func (s Store) checkOwn(ctx context.Context, name, dir string) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("volume %s: "+format, append([]any{name}, args...)...)
	}
	m, mounted, err := s.Devices.MountedOn(dir)
	if err != nil {
		return err
	}
	if !mounted {
		return fault.With(refuse("nothing is mounted at %s", dir), fault.Remedy{Do: fault.VolumeCreate, Target: dir})
	}
	if m.Root != "/" {
		return refuse("%s is only part of a file system (%s of %s), and a limit would apply to all of it", dir, m.Root, m.Source)
	}
	chain, err := s.Devices.OfMount(ctx, m)
	if err != nil {
		return err
	}
	if m.Number.Major == 0 || len(chain.Devices) != 1 { // as btrfs does
		return &fault.Unsupported{Feature: "volume " + name, Reason: m.FSType + " does not count its dirty pages by device, so a bound for one device does not apply to it",
			Remedy: "adopt a mount of ext4 or xfs, or create a volume there"}
	}
	dev := chain.Devices[0]
	volumes, err := s.List()
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if at, err := s.Where(v); err == nil && at.Up && at.Device == dev.Number && v.Name != name {
			return refuse("its device %s belongs to volume %s", dev.Node, v.Name)
		}
	}
	sharers, err := s.Devices.MountsUpon(ctx, dev.Number)
	if err != nil {
		return err
	}
	for _, other := range sharers {
		if other.Number != m.Number || other.Point == "/" {
			return refuse("its device %s is also mounted at %s; a volume needs a device of its own", dev.Node, other.Point)
		}
	}
	swaps, err := s.Kernel.Swaps()
	if err != nil {
		return err
	}
	for _, swap := range swaps {
		c, err := s.Devices.Resolve(ctx, swap.File)
		if err != nil {
			continue // a swap file that was removed
		}
		for _, d := range c.Devices {
			if d.StandsOn(dev.Number) {
				return refuse("swap %s is also on its device %s", swap.File, dev.Node)
			}
		}
	}
	return nil
}

// release gives an adopted volume's device back what it had before. A device that has another
// limit by now, or is gone, is left alone.
func (s Store) release(ctx context.Context, v Volume) error {
	if its, err := s.isStill(v); err != nil || !its {
		return err
	}
	return s.restore(ctx, v.Device, *v.Before)
}

// isStill reports whether an adopted volume's device is there, with the limit that weir set.
func (s Store) isStill(v Volume) (bool, error) {
	if !s.Devices.Exists(v.Device) {
		return false, nil
	}
	now, err := s.boundsOf(v.Device)
	if err != nil {
		return false, err
	}
	return !s.hasRootRules() || now.Root.Bound() == v.Limit || now.Root.Bound() == v.Before.Root.Bound(), nil
}
