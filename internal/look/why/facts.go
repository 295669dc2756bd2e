package why

import (
	"context"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Question is what the user asks.
type Question struct {
	Target *targets.Target // nil: a group that weir would make
	// Places are where the question assumes limits; none: every disk that the target has
	// mounted. A Spot that is resolved already is used as it is, as for a place in another
	// root.
	Places []place.Spot
	// Hold is what the question assumes to hold buffered writes; the zero Hold: what holds them
	// now.
	Hold limit.Hold
}

// Sources are where facts come from. The functions may be nil.
type Sources struct {
	Root   string
	Groups *cgroupfs.FS
	// Hierarchy is the one of the io controller; if it is nil, WhyNone says why.
	Hierarchy   *cgroupfs.Hierarchy
	WhyNone     error
	SystemdRuns bool
	// Owners opens what tells whose the writeback of files is. It takes time, and is
	// called where the answer matters.
	Owners func() (Owners, error)
	// UnitLimits reads the limits that systemd keeps for a unit.
	UnitLimits func(ctx context.Context, unit string) (map[blkdev.Number][]Spelling, error)
	// Pacer reads what weir's pacer holds, and can; nil: it is not known.
	Pacer Pacer
	// Kept is what weir keeps for a target.
	Kept func(context.Context, targets.Target) (Kept, error)
	// Planned are the limits that weir has set for a target because a plan has them; none: it has not. They are
	// set again when the target starts.
	Planned func(targets.Target) []cgroupfs.Rule
	// Unpack reads the kernel's own copy of its configuration; nil: it cannot be read.
	Unpack kernel.Unpack
}

// A Pacer reports what weir's pacer holds; place.Host implements it.
type Pacer interface {
	// Paced reads what it holds of a group.
	Paced(cgroupfs.Group) (place.Held, error)
	// NoPacer returns why the pacer cannot hold a group; nil: it can.
	NoPacer(cgroupfs.Group) error
	// Unseen is why BPF cannot see what the kernel charges to other groups; nil: it can.
	Unseen() error
}

// Owners tells whose the writeback of files is: an inode.Asker.
type Owners interface {
	OfPaths(ctx context.Context, paths []string) ([]inode.File, error)
	OfProcesses(ctx context.Context, pids []int) ([]inode.File, error)
}

// Facts are all that the rules judge by.
type Facts struct {
	Target  string
	Release kernel.Release
	Config  kernel.Config
	// NoThrottle is a file that a kernel with limits on disk I/O has, and this one has not;
	// empty: it has, or nothing is known.
	NoThrottle string
	Dirty      *kernel.Dirty // nil: not known
	Swaps      []SwapArea
	Mounted    []Mounted         // hierarchies, in mountinfo's order
	IO         *Mounted          // the one that limits are set in; nil: none
	WhyNone    fault.Unsupported // why there is none
	Systemd    bool              // is PID 1
	Remote     bool              // they are another host's, below --root: whether weir runs there is not known
	Group      Group
	Places     []Place
	Without    []Place    // mounts that hold files and are on no block device
	AllDisks   bool       // the places are all that the target's mounts are on
	Hold       limit.Hold // see Question
}

// Mounted is one hierarchy.
type Mounted struct {
	Version     int
	At          string
	Controllers []string
	ReadOnly    bool
}

// A Group is the group that a limit is for, and those around it.
type Group struct {
	ToMake    bool // there is none yet: weir would make it
	Path, Dir string
	Root      bool
	Version   cgroupfs.Version
	Owner     targets.Owner
	Processes []int         // that the group's rules bind
	Views     []int         // those whose mounts count; 0 stands for weir itself
	BelowV1   []place.Below // groups below with processes, which v1's rules do not bind

	Controllers []string // v2, as cgroup.controllers has them; nil for a group to make
	MissingIO   []cgroupfs.Write

	Rules     []cgroupfs.Rule
	RootRules []cgroupfs.Rule // v1: of the hierarchy's root
	Paced     *place.Paced    // what weir's pacer holds; nil: nothing
	Escapes   *place.Paced    // what it holds of what the kernel charges to other groups; nil: nothing
	Lapsed    string          // why it holds nothing, though it was asked to; empty: it does, or was not
	NoPacer   error           // why it cannot be had; nil: it can
	Unseen    error           // why it cannot see what the kernel charges to other groups; nil: it can
	Above     []Above         // the groups above, the root first
	Memory    Memory
	Swapped   Swapped
	Record    *targets.Record // what the target's owner has on record; nil: not known
	Kept      Kept            // what weir sets again when the target starts
	Planned   []cgroupfs.Rule // what a plan has weir set again then
	Unit      *Unit           // what systemd keeps; nil if the group is no unit's
	Loose     *Loose          // nil: systemd leaves the limits in force, or there are none
	Latency   []Policy        // io.latency of the group, those above and their neighbours
	Cost      []Policy        // io.cost.qos of the root, where it is enabled
}

// Kept is the limits that weir sets again when a target starts, after the target's owner.
type Kept struct {
	File    string // that they are in; empty: there are none
	Rules   []cgroupfs.Rule
	Unknown bool // of some of them the device is not known
}

// Above is a group above, with its rules.
type Above struct {
	Path  string
	Rules []cgroupfs.Rule
}

// Memory is the smallest bound on the way from the group to the root.
type Memory struct {
	cgroupfs.Memory
	MaxFile, HighFile string // where the bounds are; empty: there are none
	Known             bool
}

// Max returns the smaller of the two bounds, 0 if there is none.
func (m Memory) bound() (bytes uint64, file string) {
	if m.High != 0 && (m.Max == 0 || m.High < m.Max) {
		return m.High, m.HighFile
	}
	return m.Max, m.MaxFile
}

// A Unit is what systemd keeps for a unit.
type Unit struct {
	Name   string
	Limits map[blkdev.Number][]Spelling
	Past   []blkdev.Number // devices with rules that systemd goes past (systemd.GoesPast), so that it can keep none on them
	Err    error           // why they are not known
}

// A Spelling is what systemd keeps for a device under one of its names.
type Spelling struct {
	Path  string
	Limit limit.Limit
}

// A Policy is a line of a controller that works beside the limits.
type Policy struct {
	File   string
	Device blkdev.Number
	Line   string
}

// A Place is where a limit is looked at.
type Place struct {
	Spec      string
	Named     bool // by the user, and not found among the mounts
	Chain     blkdev.Chain
	Err       *blkdev.NoBlockDeviceError // instead of devices
	FS        *blkdev.Mount              // nil: a device was named
	Devices   []Device
	Writeback bool   // the kernel writes back as the group's (place.Kernel)
	WhyNot    string // why it does not
	File      string // the regular file that was named, as an absolute path; empty: none
	Size      int64  // of the file, in bytes
	Cached    int64  // of it in the page cache; -1: not known
	// Files are the files with buffered writes here: the named file, or the files on these
	// devices that the target has open for writing.
	Files     []inode.File
	OwnersErr error // why the owners of some of them, or of all, are not known
}

// A Device is one of a place's devices.
type Device struct {
	blkdev.Device
	Limit   limit.Limit // named, and for the rates that are not, in force; unset where neither
	Asked   limit.Limit // of Limit, the rates that were named and are not in force
	Above   limit.Limit // of Limit, the rates that only groups above bind (v2)
	InForce limit.Limit // as the kernel has it
	BDI     *kernel.BDI // nil: none
	Queue   kernel.Queue
}
