package place

import (
	"slices"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Mechanism is what holds a limit on a path of I/O; the empty one means that nothing does.
type Mechanism string

// The mechanisms.
const (
	Throttle  Mechanism = "throttle"      // blk-throttle, as the process submits the I/O
	Writeback Mechanism = "writeback"     // blk-throttle, as the kernel writes back for the group
	RootRule  Mechanism = "root-throttle" // v1's root group, which all writeback is charged to
	Volume    Mechanism = "volume"        // that rule, and a bound on what waits in memory for the device
	Pacer     Mechanism = "pacer"         // weir, which stops the group's processes for moments
	Nothing   Mechanism = ""
)

// By says what is expected to hold one path of I/O.
type By struct {
	Mechanism Mechanism `json:"mechanism"`
	// Ahead: only the disk is held, and the writer runs ahead in memory until memory is full.
	Ahead bool   `json:"ahead"`
	Why   string `json:"why"` // why not, or not all of it; empty if it holds
}

// Holds reports whether the writer itself is held.
func (b By) Holds() bool { return b.Mechanism != Nothing && !b.Ahead }

// An Expectation says what is expected to hold a group's I/O on a device, for each path of I/O.
type Expectation struct {
	Direct, Sync, Buffered By // writes
	Mapped                 By // with msync
	Read                   By // that reaches the disk
}

// A Cell is one path of I/O with what is expected to hold it.
type Cell struct {
	Path      string    `json:"path"`
	Read      bool      `json:"read"`
	Mechanism Mechanism `json:"mechanism"`
	Ahead     bool      `json:"ahead"`
	Why       string    `json:"why"`
}

// Cells returns the paths that a limit applies to.
func (e Expected) Cells() []Cell {
	cells := []Cell{}
	add := func(path string, read bool, by By) {
		cells = append(cells, Cell{path, read, by.Mechanism, by.Ahead, by.Why})
	}
	if e.LimitsWrites() {
		add("direct", false, e.Direct)
		add("sync", false, e.Sync)
		add("buffered", false, e.Buffered)
		add("mapped", false, e.Mapped)
	}
	if e.LimitsReads() {
		add("direct", true, e.Read)
		add("buffered", true, e.Read)
		add("mapped", true, e.Read)
	}
	return cells
}

// ExpectationOf is what Cells were made of. Paths without a cell are those that the limit does not apply to.
func ExpectationOf(cells []Cell) (e Expectation) {
	for _, c := range cells {
		by := By{c.Mechanism, c.Ahead, c.Why}
		switch {
		case c.Read:
			e.Read = by
		case c.Path == "direct":
			e.Direct = by
		case c.Path == "sync":
			e.Sync = by
		case c.Path == "buffered":
			e.Buffered = by
		case c.Path == "mapped":
			e.Mapped = by
		}
	}
	return e
}

// A Paced is what weir's pacer holds of a group, or would hold: bytes written through the page
// cache, to all devices together.
type Paced struct {
	WBPS    uint64 // bytes a second
	Devices []blkdev.Number
	Record  string // where that stands; empty: it is a plan
	Missed  string // whom the pacer cannot stop; empty: it can all
}

// A Site is what the decision about one device depends on.
type Site struct {
	Device blkdev.Number
	Limit  limit.Limit // what is to be in force: asked for and, for the other rates, there already
	Kernel Kernel
	Root   RootBound // v1: what binds everybody's writes to the device
	Paced  *Paced    // nil: the pacer does not hold the group
	Past   string    // why all I/O goes past the group's rules; empty: it does not
}

// Expect says what is expected to hold at a site.
func Expect(s Site) Expectation {
	if s.Past != "" {
		none := By{Why: s.Past}
		return Expectation{none, none, none, none, none}
	}
	charged := func(is bool) By {
		if is {
			return By{Mechanism: Throttle}
		}
		return By{Why: s.Kernel.Why}
	}
	e := Expectation{Direct: charged(s.Kernel.Direct), Sync: charged(s.Kernel.Sync), Mapped: charged(s.Kernel.Sync), Read: By{Mechanism: Throttle}}
	if s.Kernel.Buffered {
		e.Mapped = By{Mechanism: Writeback}
	}
	e.Buffered = s.buffered()
	if !s.Kernel.Direct && e.Buffered.Mechanism == Pacer { // then all writes go through the page cache
		e.Direct = By{Mechanism: Pacer}
		if !s.Kernel.Sync {
			e.Sync, e.Mapped = e.Direct, e.Direct
		}
	}
	return e
}

// buffered says what holds writeback.
func (s Site) buffered() By {
	covered := s.Kernel.Direct && s.Root.Covers(s.Limit)
	switch {
	case s.Kernel.Buffered:
		return By{Mechanism: Writeback}
	case s.pacedHere():
		return By{Mechanism: Pacer, Why: s.uncounted()}
	case covered && s.Root.HoldsWriters():
		return By{Mechanism: Volume}
	case covered:
		return By{Mechanism: RootRule, Ahead: true, Why: "the root group's rule holds the disk, but a writer runs ahead in memory"}
	}
	return By{Why: s.Kernel.Why}
}

// pacedHere reports whether the pacer holds the bytes that the site's limit applies to, as
// strictly.
func (s Site) pacedHere() bool {
	return s.Kernel.Uncounted == "" && s.Paced.holds(s)
}

func (p *Paced) holds(s Site) bool {
	most, bytes := s.Limit.WBPS.Number()
	return bytes && p != nil && p.WBPS <= most && slices.Contains(p.Devices, s.Device)
}

// uncounted says which part of the limit the pacer does not hold.
func (s Site) uncounted() string {
	if _, ops := s.Limit.WIOPS.Number(); ops {
		return "the pacer counts bytes, not operations, so " + s.Limit.WIOPS.Format(limit.WIOPS) + " applies only to direct and synchronous writes"
	}
	return ""
}

// wants reports whether the pacer has to hold the site's limit.
func (s Site) wants(how limit.Hold) bool {
	_, bytes := s.Limit.WBPS.Number()
	s.Paced = nil
	return bytes && s.Past == "" && s.Kernel.Uncounted == "" && (how == limit.HoldPacer || how == limit.HoldAuto && !s.buffered().Holds())
}
