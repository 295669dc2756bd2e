package why

import (
	"slices"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
)

// group is what package place decides by.
func (f Facts) group() place.Group {
	g := place.Group{Path: f.Group.Path, Rules: f.Group.Rules, Paced: f.Group.Paced, Escapes: f.Group.Escapes, NoPacer: f.Group.NoPacer, Unseen: f.Group.Unseen,
		Own: len(f.Group.Processes), Below: f.Group.BelowV1, Bounds: map[blkdev.Number]place.RootBound{}}
	g.Version, g.Root, g.Release = f.Group.Version, f.Group.Root, f.Release
	g.Memory = f.IO != nil && slices.Contains(f.IO.Controllers, "memory")
	for _, p := range f.Places {
		for _, d := range p.Devices {
			if f.onV1() {
				g.Bounds[d.Number] = f.rootBound(d)
			}
		}
	}
	return g
}

// decide makes the same decision as weir run and weir set, with the named limits set, or with
// some limit if there is none. If no decision is possible, nothing holds.
func (f Facts) decide() place.Decision {
	hold, supposed := f.Hold, !f.limited()
	if supposed {
		hold = limit.HoldAuto
	}
	var all []place.Placed
	for _, p := range f.Places {
		for _, d := range p.Devices {
			all = append(all, place.Placed{Chain: p.Chain, Device: d.Device, Limit: f.limitOf(d)})
		}
	}
	d, err := place.Decide(f.group(), all, hold)
	if err != nil {
		d.Paced, d.Escapes, d.Places = nil, nil, nil
	}
	return d
}

// limitOf is a device's limit; if nothing is limited, a possible one.
func (f Facts) limitOf(d Device) limit.Limit {
	if f.limited() {
		return d.Limit
	}
	return limit.Limit{WBPS: limit.PerSecond(1)}
}

// expect says what is expected to hold at a place: on the device where the least is held.
func (f Facts) expect(p Place) place.Expectation {
	paced, g := f.decide().Paced, f.group()
	var worst place.Expectation
	for i, d := range p.Devices {
		site := g.Site(d.Number, f.limitOf(d), p.FS)
		site.Kernel.Buffered, site.Kernel.Why, site.Paced = p.Writeback, p.WhyNot, paced
		if e := place.Expect(site); i == 0 || rank(e.Buffered) < rank(worst.Buffered) {
			worst = e
		}
	}
	return worst
}

// foreignBy says what is expected to hold writes to other groups' files at a place. nil: no
// mechanism is needed, because nothing is limited there, or the kernel's writeback does not
// hold the group's own writes either.
func (f Facts) foreignBy(p Place) *place.By {
	var worst *place.By
	for _, e := range f.decide().Places {
		here := slices.ContainsFunc(p.Devices, func(d Device) bool { return d.Number == e.Device.Number })
		if here && e.Foreign != nil && (worst == nil || worst.Holds()) {
			worst = e.Foreign
		}
	}
	return worst
}

// foreignPaced reports whether weir's pacer holds those, or would.
func (f Facts) foreignPaced(p Place) bool {
	by := f.foreignBy(p)
	return p.Writeback && by != nil && by.Holds()
}

// rank orders what holds buffered writes, least first.
func rank(b place.By) int {
	switch {
	case b.Holds():
		return 2
	case b.Mechanism != place.Nothing:
		return 1
	}
	return 0
}

// mechanism is what holds a path if no finding says otherwise.
func (f Facts) mechanism(p Place, path load.Path, read bool) (Held, place.Mechanism) {
	if p.Err != nil {
		return No, ""
	}
	e := f.expect(p)
	by := map[load.Path]place.By{load.Direct: e.Direct, load.Sync: e.Sync, load.Buffered: e.Buffered, mapped: e.Mapped}[path]
	switch {
	case read:
		by = e.Read
	case path != load.Direct && f.foreignPaced(p) && len(p.Files) > 0 && len(f.foreignAt(p)) == len(p.Files):
		by = *f.foreignBy(p) // nothing is written here but files of other groups
	}
	switch bytes, _ := f.Group.Memory.bound(); {
	case by.Mechanism == place.Nothing:
		return No, ""
	case by.Ahead, path == load.Buffered && !read && by.Mechanism == place.Writeback && bytes == 0:
		return AtDevice, by.Mechanism
	}
	return Yes, by.Mechanism
}
