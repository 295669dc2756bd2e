package why

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Report is the answer to a question.
type Report struct {
	// Supposed is true if nothing is limited and no limit was named: the matrix then
	// says what a limit would hold.
	Supposed bool
	Target   string   // as it was named, with its kind; empty: a group that weir would make
	Group    *GroupID // nil: this host has no group that could have a limit
	Kernel   string   // its release; empty: not known
	Mounted  []Mounted
	Places   []PlaceID
	Matrix   []Cell
	Findings []Finding
	Dirty    *Dirty // nil: not known
}

// A GroupID is the group that the report is about.
type GroupID struct {
	Path      string
	Version   int
	Owner     targets.Owner
	Processes int
}

// A PlaceID is a place that the report is about: a path or a device that was named, or
// a mount of the target.
type PlaceID struct {
	Spec    string
	Chain   string // the way to the devices, for people
	Devices []DeviceID
}

// A DeviceID is a device of a place, with the limit that was named for it or, for the
// rates that were not, that is in force.
type DeviceID struct {
	Device string
	Number blkdev.Number
	Limit  limit.Limit
}

// Dirty is the host's dirty pages: settings, thresholds and current amounts. Of each pair of a
// ratio and bytes, the one that is 0 is not in force.
type Dirty struct {
	BackgroundRatio   uint64 // percent
	BackgroundBytes   uint64
	Ratio             uint64
	Bytes             uint64
	ExpireSeconds     float64
	WritebackSeconds  float64
	BackgroundAtBytes uint64 // what they come to; 0: not known
	LimitAtBytes      uint64
	DirtyNowBytes     uint64
	WritebackNowBytes uint64
}

func dirtyOf(d *kernel.Dirty) *Dirty {
	if d == nil {
		return nil
	}
	return &Dirty{d.BackgroundRatio, d.BackgroundBytes, d.Ratio, d.Bytes, d.Expire.Seconds(), d.Writeback.Seconds(),
		d.BackgroundAt, d.LimitAt, d.Now, d.InWriteback}
}

// Held says whether a limit is expected to bind an I/O.
type Held string

// The answers.
const (
	Yes      Held = "yes"
	AtDevice Held = "device"    // what reaches the device; the writer runs ahead of it
	No       Held = "no"        // and a finding says why
	NoLimit  Held = "unlimited" // there is no limit for it
	Unknown  Held = "unknown"   // cannot be told here, and a finding says why
)

// A Cell is one entry of the matrix.
type Cell struct {
	Place     int // index of Report.Places
	Path      load.Path
	Read      bool
	Held      Held
	Mechanism place.Mechanism // empty unless it holds
	Findings  []int           // their numbers
}

// Severity is what a finding means for a limit.
type Severity string

// The severities, the worst first.
const (
	Breaks Severity = "breaks" // it does not hold
	Hurts  Severity = "hurts"  // it holds, and does harm
	Note   Severity = "note"   // worth knowing
)

// A Finding is one reason.
type Finding struct {
	Number   int    // from 1, in the order of severity
	Code     string // stable
	Severity Severity
	Text     string // one sentence
	Evidence []Evidence
	Fixes    []Fix // a choice; empty: nothing can be done about it here

	cells scope
}

// Evidence is what was read on this host.
type Evidence struct {
	File  string
	Value string
}

// A Fix is one way out.
type Fix struct {
	Text  string
	Lines []string // to paste into a root shell; empty: nothing to paste
}

// A scope says which cells a finding explains. The zero scope is none.
type scope struct {
	paths  []load.Path
	reads  bool
	writes bool
	places []int // nil: all
	cannot bool  // the cells cannot be told, rather than not held
	// astray says that a limit is in force in another place than intended: cells without a
	// limit are explained too.
	astray bool
}

// mapped is a store into mapped memory that msync(2) puts on the disk, or a load from it.
const mapped load.Path = "mapped"

// paths are the matrix's columns.
var paths = []load.Path{load.Direct, load.Sync, load.Buffered, mapped}

var (
	everything = scope{paths: paths, reads: true, writes: true}
	allWrites  = scope{paths: paths, writes: true}
	// writtenBack are the writes that the kernel brings to the disk when it likes.
	writtenBack = scope{paths: []load.Path{load.Buffered}, writes: true}
	// throughCache are those and the ones that a sync of the writer's brings there: v2
	// charges both by the inode (wbc_attach_fdatawrite_inode).
	throughCache = scope{paths: []load.Path{load.Sync, load.Buffered, mapped}, writes: true}
	cachedReads  = scope{paths: []load.Path{load.Buffered, mapped}, reads: true}
)

// gone are the cells of a place whose limit is somewhere else.
func gone(place int) scope {
	s := everything.at(place)
	s.astray = true
	return s
}

func (s scope) at(places ...int) scope {
	s.places = places
	return s
}

// Find returns the finding of a code.
func (r Report) Find(code string) (Finding, bool) {
	for _, f := range r.Findings {
		if f.Code == code {
			return f, true
		}
	}
	return Finding{}, false
}

// Worst is the report in one word: No if something is not held, Unknown if something is not
// known, and Yes otherwise.
func (r Report) Worst() Held {
	worst := Yes
	if len(r.Matrix) == 0 {
		worst = Unknown
	}
	for _, f := range r.Findings {
		if f.Severity == Breaks {
			return No
		}
	}
	for _, c := range r.Matrix {
		switch c.Held {
		case No:
			return No
		case Unknown:
			worst = Unknown
		}
	}
	return worst
}
