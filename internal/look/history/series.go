package history

import (
	"math"
	"strings"

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
	def     def
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

// pointsOf flattens what of a snapshot is kept, into points' room: groups that have limits or are
// paced, those that did I/O in its window, and the disks.
func pointsOf(s *watch.Snapshot, points []point) []point {
	host := point{def: def{kind: ofHost, v1: s.Version == cgroupfs.V1}}
	host.values[watched] = uint64(max(s.Watched, 0))
	host.pressed(s.Pressure)
	points = append(points[:0], host)
	for _, d := range s.Disks {
		p := point{def: def{kind: ofDisk, node: d.Node, number: d.Number, below: spellNumbers(d.Below)}}
		p.rated(d.Rates)
		p.values[use], p.values[queue] = whole(d.Use, hundredths), whole(d.Queue, hundredths)
		points = append(points, p)
	}
	for _, g := range s.Groups {
		if sum, _ := g.Sum(); !g.Limited() && g.Paced == nil && sum == (watch.Rates{}) {
			continue
		}
		p := point{def: def{kind: ofGroup, path: g.Path, target: g.Target, memory: g.Memory != nil}}
		p.pressed(g.Pressure)
		if m := g.Memory; m != nil {
			p.values[dirty], p.values[writeback] = m.Dirty, m.Writeback
		}
		if g.Paced != nil && g.Paced.Lapsed == "" {
			p.values[pacedWBPS] = g.Paced.WBPS
		}
		points = append(points, p)
		for _, d := range g.Devices {
			p := point{def: def{kind: ofDevice, path: g.Path, target: g.Target, node: d.Node, number: d.Number, limit: d.Limit.Bound()}}
			p.rated(d.Rates)
			points = append(points, p)
		}
	}
	return points
}

func (p *point) rated(r *watch.Rates) {
	if p.unknown = r == nil; p.unknown {
		return
	}
	p.values[rbps], p.values[wbps] = whole(r.RBPS, 1), whole(r.WBPS, 1)
	p.values[riops], p.values[wiops] = whole(r.RIOPS, thousandths), whole(r.WIOPS, thousandths)
}

func (p *point) pressed(of *watch.Pressure) {
	if p.def.pressure = of != nil && of.Known; p.def.pressure {
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
	if !p.def.pressure {
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
