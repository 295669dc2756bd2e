package place

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/targets"
)

// OwnDisks puts limits without a place on a target's own disks, if its mounts do not show
// them. It leaves out a disk that is not on this host, with a note; if all are, the error is an
// *Unsupported.
func OwnDisks(ctx context.Context, devices blkdev.FS, limits []limit.Asked, t targets.Target) (all []limit.Asked, notes []note.Note, err error) {
	if len(t.Disks)+len(t.ReadDisks) == 0 && t.NoDisks == nil {
		return limits, nil, nil
	}
	for _, l := range limits {
		if l.On != "" {
			all = append(all, l)
			continue
		}
		if t.NoDisks != nil {
			return nil, notes, t.NoDisks
		}
		on, left, err := diskLimits(ctx, devices, l, t)
		notes = append(notes, left...)
		if err != nil {
			return nil, notes, err
		}
		all = append(all, on...)
	}
	return all, notes, nil
}

// diskLimits puts one limit on each of a target's own disks: of those that it only reads,
// the rates of reads.
func diskLimits(ctx context.Context, devices blkdev.FS, asked limit.Asked, t targets.Target) (all []limit.Asked, notes []note.Note, err error) {
	var none error
	add := func(disk string, l limit.Limit) {
		if _, err := devices.Resolve(ctx, disk); err != nil {
			notes = append(notes, note.Noticef("no-disk", "no limit on %s: %v", plain.Brief(disk), err))
			none = errors.Join(none, err)
			return
		}
		on := asked
		on.On, on.Limit = disk, l
		all = append(all, on)
	}
	l := asked.Limit
	for _, disk := range t.Disks {
		add(disk, l)
	}
	reads := limit.Limit{RBPS: l.RBPS, RIOPS: l.RIOPS}
	for _, disk := range t.ReadDisks {
		if l.IsZero() || !reads.IsZero() { // a question has no rates
			add(disk, reads)
		}
	}
	nameDisk := fault.Remedy{Do: fault.NameDisk}
	switch {
	case len(all) > 0 || ctx.Err() != nil:
		return all, notes, context.Cause(ctx)
	case none != nil:
		return nil, notes, fault.With(&fault.Unsupported{Feature: "limit disk I/O of " + t.String(), Reason: fmt.Sprintf("none of its disks is on a block device of this host (%v)", none)}, nameDisk)
	}
	return nil, notes, fault.With(&fault.Unsupported{Feature: "limit writes of " + t.String(), Reason: "it has disks of this host open for reading only"}, nameDisk)
}
