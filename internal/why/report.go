package why

import (
	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/kernel"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/target"
)

// A Report is the answer to a question.
type Report struct {
	// Supposed is true if nothing is limited and no limit was named: the matrix then
	// says what a limit would hold.
	Supposed bool      `json:"supposed"`
	Target   string    `json:"target,omitempty"` // as it was named, with its kind; empty: a group that weir would make
	Group    *GroupID  `json:"group"`            // null: this host has no group that could have a limit
	Kernel   string    `json:"kernel"`           // its release; empty: not known
	Mounted  []Mounted `json:"hierarchies"`
	Places   []PlaceID `json:"places"`
	Matrix   []Cell    `json:"matrix"`
	Findings []Finding `json:"findings"`
	Dirty    *Dirty    `json:"dirty"` // null: not known
}

// A GroupID is the group that the report is about.
type GroupID struct {
	Path      string       `json:"cgroup"`
	Version   int          `json:"cgroup_version"`
	Owner     target.Owner `json:"owner"`
	Processes int          `json:"processes"`
}

// A PlaceID is a place that the report is about: a path or a device that was named, or
// a mount of the target.
type PlaceID struct {
	Spec    string     `json:"place"`
	Chain   string     `json:"chain"` // the way to the devices, for people
	Devices []DeviceID `json:"devices"`
}

// A DeviceID is a device of a place, with the limit that was named for it or, for the
// rates that were not, that is in force.
type DeviceID struct {
	Device string        `json:"device"`
	Number blkdev.Number `json:"number"`
	Limit  limit.Limit   `json:"limit"`
}

// Dirty is the host's dirty pages: settings, thresholds and current amounts. Of each pair of a
// ratio and bytes, the one that is 0 is not in force.
type Dirty struct {
	BackgroundRatio   uint64  `json:"background_ratio"` // percent
	BackgroundBytes   uint64  `json:"background_bytes"`
	Ratio             uint64  `json:"ratio"`
	Bytes             uint64  `json:"bytes"`
	ExpireSeconds     float64 `json:"expire_seconds"`
	WritebackSeconds  float64 `json:"writeback_seconds"`
	BackgroundAtBytes uint64  `json:"background_at_bytes"` // what they come to; 0: not known
	LimitAtBytes      uint64  `json:"limit_at_bytes"`
	DirtyNowBytes     uint64  `json:"dirty_now_bytes"`
	WritebackNowBytes uint64  `json:"writeback_now_bytes"`
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
	Place     int             `json:"place"` // index of Report.Places
	Path      load.Path       `json:"path"`
	Read      bool            `json:"read"`
	Held      Held            `json:"expected"`
	Mechanism place.Mechanism `json:"mechanism"` // empty unless it holds
	Findings  []int           `json:"findings"`  // their numbers
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
	Number   int        `json:"number"` // from 1, in the order of severity
	Code     string     `json:"code"`   // stable
	Severity Severity   `json:"severity"`
	Text     string     `json:"text"` // one sentence
	Evidence []Evidence `json:"evidence"`
	Fixes    []Fix      `json:"fixes"` // a choice; empty: nothing can be done about it here

	cells scope
}

// Evidence is what was read on this host.
type Evidence struct {
	File  string `json:"file"`
	Value string `json:"value"`
}

// A Fix is one way out.
type Fix struct {
	Text  string   `json:"text"`
	Lines []string `json:"lines"` // to paste into a root shell; empty: nothing to paste
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
