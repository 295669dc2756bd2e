package planned

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// Activate has the kernel throttle the disks of a choice before a limit is set on them. Since Linux 6.10 the first rule of
// any group on a disk waits until the disk has done all I/O that it was asked for (blk_throtl_init in
// block/blk-throttle.c, commit a3166c51702b): nobody's start is to wait for that. It writes to a group without rules that
// it has no limit, which changes nothing. It is to be one of which nobody waits for the limits. It leaves a group alone that another weir works on.
//
// The disks are those that this host has mounted, or that the plan names. Of those in done nothing is to be done, and those
// where it is done are added to it.
func (m Manager) Activate(ctx context.Context, c plans.Choice, g cgroupfs.Group, done map[blkdev.Number]bool) error {
	places, err := m.placesAhead(ctx, c)
	if err != nil {
		return err
	}
	locked, free, err := m.Host.Holder().TryLockKnown(g)
	if err != nil || !free {
		return err
	}
	defer locked.Unlock()
	rules, err := g.Rules()
	if err != nil || len(rules) > 0 {
		return unlessUnsupported(ifThere(err))
	}
	var errs []error
	for _, p := range places {
		if done[p.Device.Number] {
			continue
		}
		if err := g.SetRule(p.Device.Number, limit.Limit{WBPS: limit.Unlimited}); err != nil {
			errs = append(errs, ifThere(err)) // the other disks are not this one's fault
			continue
		}
		done[p.Device.Number] = true
	}
	return errors.Join(errs...)
}

// first is the host's first process, which sees the host's mounts. weird's pod sees others.
const first = 1

// placesAhead are the places of a choice, before there is a target. What a target asks itself, and the limits of its
// volumes, can be on each disk.
func (m Manager) placesAhead(ctx context.Context, c plans.Choice) (all []place.Placed, err error) {
	of := targets.Target{PID: first}
	if c.Plan != plans.None {
		if all, err = m.places(ctx, &Target{Choice: plans.Choice{Plan: c.Plan}}, &of); err != nil {
			return nil, err
		}
	}
	if c.Asks() || len(c.Volumes) > 0 {
		each, err := m.place(ctx, []limit.Asked{{Limit: limit.Limit{WBPS: limit.Unlimited}}}, &of)
		return append(all, each...), err
	}
	return all, nil
}

// DisksMounted names what the host has mounted from /dev, in one text: as long as it is the same, Activate finds the
// same disks.
func (m Manager) DisksMounted() (string, error) {
	mounts, err := m.Host.Devices().Mounts(first)
	if err != nil {
		return "", err
	}
	all := map[string]bool{}
	for _, one := range mounts {
		if strings.HasPrefix(one.Source, "/dev/") {
			all[one.Source] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), " "), nil
}
