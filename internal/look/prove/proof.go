package prove

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
)

// A Proof is what was measured, with a verdict for each row and the findings behind it.
type Proof struct {
	Target   *targets.Target // nil: a group that weir made for the measurement
	Version  cgroupfs.Version
	Kernel   string // its release
	Observed bool   // no load was made: the rows are the target's own I/O
	Spots    []Spot
	Rows     []Row
	Untried  []Untried // limits that no row has tried
	Phases   []Phase   // what a neighbour got of the disk; none: nobody asked
	// Explained is what weir why says of all spots, from the facts before the first row; nil:
	// nobody asked.
	Explained *why.Report
	Took      time.Duration // all rows together
}

// A Spot is where rows were measured.
type Spot struct {
	Device  blkdev.Device
	Limit   limit.Limit // that binds there
	Dir     string      // empty: no load was made
	FSType  string      // empty: not known
	Scratch bool        // weir made the disk, and it is gone
}

// An Untried limit is one that was to be measured, and that no row has tried.
type Untried struct {
	Device blkdev.Device
	Key    limit.Key
	Rate   uint64 // per second
	Why    string
	Remedy fault.Remedy // how it can be tried
}

// String names the limit: "write 100 ops/s".
func (u Untried) String() string {
	return u.Key.Direction() + " " + limit.PerSecond(u.Rate).Format(u.Key)
}

// Measured is the worst verdict of the rows.
func (p Proof) Measured() Verdict {
	var all []Verdict
	for _, row := range p.Rows {
		all = append(all, row.Verdict)
	}
	return Worst(all)
}

// Verdict is the proof in one word: the worst of its rows, and no better than CannotTell if there is
// a limit that none has tried.
func (p Proof) Verdict() Verdict {
	measured := p.Measured()
	if len(p.Untried) == 0 {
		return measured
	}
	return Worst([]Verdict{measured, CannotTell})
}

// Findings are those that the rows name, in weir why's order.
func (p Proof) Findings() []why.Finding {
	if p.Explained == nil {
		return nil
	}
	var named []why.Finding
	for _, f := range p.Explained.Findings {
		if slices.ContainsFunc(p.Rows, func(r Row) bool { return slices.Contains(r.Findings, f.Number) }) {
			named = append(named, f)
		}
	}
	return named
}

// spotOf is what remains of a place when its rows are measured.
func spotOf(p Place) Spot {
	s := Spot{Device: p.Device, Limit: p.Limit, Dir: p.Dir, Scratch: p.Sole}
	if p.FS != nil {
		s.FSType = p.FS.FSType
	}
	return s
}
