package place

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Placed is a limit with the device that it resolved to.
type Placed struct {
	Chain  blkdev.Chain
	Device blkdev.Device
	Limit  limit.Limit
}

// FS is the file system by which the place was named; nil: a device was named.
func (p Placed) FS() *blkdev.Mount {
	if m, ok := p.Chain.FileSystem(); ok {
		return &m
	}
	return nil
}

// LimitsWrites reports whether a rate of writing is a number.
func (p Placed) LimitsWrites() bool { return bounds(p.Limit, false) }

// LimitsReads reports whether a rate of reading is a number.
func (p Placed) LimitsReads() bool { return bounds(p.Limit, true) }

func bounds(l limit.Limit, read bool) bool {
	return slices.ContainsFunc(limit.Keys[:], func(k limit.Key) bool {
		_, bound := l.Get(k).Number()
		return bound && k.IsRead() == read
	})
}

// Changes returns the changes to set for a group.
func Changes(all []Placed) []hold.Change {
	var list []hold.Change
	for _, p := range all {
		list = append(list, hold.Change{Device: p.Device.Number, Limit: p.Limit})
	}
	return list
}

// A Spot is the way from a requested place to devices.
type Spot struct {
	Asked limit.Asked
	Chain blkdev.Chain
	Err   *blkdev.NoBlockDeviceError // instead of devices
}

// Find finds where limits go. A limit without a place goes on every disk that some processes
// have mounted; 0 is weir itself. skipped are mounts without such a disk.
func Find(ctx context.Context, devices blkdev.FS, asked []limit.Asked, views []int) (spots []Spot, skipped []blkdev.Skipped, err error) {
	for _, a := range asked {
		if a.On == "" {
			chains, without, err := devices.OfMounts(ctx, views...)
			if err != nil {
				return nil, nil, err
			}
			for _, c := range chains {
				spots = append(spots, Spot{Asked: a, Chain: c})
			}
			skipped = append(skipped, without...)
			continue
		}
		chain, err := devices.Resolve(ctx, a.On)
		spot := Spot{Asked: a, Chain: chain}
		if err != nil && !errors.As(err, &spot.Err) {
			return nil, nil, err
		}
		spots = append(spots, spot)
	}
	return spots, skipped, nil
}

// Place finds the devices of limits, and joins limits that resolve to the same device.
func Place(ctx context.Context, devices blkdev.FS, asked []limit.Asked, views []int) (all []Placed, skipped []blkdev.Skipped, err error) {
	for _, a := range asked {
		spots, without, err := Find(ctx, devices, []limit.Asked{a}, views)
		if err != nil {
			return nil, nil, err
		}
		if len(spots) == 0 {
			return nil, nil, noDisks(without)
		}
		skipped = append(skipped, without...)
		for _, s := range spots {
			if s.Err != nil {
				return nil, nil, s.Err
			}
			for _, dev := range s.Chain.Devices {
				if all, err = join(all, Placed{s.Chain, dev, a.Limit}); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	return all, skipped, nil
}

// noDisks says why no mount leads to a device.
func noDisks(skipped []blkdev.Skipped) error {
	e := &fault.Unsupported{Feature: "limit disk I/O", Reason: "none of the target's mounts is on a block device"}
	if len(skipped) > 0 {
		e.Reason += " (" + skipped[0].Reason + ")"
	}
	return fault.With(e, fault.Remedy{Do: fault.NameDevice})
}

// join adds a limit to those on the same device, as for places on two partitions of a disk. Two
// different values for a rate are wrong usage.
func join(all []Placed, p Placed) ([]Placed, error) {
	i := slices.IndexFunc(all, func(q Placed) bool { return q.Device.Number == p.Device.Number })
	if i < 0 {
		return append(all, p), nil
	}
	first := &all[i]
	for _, k := range limit.Keys {
		was, is := first.Limit.Get(k), p.Limit.Get(k)
		if was.IsSet() && is.IsSet() && was != is {
			return nil, &SpecError{fmt.Sprintf("%s and %s are both on %s, and a device has one %s limit: %s, or %s",
				first.Chain.Spec, p.Chain.Spec, p.Device.Node, k.Direction(), was.Format(k), is.Format(k))}
		}
	}
	first.Limit = first.Limit.Overlay(p.Limit)
	if first.Chain.Spec != p.Chain.Spec {
		first.Chain.Notes = append(first.Chain.Notes, fmt.Sprintf("%s is on %s too: both share one limit", p.Chain.Spec, p.Device.Node))
	}
	return all, nil
}
