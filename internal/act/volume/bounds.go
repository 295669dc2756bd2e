package volume

import (
	"context"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/place"
)

// bounds are what a device has of limits that are not a target's.
type bounds struct {
	Root  limit.Limit   `json:"root"` // v1's root group's rule
	Dirty kernel.Bounds `json:"dirty"`
}

// DirtyFor is how many bytes may wait in memory for a device with a limit: half a second of the
// limit. there is false without a limit in bytes.
func DirtyFor(l limit.Limit) (bytes uint64, bound bool) {
	n, bound := l.WBPS.Number()
	return max(n/2, place.LeastDirty), bound
}

func (s Store) boundsOf(dev blkdev.Number) (b bounds, err error) {
	if s.hasRootRules() {
		if b.Root, err = s.IO.Root().Rule(dev); err != nil {
			return b, err
		}
	}
	b.Dirty, err = s.Kernel.Bounds(dev)
	return b, err
}

// bindNew sets the limit of a device that nobody uses yet. There is nothing to take back,
// because the device is removed if weir is killed now. strict is false if the kernel cannot
// hold back the writers.
func (s Store) bindNew(dev blkdev.Number, l limit.Limit) (strict bool, err error) {
	if s.hasRootRules() && l.Bounds() {
		if err := s.IO.Root().SetRule(dev, l.Bound()); err != nil {
			return false, err
		}
	}
	return s.boundDirty(dev, l)
}

// bind puts a volume's limit on a device in use. Rates that it does not name are lifted.
func (s Store) bind(ctx context.Context, dev blkdev.Number, l limit.Limit) (strict bool, err error) {
	if err := s.setRoot(ctx, dev, l); err != nil {
		return false, err
	}
	return s.boundDirty(dev, l)
}

func (s Store) boundDirty(dev blkdev.Number, l limit.Limit) (strict bool, err error) {
	if n, bound := DirtyFor(l); bound {
		return s.Kernel.Bound(dev, n)
	}
	return true, s.Kernel.Unbound(dev, kernel.Unbounded)
}

// restore gives a device what it had.
func (s Store) restore(ctx context.Context, dev blkdev.Number, was bounds) error {
	if err := s.setRoot(ctx, dev, was.Root); err != nil {
		return err
	}
	return s.Kernel.Unbound(dev, was.Dirty)
}

// setRoot makes a limit the rule of v1's root group for a device. It does not write rates that
// are set already.
func (s Store) setRoot(ctx context.Context, dev blkdev.Number, l limit.Limit) error {
	if !s.hasRootRules() {
		return nil
	}
	plan, err := s.rootPlan(dev, l)
	if err != nil || len(plan.Changes) == 0 {
		return err
	}
	return s.Holder.Apply(ctx, plan)
}

// rootPlan is what makes a limit the rule of v1's root group for a device.
func (s Store) rootPlan(dev blkdev.Number, l limit.Limit) (hold.Plan, error) {
	plan := hold.Plan{Group: s.IO.Root()}
	now, err := plan.Group.Rule(dev)
	if err != nil {
		return plan, err
	}
	var change limit.Limit
	for _, k := range limit.Keys {
		is, was := now.Get(k).Number()
		want, bound := l.Get(k).Number()
		switch {
		case bound && want != is:
			change = change.With(k, l.Get(k))
		case !bound && was:
			change = change.With(k, limit.Unlimited)
		}
	}
	if !change.IsZero() {
		plan.Changes = []hold.Change{{Device: dev, Limit: change}}
	}
	return plan, nil
}
