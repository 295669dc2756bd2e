package history

import (
	"math"
	"strings"
	"unique"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
)

// What a series is about.
type kind uint8

const (
	ofHost   kind = iota + 1 // pressure, and how many groups there are
	ofDisk                   // what all did on a disk
	ofGroup                  // pressure, dirty pages and the pacer
	ofDevice                 // what a group did on a device, beside its limit
)

// A def says what a series is about. It can be compared: a series with another limit is another one.
type def struct {
	kind     kind
	path     string // of the group
	target   string // of the group, as it was called
	node     string // of the device
	number   blkdev.Number
	below    string // numbers of the disks below a disk, with a space between
	limit    limit.Limit
	pressure bool // the kernel told the group's, or the host's
	memory   bool // and what of it waits to be written
	v1       bool // the host watches groups of cgroup v1
}

// A series is a def that is in memory once, however many tables are about it: those of thousands of groups
// are megabytes. Two of one def are the same.
type series = unique.Handle[def]

func (d def) version() cgroupfs.Version {
	if d.v1 {
		return cgroupfs.V1
	}
	return cgroupfs.V2
}

// valuesMost is how many values a series has at most; those of each kind are below.
const valuesMost = 6

// The values of a series, by kind. Bytes, and bytes a second, are whole; operations a second are in
// thousandths, and percentages in hundredths.
const (
	rbps, wbps, riops, wiops    = 0, 1, 2, 3       // ofDevice, ofDisk
	use, queue                  = 4, 5             // ofDisk
	some, full                  = 0, 1             // ofGroup, ofHost
	dirty, writeback, pacedWBPS = 2, 3, 4          // ofGroup
	watched                     = 2                // ofHost
	thousandths, hundredths     = 1000.0, 100.0    // of a unit
	valueMost                   = float64(1 << 60) // far beyond what there can be
)

// A point is a series with its values in one frame.
type point struct {
	series  series
	values  [valuesMost]uint64
	unknown bool // the kernel's counters gave no rates
}

func (p *point) idle() bool { return p.values == [valuesMost]uint64{} && !p.unknown }

func whole(v, unit float64) uint64 {
	if v = math.Round(v * unit); v > 0 && v <= valueMost {
		return uint64(v)
	}
	return 0
}

// pointsOf flattens what of a snapshot is kept: groups that have limits or are paced, those that did I/O in
// its window, and the disks. Points, those of the snapshot before, are overwritten.
func pointsOf(s *watch.Snapshot, points []point) []point {
	f := flat{points: points}
	f.add(def{kind: ofHost, v1: s.Version == cgroupfs.V1, pressure: isKnown(s.Pressure)}, func(p *point) {
		p.values[watched] = uint64(max(s.Watched, 0))
		p.pressed(s.Pressure)
	})
	for i := range s.Disks {
		d := &s.Disks[i]
		f.add(def{kind: ofDisk, node: d.Node, number: d.Number, below: spellNumbers(d.Below)}, func(p *point) {
			p.rated(d.Rates)
			p.values[use], p.values[queue] = whole(d.Use, hundredths), whole(d.Queue, hundredths)
		})
	}
	for _, g := range s.Groups {
		if sum, _ := g.Sum(); !g.Limited() && g.Paced == nil && sum == (watch.Rates{}) {
			continue
		}
		f.add(def{kind: ofGroup, path: g.Path, target: g.Target, pressure: isKnown(g.Pressure), memory: g.Memory != nil}, func(p *point) {
			p.pressed(g.Pressure)
			if m := g.Memory; m != nil {
				p.values[dirty], p.values[writeback] = m.Dirty, m.Writeback
			}
			if g.Paced != nil && g.Paced.Lapsed == "" {
				p.values[pacedWBPS] = g.Paced.WBPS
			}
		})
		for i := range g.Devices {
			d := &g.Devices[i]
			f.add(def{kind: ofDevice, path: g.Path, target: g.Target, node: d.Node, number: d.Number, limit: d.Limit.Bound()}, func(p *point) { p.rated(d.Rates) })
		}
	}
	clear(f.points[f.n:]) // so that no series is kept for them
	return f.points[:f.n]
}

// A flat is the points of a snapshot, up to the n-th, and then those of the snapshot before.
type flat struct {
	points []point
	n      int
}

// add adds a point. Mostly its series is that of the same place in the snapshot before: to compare it with
// that one takes a tenth of a look for it.
func (f *flat) add(d def, values func(*point)) {
	if f.n == len(f.points) {
		f.points = append(f.points, point{series: unique.Make(d)})
	}
	p := &f.points[f.n]
	is := p.series
	if is == (series{}) || is.Value() != d {
		is = unique.Make(d)
	}
	*p = point{series: is}
	values(p)
	f.n++
}

func (p *point) rated(r *watch.Rates) {
	if p.unknown = r == nil; p.unknown {
		return
	}
	p.values[rbps], p.values[wbps] = whole(r.RBPS, 1), whole(r.WBPS, 1)
	p.values[riops], p.values[wiops] = whole(r.RIOPS, thousandths), whole(r.WIOPS, thousandths)
}

func isKnown(p *watch.Pressure) bool { return p != nil && p.Known }

func (p *point) pressed(of *watch.Pressure) {
	if isKnown(of) {
		p.values[some], p.values[full] = whole(of.Some, hundredths), whole(of.Full, hundredths)
	}
}

// rates is what rated has kept; nil: they were not known.
func (p *point) rates() *watch.Rates {
	if p.unknown {
		return nil
	}
	return &watch.Rates{RBPS: float64(p.values[rbps]), WBPS: float64(p.values[wbps]),
		RIOPS: float64(p.values[riops]) / thousandths, WIOPS: float64(p.values[wiops]) / thousandths}
}

// pressureOf is what pressed has kept; the totals are not.
func (p *point) pressureOf() *watch.Pressure {
	if !p.series.Value().pressure {
		return nil
	}
	return &watch.Pressure{Some: float64(p.values[some]) / hundredths, Full: float64(p.values[full]) / hundredths, Known: true}
}

func spellNumbers(numbers []blkdev.Number) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(n.String())
	}
	return b.String()
}

// numbersOf reads what spellNumbers wrote; what is none is left out.
func numbersOf(text string) (numbers []blkdev.Number) {
	for _, f := range strings.Fields(text) {
		if n, err := blkdev.ParseNumber(f); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
