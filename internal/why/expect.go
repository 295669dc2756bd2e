package why

import (
	"slices"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/internal/place"
)

// group is what package place decides by.
func (f Facts) group() place.Group {
	g := place.Group{Path: f.Group.Path, Rules: f.Group.Rules, Paced: f.Group.Paced, NoPacer: f.Group.NoPacer,
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

// pacing is what weir's pacer holds of the group, or would: once what was named is set, or
// a limit is where there is none.
func (f Facts) pacing() *place.Paced {
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
		return nil
	}
	return d.Paced
}

// limitOf is a device's limit; where nothing is limited, one that could be.
func (f Facts) limitOf(d Device) limit.Limit {
	if f.limited() {
		return d.Limit
	}
	return limit.Limit{WBPS: limit.PerSecond(1)}
}

// expect is what is expected to hold at a place: of its devices, where least does.
func (f Facts) expect(p Place) place.Expectation {
	paced, g := f.pacing(), f.group()
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
	if read {
		by = e.Read
	}
	switch bytes, _ := f.Group.Memory.bound(); {
	case by.Mechanism == place.Nothing:
		return No, ""
	case by.Ahead, path == load.Buffered && !read && by.Mechanism == place.Writeback && bytes == 0:
		return AtDevice, by.Mechanism
	}
	return Yes, by.Mechanism
}
