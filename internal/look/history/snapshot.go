package history

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
)

// snapshot makes what a Watcher would have said of a frame, as far as that was kept: the totals
// and what is expected to hold limits were not.
func (f frame) snapshot() *watch.Snapshot {
	s := &watch.Snapshot{At: f.at, Window: f.window, Version: cgroupfs.V2}
	groups, below := map[string]*watch.Group{}, map[blkdev.Number][]blkdev.Number{}
	group := func(d def) *watch.Group {
		g := groups[d.path]
		if g == nil {
			g = &watch.Group{Path: d.path}
			groups[d.path] = g
			s.Groups = append(s.Groups, g)
		}
		g.Target = d.target // the last one, if it was renamed
		return g
	}
	for _, p := range f.points {
		of := p.series.Value()
		switch of.kind {
		case ofHost:
			s.Version, s.Pressure, s.Watched = of.version(), p.pressureOf(), int(min(p.values[watched], 1<<31))
		case ofDisk:
			d := watch.Disk{Number: of.number, Node: of.node, Below: numbersOf(of.below), Rates: p.rates()}
			below[d.Number] = d.Below
			d.Use, d.Queue = float64(p.values[use])/hundredths, float64(p.values[queue])/hundredths
			s.Disks = append(s.Disks, d)
		case ofGroup:
			g := group(of)
			if g.Pressure = p.pressureOf(); of.memory {
				g.Memory = &watch.Memory{Dirty: p.values[dirty], Writeback: p.values[writeback]}
			}
			if p.values[pacedWBPS] > 0 {
				g.Paced = &watch.Paced{WBPS: p.values[pacedWBPS]}
			}
		case ofDevice:
			addDevice(group(of), p)
		}
	}
	for _, g := range s.Groups {
		for i := range g.Devices {
			g.Devices[i].Below = below[g.Devices[i].Number]
		}
	}
	slices.SortFunc(s.Groups, func(a, b *watch.Group) int { return strings.Compare(a.Path, b.Path) })
	return s
}

// addDevice gives a group a device; one that it has is replaced: its limit was changed in the
// frame's time.
func addDevice(g *watch.Group, p *point) {
	of := p.series.Value()
	d := watch.Device{Number: of.number, Node: of.node, Rates: p.rates(), Limit: of.limit}
	at, has := slices.BinarySearchFunc(g.Devices, d.Number, func(o watch.Device, n blkdev.Number) int {
		return cmp.Or(cmp.Compare(o.Number.Major, n.Major), cmp.Compare(o.Number.Minor, n.Minor))
	})
	if has {
		g.Devices[at] = d
		return
	}
	g.Devices = slices.Insert(g.Devices, at, d)
}
