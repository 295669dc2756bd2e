package hold

import (
	"slices"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// settle decides where systemd's way ends from a device on two others, one on the other: at the second one
// if that one alone has the rates. If both have them, weir or somebody else may have set one of the two, and it
// stays open; also if another setting may have replaced the rates of the last one. A change that lifts both
// lifts the setting in any case.
func (p Plan) settle(has []systemd.PathLimit) []systemd.PathLimit {
	settled := slices.Clone(has)
	for i, l := range has {
		ends := l.Ends()
		if len(ends) < 2 {
			continue
		}
		end := ends[1]
		lifted := p.Lift && p.changes(ends[0]) && p.changes(end)
		if !lifted && p.obeys(ends[0], l.Limit) {
			if p.obeys(end, l.Limit) || systemd.Together(has, end).Bounds() {
				continue
			}
			end = ends[0]
		}
		settled[i].Devices = []blkdev.Number{l.Devices[0], end}
	}
	return settled
}

// obeys reports whether the rates of a setting are in force on a device.
func (p Plan) obeys(dev blkdev.Number, l limit.Limit) bool {
	now, err := p.Group.Rule(dev)
	return err == nil && l.Bounds() && now.Overlay(l.Bound()) == now
}

// changes reports whether the plan changes a device's limit.
func (p Plan) changes(dev blkdev.Number) bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Device == dev })
}

// goesPast reports whether systemd goes past a device of the plan's.
func (p Plan) goesPast(dev blkdev.Number) bool { return slices.Contains(p.Past, dev) }
