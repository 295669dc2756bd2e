package main

import (
	"context"
	"slices"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/watch"
)

// markExpected notes what is expected to hold each limit, on the file systems that some
// processes see; 0 is weir itself.
func (a *app) markExpected(ctx context.Context, limited []watch.Limited, groups []showGroup, views []int) error {
	if len(limited) == 0 {
		return nil
	}
	chains, _, err := blkdev.New(a.root).OfMounts(ctx, views...)
	if err != nil {
		return ctx.Err() // they cannot be read: the processes may have ended
	}
	for i, l := range limited {
		var rules []cgroupfs.Rule
		for _, u := range l.Usages {
			rules = append(rules, cgroupfs.Rule{Device: u.Device, Limit: u.Limit})
		}
		d, err := a.deciding().Standing(l.Group, rules, chains)
		if cgroupfs.IsGone(err) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return err
		}
		for j := range groups[i].Devices {
			one := &groups[i].Devices[j]
			if at := slices.IndexFunc(d.Places, func(e place.Expected) bool { return e.Device.Number == one.Number }); at >= 0 {
				one.standing, one.Expected, one.Foreign = &d.Places[at], d.Places[at].Cells(), d.Places[at].Foreign
			}
		}
	}
	return nil
}
