package planned

import (
	"context"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plans"
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
	for _, p := range places {
		if done[p.Device.Number] {
			continue
		}
		if err := g.SetRule(p.Device.Number, limit.Limit{WBPS: limit.Unlimited}); err != nil {
			return ifThere(err)
		}
		done[p.Device.Number] = true
	}
	return nil
}

// placesAhead are the places of a choice, before there is a target.
func (m Manager) placesAhead(ctx context.Context, c plans.Choice) (all []place.Placed, err error) {
	if c.Plan != plans.None {
		if all, err = m.places(ctx, &Target{Choice: plans.Choice{Plan: c.Plan}}, nil); err != nil {
			return nil, err
		}
	}
	if !c.Limit.IsZero() {
		own, err := m.place(ctx, []limit.Asked{{Limit: c.Limit}}, nil)
		return append(all, own...), err
	}
	return all, nil
}
